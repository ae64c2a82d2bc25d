"""The corpus through real children: one warmed parent, a fork a snippet, frames over a pipe, as a worker does it.

`python -m tests.compiler.corpus_run TARGET FOLDER SNIPPET…` compiles for TARGET and writes what each run came to, as soon as it
is known, into FOLDER/TARGET/NAME.json. What stands there already, of the same code and snippet, is not run again: a run that was
ended halfway goes on where it was. Two children run at once. The parent has one thread, and nothing of pytest in it.

Tests call `run_corpus`; with AOTSCOPE_CORPUS_RESULTS, the folder is that one and is kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import selectors
import signal
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from compiler.events import FRAMES, ArtifactFrame, DoneFrame, EventFrame, Options, RunRequest
from compiler.targets import BY_ID, Target

ROOT = Path(__file__).parents[2]
AT_ONCE = 2
LIMIT_SECONDS = 240  # of one child; a quiet machine needs 4 s


@dataclass
class Child:
    file: Path
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
    return read, Child(file, pid, time.perf_counter())


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


@cache
def _compiler() -> bytes:
    """A digest of the compiler's own files and the versions under it, as this process found them first."""
    digest = hashlib.sha256()
    for name in ("torch", "triton", "numpy"):
        try:
            digest.update(f"{name} {metadata.version(name)}\n".encode())
        except metadata.PackageNotFoundError:
            digest.update(f"no {name}\n".encode())
    compiler = ROOT / "compiler"
    for own in sorted((*compiler.rglob("*.py"), *compiler.rglob("*.cpp"), Path(__file__))):
        if "metal" not in own.relative_to(compiler.parent).parts:  # a phase of its own, which is not run here
            digest.update(own.read_bytes())
    return digest.digest()


def code_of(file: Path) -> str:
    """A digest of what a result depends on, the machine aside."""
    return hashlib.sha256(_compiler() + file.read_bytes()).hexdigest()


def kept(folder: Path, file: Path) -> dict[str, Any] | None:
    """What is known of the snippet, by the code as it is now."""
    try:
        found: dict[str, Any] = json.loads((folder / f"{file.stem}.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return found if found["code"] == code_of(file) else None


def keep(folder: Path, file: Path, result: dict[str, Any]) -> None:
    part = folder / f"{file.stem}.part"
    part.write_text(json.dumps(result | {"code": code_of(file)}, indent=1), encoding="utf-8")
    part.replace(folder / f"{file.stem}.json")  # whole or not at all


def run_corpus(target: str, folder: Path, files: list[Path], seconds: float) -> dict[str, dict[str, Any]]:
    """The snippet's name → what its run came to, for each: through a process of its own for what is not known yet."""
    folder = Path(os.environ.get("AOTSCOPE_CORPUS_RESULTS") or folder)
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.compiler.corpus_run", target, str(folder), *map(str, files)]
    done = subprocess.run(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True, timeout=seconds)
    assert done.returncode == 0, done.stderr[-3000:]
    results = {file.stem: kept(folder / target, file) for file in files}
    return {name: result for name, result in results.items() if result is not None}


def main() -> None:
    name, out, *files = sys.argv[1:]
    target = BY_ID[name]
    folder = Path(out) / target.id
    folder.mkdir(parents=True, exist_ok=True)
    known = {file: kept(folder, Path(file)) for file in files}
    # Whose process was ended, by its limit or by somebody, is tried again.
    waiting = [Path(file) for file in reversed(files) if not (found := known[file]) or found["outcome"] is None]
    if not waiting:
        return
    from compiler.child import prepare

    prepare(target.id)
    from compiler import warm

    began = time.perf_counter()
    warm.warm_up(target.id)
    print(f"warm in {time.perf_counter() - began:.1f} s, threads {warm.threads()}", flush=True)
    assert warm.threads() == 1, "a fork is safe only with one thread"
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
                keep(folder, key.data.file, report(key.data))


if __name__ == "__main__":
    main()
