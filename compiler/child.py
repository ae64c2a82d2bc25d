"""What a child process runs: a request in, frames out.

A frame is four bytes of length, big-endian, and that many bytes of JSON (`compiler.events.Frame`); an artifact's raw bytes
follow its frame, without a length of their own: the frame has it. The last frame says how the phase ended; without it the
process died.

`python -m compiler.child PHASE PATH ROOT CAPTURED` is the same for systems where forking is not safe: the request is read from
stdin, the frames go to descriptor 3, and an empty PATH, ROOT or CAPTURED (JSON) means none.
"""

from __future__ import annotations

import os
import struct
import sys
import threading
from pathlib import Path
from typing import Literal, cast, get_args

from compiler.errors import AotscopeError
from compiler.events import ArtifactFrame, Captured, DoneFrame, EventFrame, Failed, Finished, RunRequest
from compiler.targets import BY_ID, TargetId
from compiler.text import message, to_json

Phase = Literal["capture", "native", "kernel"]
_FRAMES_FD = 3


def prepare(target: TargetId) -> None:
    """Make this process fit to compile for a target, before anything of torch's compiler is imported. Idempotent. Raises
    AotscopeError where that cannot be: each virtual target needs a process of its own."""
    if BY_ID[target].kind == "virtual":
        from compiler.torch_compat.virtual_gpu import install

        install(target)


class PipeSink:
    """Writes frames whole, whichever thread of the snippet speaks. In a fork of the process it is silent: the pipe is not its."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._owner = os.getpid()
        self._lock = threading.RLock()

    def event(self, frame: EventFrame) -> None:
        self._send(to_json(frame))

    def artifact(self, frame: ArtifactFrame, payload: bytes) -> None:
        self._send(to_json(frame), payload)

    def done(self, outcome: Finished | Failed, captured: Captured | None) -> None:
        self._send(to_json(DoneFrame(outcome=outcome, captured=captured)))

    def _send(self, text: bytes, payload: bytes = b"") -> None:
        if os.getpid() != self._owner:
            return
        with self._lock:
            rest = memoryview(struct.pack(">I", len(text)) + text + payload)
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]


def run_child(
    request_json: bytes | str,
    pipe_fd: int,
    phase: Phase,
    path: str | Path | None = None,
    root: str | Path | None = None,
    captured: Captured | None = None,
) -> None:
    """Run one phase of a request and write its frames to `pipe_fd`. `path` and `root` as for `compiler.pipeline.capture`;
    `captured` is what the capture phase's last frame said, for the native phase.

    What the snippet prints through Python goes out as events. Descriptor 2 leads nowhere from here on, because torch's C++ parts
    write notes of their own there; descriptor 1, which a subprocess of the snippet's may use, stays as it is."""
    sink = PipeSink(pipe_fd)
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 2)
    os.close(quiet)
    found: list[Captured] = []
    try:
        request = RunRequest.model_validate_json(request_json)
        file = Path(path) if path else None
        folder = Path(root) if root else None
        prepare(request.options.target)
        if phase == "capture":
            from compiler.pipeline import capture

            outcome = capture(request, sink, path=file, root=folder, found=found.append)
        elif phase == "kernel":
            from compiler.metal.build import build

            outcome = build(request, sink)
        else:
            from compiler.native import native

            outcome = native(request, sink, path=file, root=folder, captured=captured)
    except AotscopeError as fault:
        outcome = Failed(cause=fault.cause, error=fault.detail)
    except Exception as fault:  # noqa: BLE001 - a fault of ours must end the phase with a word, too
        outcome = Failed(cause=message("run.internal"), error=f"{type(fault).__name__}: {fault}")
    sink.done(outcome, found[-1] if found else None)


def main() -> None:
    phase, path, root, captured = (*sys.argv[1:5], "", "", "", "")[:4]
    if phase not in get_args(Phase):
        raise SystemExit("usage: python -m compiler.child capture|native|kernel [PATH] [ROOT] [CAPTURED] < request")
    known = Captured.model_validate_json(captured) if captured else None
    run_child(sys.stdin.buffer.read(), _FRAMES_FD, cast(Phase, phase), path, root, known)


if __name__ == "__main__":
    main()
