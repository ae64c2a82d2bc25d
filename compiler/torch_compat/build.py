"""The C++ compiler as Inductor finds and uses it, and what torch counts of its own compile time."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch._inductor.config as inductor_config
from torch._dynamo.utils import calculate_time_spent
from torch._inductor.cpp_builder import CppBuilder, get_cpp_compiler
from torch._inductor.exc import CppCompileError, InvalidCxxCompiler


def cpp_compiler() -> str | None:
    """The C++ compiler that Inductor would use, None when there is none."""
    try:
        return str(get_cpp_compiler())
    except InvalidCxxCompiler:
        return None


@dataclass
class Spent:
    """Seconds: of all compiling as torch counts it, and in it of the C++ compiler. Complete when its context has ended."""

    compiling: float = 0.0
    native: float = 0.0


@contextmanager
def time_spent() -> Iterator[Spent]:
    """Count until the context ends."""
    spent = Spent()
    build = CppBuilder.build
    before = _compiling()

    def timed(self: CppBuilder) -> None:
        start = time.perf_counter()
        try:
            build(self)
        finally:
            spent.native += time.perf_counter() - start

    CppBuilder.build = timed
    try:
        yield spent
    finally:
        CppBuilder.build = build
        spent.compiling = _compiling() - before


def _compiling() -> float:
    return float(calculate_time_spent()["total_wall_time"])


def is_build_failure(error: BaseException) -> bool:
    """Whether an exception, or what caused it, is the C++ compiler's."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, (CppCompileError, InvalidCxxCompiler)) or "CppCompileError" in str(seen)[:200]:
            return True
        seen = getattr(seen, "inner_exception", None) or seen.__cause__ or seen.__context__
    return False


def draws_as_eager() -> bool:
    """Whether Inductor was told to draw random numbers as eager does (`inductor.fallback_random`)."""
    return bool(inductor_config.fallback_random)


def told_line(text: str, file: str) -> int | None:
    """The last line of `file` in a text of torch's that holds a traceback: a node's stack trace, an exception's message."""
    found = re.findall(rf'File "{re.escape(file)}", line (\d+)', text)
    return int(found[-1]) if found else None


def dynamos_line(error: BaseException, file: str) -> int | None:
    """The line of `file` that Dynamo was at when it raised: the exception carries it, and its traceback does not."""
    frames = getattr(error, "real_stack", None) or getattr(error.__cause__, "real_stack", None) or ()
    lines = [frame.lineno for frame in frames if frame.filename == file]
    return lines[-1] if lines else None
