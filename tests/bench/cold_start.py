"""Submit → every stage up to generated code shown, warm worker / the plain script, cold.

The plain script is what a person would run: a fresh Python imports torch, compiles the model with the C++ compiler into an
empty cache, and runs forward and backward once. Ours is the supervisor with a warmed fork server, from the request to the last
event of the codegen stage.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from compiler.events import ArtifactRef, Event, Options, RunRequest, StageName
from server.sandbox.launcher import Launcher
from server.sandbox.supervisor import Supervisor
from server.settings import load
from tests.bench.overhead import MODELS

PLAIN = """
import runpy, torch
names = runpy.run_path({path!r})
model, kwargs = names["model"], names.get("kwargs", {{}})
compiled = torch.compile(model, **names.get("compile_kwargs", {{}}))
for arguments in names.get("calls", [names["inputs"]]):
    out = compiled(*arguments, **kwargs)
    loss = names.get("loss") or (lambda o: o.sum() if isinstance(o, torch.Tensor) else None)
    value = loss(out)
    if isinstance(value, torch.Tensor) and value.requires_grad:
        value.backward()
"""


class _Listener:
    """Notes when the codegen stage was last heard of."""

    def __init__(self) -> None:
        self.generated = 0.0
        self.terminal = ""

    def artifact(self, ref: ArtifactRef, payload: bytes) -> None:
        pass

    def events(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.stage is StageName.CODEGEN:
                self.generated = time.perf_counter()
            self.terminal = event.body.type


def plain_seconds(path: Path) -> float | None:
    """Seconds of the plain script in a fresh process with an empty cache; None when the script itself fails."""
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"TORCHINDUCTOR_CACHE_DIR": cache, "TMPDIR": cache}
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", PLAIN.format(path=str(path))], env=environment, capture_output=True, check=False
        )
        return time.perf_counter() - began if done.returncode == 0 else None


def warm_seconds(launcher: Launcher, path: Path) -> float | None:
    """Seconds from the request to the last event of the codegen stage; None when the model never comes to it."""
    listener = _Listener()
    request = RunRequest(source=path.read_text(), options=Options(native=False))
    began = time.perf_counter()
    Supervisor("bench", request, launcher, listener, load(), lambda: False).run()
    return listener.generated - began if listener.generated else None


def measure(names: Sequence[str]) -> list[tuple[str, float, float]]:
    """(model, seconds of ours, seconds of the plain script) of every model that has both."""
    launcher = Launcher("compiler.child", warm=True)
    rows = []
    try:
        launcher.ready()
        for name in names:
            path = MODELS / f"{name}.py"
            ours = warm_seconds(launcher, path)
            plain = plain_seconds(path) if ours is not None else None
            if ours is not None and plain is not None:
                rows.append((name, ours, plain))
    finally:
        launcher.close()
    return rows
