"""The corpus through real children: one warmed parent, a fork a snippet, frames over a pipe, as a worker does it.

`python -m tests.compiler.corpus_run TARGET OUT SNIPPET…` compiles for TARGET and writes OUT, one JSON object: the snippet's
name → what its run came to. Two children run at once. The parent has one thread, and nothing of pytest in it.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import struct
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compiler.events import FRAMES, ArtifactFrame, DoneFrame, EventFrame, Options, RunRequest
from compiler.targets import BY_ID, Target

AT_ONCE = 2
LIMIT_SECONDS = 240  # of one child; a quiet machine needs 4 s


@dataclass
class Child:
    name: str
    pid: int
    began: float
    data: bytearray = field(default_factory=bytearray)


def read_frames(
    data: bytes, payloads: list[tuple[str, bytes]] | None = None
) -> tuple[list[EventFrame], DoneFrame | None]:
    """The events of a finished child, and its last word. `payloads` is given the artifacts, each with its kind."""
    events: list[EventFrame] = []
    done: DoneFrame | None = None
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        frame = FRAMES.validate_json(bytes(data[at + 4 : at + 4 + length]))
        at += 4 + length
        if isinstance(frame, ArtifactFrame):
            if payloads is not None:
                payloads.append((frame.ref.kind, bytes(data[at : at + frame.ref.bytes])))
            at += frame.ref.bytes
        elif isinstance(frame, DoneFrame):
            done = frame
        else:
            events.append(frame)
    return events, done


def start(file: Path, target: Target) -> tuple[int, Child]:
    from compiler.child import run_child

    source = file.read_text(encoding="utf-8")
    request = RunRequest(source=source, options=Options(target=target.id)).model_dump_json()
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        signal.alarm(LIMIT_SECONDS)
        scratch = tempfile.mkdtemp(prefix="aotscope-")
        run_child(request, write, "capture", None, scratch)
        os._exit(0)
    os.close(write)
    return read, Child(file.stem, pid, time.perf_counter())


def report(child: Child) -> dict[str, Any]:
    _, status = os.waitpid(child.pid, 0)
    payloads: list[tuple[str, bytes]] = []
    events, done = read_frames(bytes(child.data), payloads)
    kernels = [json.loads(payload) for kind, payload in payloads if kind == "kernels"]
    decisions = [json.loads(payload)["decisions"] for kind, payload in payloads if kind == "fidelity"]
    breaks = [json.loads(payload)["breaks"] for kind, payload in payloads if kind == "breaks"]
    bodies = [event.body for event in events]
    return {
        "outcome": done.outcome.model_dump(mode="json") if done else None,
        "exit": os.waitstatus_to_exitcode(status),
        "summary": next((body.summary for body in bodies if body.type == "summary"), None),
        "seconds": round(time.perf_counter() - child.began, 3),
        "failures": [
            [event.stage, event.body.cause.key, event.body.error]
            for event in events
            if event.body.type == "stage_failed"
        ],
        "stages": [[event.compile, event.stage] for event in events if event.body.type == "stage_finished"],
        "statements": [
            sum(made[name] for made in kernels)
            for name in ("statements", "statements_with_node", "statements_with_line")
        ],
        "decisions": [one for told in decisions for one in told],
        "breaks": [one for table in breaks for one in table],
        "printed": "".join(body.text for body in bodies if body.type == "printed" and body.stream == "stdout"),
        "findings": [[body.message.key, body.line] for body in bodies if body.type == "finding"],
    }


def main() -> None:
    name, out, *files = sys.argv[1:]
    target = BY_ID[name]
    from compiler.child import prepare

    prepare(target.id)
    from compiler import warm

    began = time.perf_counter()
    warm.warm_up(target.id)
    print(f"warm in {time.perf_counter() - began:.1f} s, threads {warm.threads()}", flush=True)
    assert warm.threads() == 1, "a fork is safe only with one thread"
    waiting = [Path(file) for file in reversed(files)]
    results: dict[str, Any] = {}
    with selectors.DefaultSelector() as selector:
        while waiting or selector.get_map():
            while waiting and len(selector.get_map()) < AT_ONCE:
                descriptor, child = start(waiting.pop(), target)
                selector.register(descriptor, selectors.EVENT_READ, child)
            for key, _ in selector.select():
                piece = os.read(key.fd, 1 << 20)
                if piece:
                    key.data.data += piece
                    continue
                selector.unregister(key.fd)
                os.close(key.fd)
                results[key.data.name] = report(key.data)
    Path(out).write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
