"""A run as one HTML file."""

from __future__ import annotations

from server.pages import one_file
from server.recording import Recording


def report(recording: Recording) -> str:
    """The file's text: the page itself, with the recording inside."""
    return one_file(recording.run.id, f"aotscope {recording.run.id}", recording.model_dump_json())
