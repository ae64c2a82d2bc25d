"""Snippets compiled with every stage's hooks and with none, each in a fork of one warmed parent, watched by torch's own trace.

`python -m tests.compiler.unperturbed_run RESULTS SNIPPET…` keeps {"plain", "watched", "native"} for each snippet in the folder
RESULTS (`kept.py`), each {"trace", "error"}. In the first two Inductor's code is interpreted, as it is in the capture; in the
third, which the snippets in NATIVE have, torch is left wholly as it is, with its C++ compiler. The plain arms' traces are
written by torch's own handler, to a file.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from compiler.events import Options, RunRequest
from tests.compiler import kept

LIMIT_SECONDS = 240
# With torch left wholly as it is, its C++ compiler too.
NATIVE = ("mlp", "gpt2_block")


@contextlib.contextmanager
def torchs_own_trace(folder: str) -> Iterator[None]:
    """What TORCH_TRACE puts in place when torch is imported."""
    from torch._logging import _internal, structured

    handler = _internal.LazyTraceHandler(folder)
    handler.setFormatter(_internal.TorchLogsFormatter(trace=True))
    structured.INTERN_TABLE.clear()
    _internal.trace_log.addHandler(handler)
    try:
        yield
    finally:
        _internal.trace_log.removeHandler(handler)
        handler.close()


def plain(request: RunRequest, file: Path, native: bool) -> dict[str, Any]:
    import torch

    from compiler.snippet import load, run_calls, run_scenario, run_script, understand
    from compiler.torch_compat import settings
    from compiler.torch_compat.compiles import current_compile
    from compiler.torch_compat.interpreter import interpreted

    error = ""
    snippet = understand(request, file)
    with ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        enter = stack.enter_context
        enter(contextlib.redirect_stdout(io.StringIO()))
        enter(contextlib.redirect_stderr(io.StringIO()))
        enter(settings.no_caches())
        if not native:
            enter(interpreted(current_compile, lambda _module: None))
        try:
            if snippet.form == "script":
                with torchs_own_trace(folder):
                    run_script(snippet, compile_identity=False, before_call=lambda *_: None, keep=False)
            else:
                loaded = load(snippet)
                with settings.applied(loaded.config), torchs_own_trace(folder):
                    compiled = torch.compile(loaded.model, **loaded.compile_kwargs)
                    if loaded.scenario is not None:
                        run_scenario(loaded, compiled)
                    else:
                        run_calls(loaded, compiled, request.options.mode, keep=False)
        except (Exception, SystemExit) as fault:  # noqa: BLE001 - the snippet's own, in both arms
            error = type(fault).__name__
        (log,) = Path(folder).glob("*.log")
        return {"trace": log.read_text(encoding="utf-8"), "error": error}


def watched(request: RunRequest, file: Path) -> dict[str, Any]:
    from compiler.pipeline import capture
    from tests.compiler.capturing import Captured

    seen = Captured()
    seen.outcome = capture(request, seen, path=file)
    (trace,) = seen.artifacts("trace")
    assert not trace["cut"]
    return {"trace": trace["text"], "error": seen.summary()["error"] or ""}


def arms(file: Path) -> dict[str, Any] | None:
    request = RunRequest(source=file.read_text(encoding="utf-8"), options=Options(trace=True))
    works = {"plain": partial(plain, request, file, native=False), "watched": partial(watched, request, file)}
    if file.stem in NATIVE:
        works["native"] = partial(plain, request, file, native=True)
    found = {arm: kept.in_fork(work, LIMIT_SECONDS) for arm, work in works.items()}
    return None if None in found.values() else found


def main(results: Path, files: list[Path]) -> None:
    from compiler import warm

    warm.warm_up()
    warnings.simplefilter("ignore")
    kept.each(results, files, arms)


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
