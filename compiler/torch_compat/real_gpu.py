"""The GPU of this machine: whether it is there, the snippet's world on it, its own clock, and its kernels' times.

A process that has touched CUDA cannot be forked: what children are forked from never calls anything in here, and what is done
aside in a fork on the CPU (`compiler/fork.py`) is refused once `in_use` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from compiler.errors import AotscopeError
from compiler.text import message

_MILLI = 1e-3
_MICRO = 1e-6


class NoGpuError(AotscopeError):
    """torch sees no GPU in this process."""


@dataclass(frozen=True)
class Present:
    """The first GPU, as its driver calls it; `memory_bytes` is all of its memory."""

    name: str
    memory_bytes: int


def in_use() -> bool:
    """Whether this process has a CUDA context, without making one."""
    return bool(torch.cuda.is_initialized())


def present() -> Present:
    """The GPU that the snippet's tensors are on. Touches it. Raises NoGpuError."""
    if torch.version.cuda is None or not torch.cuda.is_available():
        built = torch.version.cuda or "-"
        raise NoGpuError(message("gpu.absent", torch=torch.__version__, cuda=built))
    found = torch.cuda.get_device_properties(0)
    return Present(str(found.name), int(found.total_memory))


@contextmanager
def gpu_world() -> Iterator[Present]:
    """Until it ends, tensors are made on the GPU unless the snippet says otherwise. Raises NoGpuError."""
    found = present()
    with torch.device("cuda"):
        yield found


def device_seconds(step: Callable[[], object]) -> float:
    """Seconds from before the step's first kernel to after its last, by the GPU's own clock (CUDA events, half a microsecond
    fine). The queue is empty when it begins, so launch overhead that kernels do not hide is in it."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    begin.record()
    kept = step()
    end.record()
    end.synchronize()
    del kept
    return float(begin.elapsed_time(end)) * _MILLI


def kernels_on_device(step: Callable[[], object], steps: int) -> dict[str, tuple[float, int]]:
    """Name of each kernel, copy or fill that the GPU did in `steps` repetitions → seconds in all of them, and how often. From
    torch's profiler (CUPTI)."""
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
    return by_name(profiler.events())


def by_name(events: Any) -> dict[str, tuple[float, int]]:
    """Of the profiler's events those of the device: seconds and count by name."""
    found: dict[str, tuple[float, int]] = {}
    for event in events:
        if event.device_type == DeviceType.CUDA:
            seconds, count = found.get(event.name, (0.0, 0))
            found[event.name] = seconds + event.time_range.elapsed_us() * _MICRO, count + 1
    return found


def generator_state() -> bytes:
    """The state of the GPU's random numbers."""
    return bytes(torch.cuda.get_rng_state().numpy())
