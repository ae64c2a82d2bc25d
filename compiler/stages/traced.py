"""The structured trace of a phase as an artifact of the run. It belongs to no stage: Dynamo's is where a run's tables are."""

from __future__ import annotations

from typing import Literal

from compiler.events import StageName
from compiler.session import Session
from compiler.torch_compat.trace import Trace


def tell_trace(session: Session, trace: Trace, phase: Literal["capture", "native"]) -> None:
    session.artifact(trace.payload(phase), kind="trace", name=phase, stage=StageName.DYNAMO)
