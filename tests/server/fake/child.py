"""`run_child` executes the source with `say`, `artifact`, `trace`, `done`, `send` and `phase` in scope.

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

    def put(
        payload: CodePayload | TracePayload, kind: str, made: dict[str, str], stage: str, compile: str | None
    ) -> None:
        data = payload.model_dump_json().encode()
        ref = ArtifactRef(hash=hashlib.sha256(data).hexdigest(), kind=kind, format=payload.format, bytes=len(data))
        frame(ArtifactFrame(ref=ref), data)
        say(ArtifactMade(**made, artifact=ref), stage, compile)

    def artifact(text: str, stage: str = "codegen", compile: str | None = "0/0") -> None:
        code = CodePayload(id="0_0/codegen/inference", language="python", text=text)
        put(code, "code", {"name": "wrapper", "graph": "inference"}, stage, compile)

    def trace(text: str) -> None:
        """As a run with the option `trace` does, at the end of each phase."""
        if request.options.trace:
            payload = TracePayload(phase=phase, text=text, records=1)
            put(payload, "trace", {"name": phase}, "dynamo", None)

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
        "say": say, "artifact": artifact, "stage": stage, "done": end, "send": send, "phase": phase, "path": path,
        "root": root, "Printed": Printed, "Summary": Summary, "StageStarted": StageStarted, "Finished": Finished,
        "captured": captured, "Captured": Captured, "trace": trace,
    }  # fmt: skip
    exec(compile(request.source, path or "snippet.py", "exec"), scope)
    if not said:
        done(Finished())
