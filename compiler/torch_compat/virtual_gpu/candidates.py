"""How many configurations Inductor would time for a kernel, by its own heuristics."""

from __future__ import annotations

import re

from torch._inductor.codecache import PyCodeCache

_KERNEL = re.compile(r"async_compile\.triton\('([^']+)', '''(.*?)'''", re.DOTALL)


def candidates(code: str) -> dict[str, int]:
    """Kernel of a generated file → the number of its configurations. Builds each kernel's autotuner, compiles nothing."""
    return {name: len(getattr(PyCodeCache.load(source), name).configs) for name, source in _KERNEL.findall(code)}
