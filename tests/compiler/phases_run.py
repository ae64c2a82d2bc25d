"""Snippets through both phases, each phase in a fork of one warmed parent, as a worker does it.

`python -m tests.compiler.phases_run OUT JOBS`: JOBS is a JSON list of {"name", "phase", "source" or "file", "options",
"captured"}, with phase one of capture, native, native_without_compiler, native_with_a_wrong_kernel (tanh 1 % too large).
"captured" is what the native phase is held against, or the name of an earlier job whose findings are. OUT becomes one JSON
object: name → {"outcome", "events", "artifacts", "captured"}, an artifact being its event with its payload decoded.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from compiler.events import ArtifactFrame, Captured, EventFrame, RunRequest

ROOT = Path(__file__).parents[2]
MODELS = ROOT / "tests" / "corpus" / "models"


def run_jobs(jobs: list[dict[str, Any]], folder: Path, limit_seconds: float) -> dict[str, Any]:
    """Run the jobs in a process of their own; what OUT holds. For tests."""
    out, todo = folder / "out.json", folder / "jobs.json"
    todo.write_text(json.dumps(jobs), encoding="utf-8")
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.compiler.phases_run", str(out), str(todo)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, timeout=limit_seconds, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return found


class Keeping:
    """A sink that remembers."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.artifacts: list[dict[str, Any]] = []
        self._payloads: dict[str, Any] = {}

    def event(self, frame: EventFrame) -> None:
        told = {"compile": frame.compile, "stage": frame.stage, **frame.body.model_dump(mode="json")}
        if frame.body.type == "artifact":
            self.artifacts.append(told | {"payload": self._payloads[frame.body.artifact.hash]})
        else:
            self.events.append(told)

    def artifact(self, frame: ArtifactFrame, payload: bytes) -> None:
        self._payloads[frame.ref.hash] = json.loads(payload)


def perform(job: dict[str, Any]) -> dict[str, Any]:
    import torch._inductor.config as inductor_config
    from torch._inductor.codegen.cpp import CppVecOverrides

    from compiler.native import native
    from compiler.pipeline import capture

    source = job["source"] if "source" in job else Path(job["file"]).read_text(encoding="utf-8")
    request = RunRequest.model_validate({"source": source, "options": job.get("options", {})})
    sink = Keeping()
    root = Path(tempfile.mkdtemp(prefix="aotscope-test-"))
    if job["phase"] == "native_without_compiler":
        inductor_config.cpp.cxx = (None, "/nowhere/g++")
    if job["phase"] == "native_with_a_wrong_kernel":
        wrong = "({}.tanh() * at::vec::Vectorized<float>(1.01f))"
        CppVecOverrides.tanh = staticmethod(wrong.format)
    found: list[Captured] = []
    if job["phase"] == "capture":
        outcome = capture(request, sink, root=root, found=found.append)
    else:
        known = Captured.model_validate(job["captured"]) if job.get("captured") else None
        outcome = native(request, sink, root=root, captured=known)
    return {
        "outcome": outcome.model_dump(mode="json"),
        "events": sink.events,
        "artifacts": sink.artifacts,
        "captured": found[0].model_dump(mode="json") if found else None,
    }


def main() -> None:
    out, todo = sys.argv[1:]
    from compiler import warm

    warm.warm_up()
    results: dict[str, Any] = {}
    for job in json.loads(Path(todo).read_text(encoding="utf-8")):
        if isinstance(job.get("captured"), str):
            job["captured"] = results[job["captured"]]["captured"]
        with tempfile.NamedTemporaryFile() as file:
            child = os.fork()
            if child == 0:
                try:
                    Path(file.name).write_text(json.dumps(perform(job)), encoding="utf-8")
                finally:
                    sys.stderr.flush()
                    os._exit(0)
            os.waitpid(child, 0)
            text = Path(file.name).read_text(encoding="utf-8")
            results[job["name"]] = json.loads(text) if text else None
    Path(out).write_text(json.dumps(results), encoding="utf-8")


if __name__ == "__main__":
    main()
