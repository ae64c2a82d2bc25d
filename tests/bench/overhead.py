"""Compile with every stage captured / compile with none, in forks of one warmed process.

Both arms load the snippet, compile it through all of Inductor without the C++ compiler, and run it. The captured arm installs
every stage and sends its frames into a pipe that the parent drains, as in a real run. AOTAutograd's steps are traced again
after the run, and are no part of the compile: they are left out, but for one row. A third arm repeats the first: its ratio to
itself is the noise.
"""

from __future__ import annotations

import os
import struct
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from tests.bench.ratios import Ratio, abba, ratio

MODELS = Path(__file__).parent.parent / "corpus" / "models"
NAMES = ("mlp", "gpt2_block", "llama_block", "resnet_block")


def _raw(source: str, path: Path) -> None:
    import torch

    from compiler.events import Mode, RunRequest
    from compiler.snippet import load, run_calls, understand
    from compiler.torch_compat import settings
    from compiler.torch_compat.compiles import current_compile
    from compiler.torch_compat.interpreter import interpreted

    with ExitStack() as stack:
        stack.enter_context(settings.no_caches())
        stack.enter_context(interpreted(current_compile, lambda _module: None))
        loaded = load(understand(RunRequest(source=source), path))
        stack.enter_context(settings.applied(loaded.config))
        run_calls(loaded, torch.compile(loaded.model, **loaded.compile_kwargs), Mode.AUTO, keep=False)


def _captured(source: str, path: Path, pipe: int, replay: bool) -> None:
    from compiler import pipeline
    from compiler.child import PipeSink
    from compiler.events import Options, RunRequest, StageName
    from compiler.pipeline import capture

    if not replay:
        pipeline.aot_steps.tell = lambda _session: None
    options = Options(native=False, until=StageName.CODEGEN)
    outcome = capture(RunRequest(source=source, options=options), PipeSink(pipe), path=path)
    assert outcome.type == "finished", outcome


def _forked(work: Callable[[int], None]) -> tuple[float, float]:
    """Run `work` in a fork with a pipe that is drained here: seconds of the wall, and of the child's CPU."""
    reading, writing = os.pipe()
    result, report = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(reading)
            wall, cpu = time.perf_counter(), time.process_time()
            work(writing)
            os.write(report, struct.pack("dd", time.perf_counter() - wall, time.process_time() - cpu))
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    os.close(report)
    while os.read(reading, 1 << 16):
        pass
    _, status = os.waitpid(pid, 0)
    data = os.read(result, 16)
    os.close(reading)
    os.close(result)
    if status != 0:
        raise RuntimeError(f"a sample ended with status {status}")
    wall_seconds, cpu_seconds = struct.unpack("dd", data)
    return wall_seconds, cpu_seconds


def measure(pairs: int) -> list[Ratio]:
    """CPU-time ratios of each model, and the noise. Must run in a process of its own: it warms torch up and forks."""
    from compiler.warm import threads, warm_up

    warm_up()
    assert threads() == 1
    rows = []
    noise: tuple[list[float], list[float]] = ([], [])
    for name in NAMES:
        source = (MODELS / f"{name}.py").read_text()
        folder = Path(tempfile.mkdtemp(prefix="aotscope-bench-"))
        path = folder / "snippet.py"
        path.write_text(source)

        def raw(source: str = source, path: Path = path) -> float:
            return _forked(lambda _pipe: _raw(source, path))[1]

        def captured(source: str = source, path: Path = path, replay: bool = False) -> float:
            return _forked(lambda pipe: _captured(source, path, pipe, replay))[1]

        raw()
        captured()
        bases, news = abba(raw, captured, pairs)
        rows.append(ratio(f"every stage captured / none: {name}", bases, news, 1.15))
        if name == "gpt2_block":
            bases, news = abba(raw, partial(captured, replay=True), pairs)
            rows.append(ratio(f"the same and AOTAutograd's steps, traced again: {name}", bases, news))
        again, once_more = abba(raw, raw, max(4, pairs // 4))
        noise[0].extend(again)
        noise[1].extend(once_more)
    return [*rows, ratio("none / none (the noise)", *noise)]
