"""Warm-up of the process that children are forked from: everything torch does once, done before the first run.

What stays must be what a fork finds as in a fresh process: no caches of compiled code, no counters, one thread.
"""

from __future__ import annotations

import os
import platform
from contextlib import nullcontext
from importlib.metadata import PackageNotFoundError, version

import torch

# A child must not spend its first second on imports, so all that a run may need is imported here.
import compiler.metal.build
import compiler.pipeline
from compiler.events import Engine
from compiler.targets import BY_ID, TargetId
from compiler.torch_compat import triton_build, warming
from compiler.torch_compat.headers import read_headers
from compiler.torch_compat.virtual_gpu.fakes import fake_world


def warm_up(target: TargetId = "cpu") -> None:
    """Probe the CPU (this runs the C++ compiler where its result is not cached), build the pattern tables, and compile four
    trivial models through the whole of Inductor, interpreted. Leaves one thread, and torch's counters empty. `target` is the one
    that this process was prepared for (`compiler.child.prepare`)."""
    torch.set_num_threads(1)
    with warming.quiet():
        warming.probe_cpu()
        if BY_ID[target].kind != "cpu":
            triton_build.warm_up()
        if BY_ID[target].kind == "gpu":
            # Whatever is compiled asks the GPU what it is, and a process that has touched it cannot be forked: imports must do.
            return
        warming.build_pattern_tables(BY_ID[target].torch_device)
        with fake_world() if BY_ID[target].kind == "virtual" else nullcontext():
            warming.compile_trivial_models()
    warming.forget()


def engine() -> Engine:
    """What runs the snippets."""
    try:
        own = version("aotscope")
    except PackageNotFoundError:
        own = "0"
    return Engine(
        aotscope=own,
        torch=torch.__version__,
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}",
        cpu=warming.vector_instructions(),
        threads=torch.get_num_threads(),
    )


def threads() -> int:
    """Threads of this process: a fork is safe only at one."""
    return len(os.listdir("/proc/self/task"))


__all__ = ["compiler", "engine", "read_headers", "threads", "warm_up"]
