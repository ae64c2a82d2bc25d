"""A cold compile of one kernel with the precompiled headers that runs read / without any, in forks of one warmed process.
CPU time, the C++ compiler's included."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from tests.bench.ratios import Ratio, abba, ratio


def _compile() -> None:
    import torch

    with torch.no_grad():
        torch.compile(lambda x: (x.cos() * 3).sum(1))(torch.ones(8, 8))


def _sample(folder: Path | None) -> float:
    pid = os.fork()
    if not pid:
        code = 1
        try:
            import torch._inductor.config as config

            from compiler.torch_compat.headers import read_headers

            os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp(prefix="aotscope-bench-")
            config.cpp_cache_precompile_headers = folder is not None
            if folder is not None:
                read_headers(folder)
            _compile()
            code = 0
        finally:
            os._exit(code)
    _pid, status, usage = os.wait4(pid, 0)
    if status:
        raise RuntimeError(f"a sample ended with status {status}")
    return usage.ru_utime + usage.ru_stime


def measure(pairs: int) -> Ratio:
    """Must run in a process of its own: it warms torch up and forks. The headers are built first, and not counted."""
    from compiler.torch_compat.headers import build_headers
    from compiler.warm import warm_up

    warm_up()
    folder = Path(tempfile.mkdtemp(prefix="aotscope-bench-")) / "headers"
    if not (pid := os.fork()):
        code = 1
        try:
            build_headers(folder)
            code = 0
        finally:
            os._exit(code)
    if os.waitpid(pid, 0)[1]:
        raise RuntimeError("the headers could not be built")
    bases, news = abba(lambda: _sample(None), lambda: _sample(folder), pairs)
    return ratio("cold compile of one kernel: headers / none", bases, news)
