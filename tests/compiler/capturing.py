"""Captures a snippet in this process, into a list."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from typing import Any

from compiler.events import ArtifactFrame, EventFrame, Failed, Finished, Mode, Options, RunRequest, StageName


@dataclass
class Captured:
    """A sink that keeps everything, and how the phase ended."""

    events: list[EventFrame] = field(default_factory=list)
    payloads: dict[str, bytes] = field(default_factory=dict)
    outcome: Finished | Failed | None = None

    def event(self, frame: EventFrame) -> None:
        self.events.append(frame)

    def artifact(self, frame: ArtifactFrame, payload: bytes) -> None:
        self.payloads[frame.ref.hash] = payload

    def bodies(self, type: str) -> list[Any]:
        return [frame.body for frame in self.events if frame.body.type == type]

    def artifacts(self, kind: str) -> list[Any]:
        """Decoded payloads of a kind, in order."""
        made = [body for body in self.bodies("artifact") if body.artifact.kind == kind]
        return [json.loads(self.payloads[body.artifact.hash]) for body in made]

    def summary(self) -> dict[str, Any]:
        (body,) = self.bodies("summary")
        summary: dict[str, Any] = body.summary
        return summary

    def printed(self, stream: str = "stdout") -> str:
        return "".join(body.text for body in self.bodies("printed") if body.stream == stream)

    def story(self) -> list[str]:
        """Stages' beginnings and ends in order, as `compile stage what`."""
        return [
            " ".join([frame.compile or "-", frame.stage or "-", frame.body.type])
            for frame in self.events
            if frame.body.type.startswith(("stage_", "compile_"))
        ]


def capture_text(
    source: str, folder: Path, *, until: StageName | None = StageName.DYNAMO, mode: Mode = Mode.AUTO
) -> Captured:
    """Capture a dedented snippet; by default up to Dynamo's stage, which compiles nothing."""
    import torch

    from compiler.pipeline import capture

    torch._dynamo.reset()
    captured = Captured()
    request = RunRequest(source=dedent(source), options=Options(until=until, mode=mode))
    captured.outcome = capture(request, captured, root=folder)
    torch._dynamo.reset()
    return captured
