"""Snippets captured in this process, and what their stages said, for the tests of the graph stages."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch

from compiler import pipeline
from compiler.events import ArtifactFrame, ArtifactMade, EventFrame, Failed, Finished, Options, RunRequest, StageName
from compiler.ir.payloads import PAYLOADS

MODELS = Path(__file__).parents[1] / "corpus" / "models"


@dataclass
class Seen:
    """A sink that keeps everything. `artifacts` are (event, payload) in the order in which they were named."""

    events: list[EventFrame] = field(default_factory=list)
    payloads: dict[str, Any] = field(default_factory=dict)
    outcome: Finished | Failed | None = None

    def event(self, frame: EventFrame) -> None:
        self.events.append(frame)

    def artifact(self, frame: ArtifactFrame, payload: bytes) -> None:
        self.payloads[frame.ref.hash] = PAYLOADS[frame.ref.kind].model_validate_json(payload)

    def artifacts(self, stage: StageName, kind: str, graph: str | None = None) -> list[Any]:
        """Payloads of a stage, in order; graphs in the middle of a pipeline of passes left out."""
        return [
            self.payloads[frame.body.artifact.hash]
            for frame in self.events
            if isinstance(frame.body, ArtifactMade)
            and (frame.stage, frame.body.artifact.kind) == (stage, kind)
            and frame.body.name != "step"
            and graph in (None, frame.body.graph)
        ]

    def all(self, kind: str) -> list[Any]:
        return [payload for payload in self.payloads.values() if payload.format.startswith(f"{kind}/")]

    def bodies(self, type: str, stage: StageName | None = None) -> list[Any]:
        return [frame.body for frame in self.events if frame.body.type == type and stage in (None, frame.stage)]

    @property
    def summary(self) -> dict[str, Any]:
        return dict(self.bodies("summary")[0].summary)


def captured(source: str, until: StageName = StageName.CODEGEN) -> Seen:
    """Capture a snippet in this process, up to and with a stage."""
    torch._dynamo.reset()
    seen = Seen()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's, at the user's code
        seen.outcome = pipeline.capture(RunRequest(source=source, options=Options(until=until)), seen)
    return seen


@cache
def model(name: str) -> Seen:
    """A model of the corpus, captured once."""
    return captured((MODELS / f"{name}.py").read_text(encoding="utf-8"))
