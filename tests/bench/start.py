"""From asking for a run to its snippet's first line, by a warm fork server with the layers that work here / a bare fork of a
process that is warmed in the same way, to the child's first byte."""

from __future__ import annotations

import os
import time

from compiler.events import Options, RunRequest, StageName
from server.sandbox.launcher import Launcher
from server.sandbox.listener import listen
from server.sandbox.protocol import PhaseLimits, PhaseRequest
from tests.bench.ratios import Ratio, abba, ratio, spread

LIMITS = PhaseLimits(
    wall_seconds=60, memory_bytes=4 << 30, processes=64, file_bytes=1 << 30, disk_bytes=1 << 30, disk_entries=50_000
)
SOURCE = "print('first line')\nimport torch\nmodel = torch.nn.Linear(2, 2)\ninputs = (torch.ones(1, 2),)"
REQUEST = RunRequest(source=SOURCE, options=Options(native=False, until=StageName.DYNAMO))


def _bare() -> float:
    reading, writing = os.pipe()
    began = time.perf_counter()
    pid = os.fork()
    if not pid:
        os.write(writing, b"x")
        os._exit(0)
    os.read(reading, 1)
    seconds = time.perf_counter() - began
    os.close(reading)
    os.close(writing)
    os.waitpid(pid, 0)
    return seconds


def _ours(launcher: Launcher) -> float:
    began = time.perf_counter()
    child = launcher.start(REQUEST, PhaseRequest(phase="capture", limits=LIMITS))
    seconds = None
    for heard in listen(child, lambda: None):
        if seconds is None and b'"printed"' in heard.data:
            seconds = time.perf_counter() - began
    child.close()
    if seconds is None:
        raise RuntimeError("the snippet's line was not heard")
    return seconds


def measure(pairs: int) -> list[tuple[Ratio, str, str]]:
    """Of both layers, and of the inner alone: the ratio of wall times; in words, milliseconds of both arms; the isolation."""
    from compiler.warm import threads, warm_up

    warm_up()
    assert threads() == 1
    rows = []
    for outer in ("auto", "none"):
        launcher = Launcher("compiler.child", warm=True, isolation="auto", outer=outer)
        try:
            launcher.ready()
            assert launcher.isolation is not None
            layers = f"{launcher.isolation.outer} + {launcher.isolation.mode}"
            _ours(launcher)
            bases, news = abba(_bare, lambda launcher=launcher: _ours(launcher), pairs)
        finally:
            launcher.close()
        said = f"{layers}: {spread([1000 * value for value in news])}; bare fork: {spread([1000 * value for value in bases])}"
        rows.append((ratio(f"first line / bare fork: {layers}", bases, news, 3.0), said, layers))
    return rows
