"""`run_child` executes the source with `say`, `artifact`, `put`, `trace`, `done`, `send`, `phase` and `question` in scope.

Without a `done` of its own, the phase ends as finished."""

import hashlib
import os
import struct
import time
from typing import Any, Literal

from compiler.events import (
    ArtifactFrame,
    ArtifactMade,
    ArtifactRef,
    Captured,
    DoneFrame,
    EventFrame,
    Failed,
    Finished,
    Printed,
    RunRequest,
    StageFinished,
    StageName,
    StageStarted,
    Summary,
)
from compiler.ir.code import CodePayload
from compiler.ir.trace import TracePayload

Phase = Literal["capture", "native"]


def prepare(target: str) -> None:
    """Nothing to prepare."""


def run_child(
    request_json: str,
    pipe_fd: int,
    phase: Literal["capture", "native"],
    path: str | None,
    root: str | None,
    captured: Captured | None,
) -> None:
    request = RunRequest.model_validate_json(request_json)

    def send(data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(pipe_fd, view) :]

    def frame(value: Any, payload: bytes = b"") -> None:
        text = value.model_dump_json().encode()
        send(struct.pack(">I", len(text)) + text + payload)

    def say(body: Any, stage: str | None = None, compile: str | None = None) -> None:
        where = None if stage is None else StageName(stage)
        frame(EventFrame(clock=time.monotonic(), stage=where, compile=compile, body=body))

    def put(made: Any, name: str, graph: str | None = None, stage: str = "codegen", of: str | None = "0/0") -> None:
        payload = made.model_dump_json().encode()
        kind = made.format.partition("/")[0]
        ref = ArtifactRef(hash=hashlib.sha256(payload).hexdigest(), kind=kind, format=made.format, bytes=len(payload))
        frame(ArtifactFrame(ref=ref), payload)
        say(ArtifactMade(name=name, graph=graph, artifact=ref), stage, of)

    def artifact(text: str, stage: str = "codegen", compile: str | None = "0/0") -> None:
        made = CodePayload(id="0_0/codegen/inference", language="python", text=text)
        put(made, "wrapper", "inference", stage, compile)

    def trace(text: str) -> None:
        """As a run with the option `trace` does, at the end of each phase."""
        if request.options.trace:
            put(TracePayload(phase=phase, text=text, records=1), phase, None, "dynamo", None)

    def stage(name: str, compile: str | None = None) -> None:
        say(StageStarted(), name, compile)
        say(StageFinished(seconds=0.5, facts={"nodes": 3}), name, compile)

    def done(outcome: Any, found: Captured | None = None) -> None:
        frame(DoneFrame(outcome=outcome, captured=found))

    said: list[bool] = []

    def end(outcome: Any, found: Captured | None = None) -> None:
        said.append(True)
        done(outcome, found)

    scope = {
        "say": say, "artifact": artifact, "stage": stage, "done": end, "send": send, "phase": phase, "path": path, "put": put,
        "root": root, "Printed": Printed, "Summary": Summary, "StageStarted": StageStarted, "Finished": Finished,
        "captured": captured, "Captured": Captured, "trace": trace, "question": request.question, "Failed": Failed,
    }  # fmt: skip
    exec(compile(request.source, path or "snippet.py", "exec"), scope)
    if not said:
        done(Finished())
