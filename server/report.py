"""A run as one HTML file."""

from __future__ import annotations

import html

from compiler.recording import Recording
from server.pages import one_file

_HEIGHT_PX = 720


def report(recording: Recording) -> str:
    """The file's text: the page itself, with the recording inside."""
    return one_file(recording.run.id, f"aotscope {recording.run.id}", recording.model_dump_json())


def frame(recording: Recording) -> str:
    """The report inside a frame, for a notebook."""
    # Without allow-same-origin the frame can reach neither the notebook nor its server.
    text = html.escape(report(recording), quote=True)
    return (
        f'<iframe sandbox="allow-scripts allow-downloads" srcdoc="{text}" title="aotscope" '
        f'style="width:100%;height:{_HEIGHT_PX}px;border:1px solid #8886;border-radius:8px"></iframe>'
    )
