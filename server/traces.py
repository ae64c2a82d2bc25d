"""The structured traces that a run kept: where `tlparse` finds what it reads."""

from __future__ import annotations

from collections.abc import Iterable

from compiler.events import ArtifactMade, Event

PHASES = ("capture", "native")


def trace_hashes(events: Iterable[Event]) -> dict[str, str]:
    """Phase → hash of its trace's artifact; empty when none was asked for."""
    return {
        event.body.name: event.body.artifact.hash
        for event in events
        if isinstance(event.body, ArtifactMade) and event.body.artifact.kind == "trace" and event.body.name in PHASES
    }


def file_name(phase: str) -> str:
    """As torch names its own: `tlparse` looks for this beginning in a folder."""
    return f"dedicated_log_torch_trace_{phase}.log"
