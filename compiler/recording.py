"""A whole run as one value, `recording/1`: for the one-file page, the gallery, notebooks: all that travels without a server."""

from __future__ import annotations

from typing import Any, Literal

from compiler.events import Event, RunRequest, load_event
from compiler.text import Frozen


class RecordedRun(Frozen):
    """`created` is in seconds since 1970."""

    id: str
    request: RunRequest
    created: float


class Recording(Frozen):
    """`events` are flat, as they are streamed; `artifacts` maps hash → decoded payload."""

    format: Literal["recording/1"] = "recording/1"
    run: RecordedRun
    events: list[dict[str, Any]]
    artifacts: dict[str, dict[str, Any]]

    def parsed(self) -> list[Event]:
        return [load_event(event) for event in self.events]
