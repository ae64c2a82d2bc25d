"""What Python asks of torch about the device: `torch.cuda`, `torch.version`, Dynamo's view of it."""

from __future__ import annotations

import math
import types
from collections import defaultdict
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch

from compiler.targets import Device

_CUDA = "13.0"
_ROCM = "6.4.0"


def versions(device: Device) -> None:
    """Before any part of the compiler is imported: Inductor's defaults depend on it."""
    amd = device.vendor == "amd"
    torch.version.hip, torch.version.cuda = (_ROCM, None) if amd else (None, _CUDA)


def properties(device: Device, arch: str) -> types.SimpleNamespace:
    """What `torch.cuda.get_device_properties` says of it, as far as Inductor and Triton read it."""
    amd = device.vendor == "amd"
    major, minor = device.capability
    shared = int(device.shared_bytes_per_block.value)
    return types.SimpleNamespace(
        name=device.name,
        major=major,
        minor=minor,
        multi_processor_count=int(device.multiprocessors.value),
        regs_per_multiprocessor=int(device.registers_per_multiprocessor.value),
        max_threads_per_multi_processor=int(device.threads_per_multiprocessor.value),
        max_threads_per_block=int(device.threads_per_block.value),
        warp_size=device.warp_size,
        total_memory=int(device.memory_bytes.value),
        shared_memory_per_block=min(shared, 48 << 10),
        shared_memory_per_block_optin=shared,
        shared_memory_per_multiprocessor=int(device.shared_bytes_per_multiprocessor.value),
        L2_cache_size=int(device.l2_bytes.value),
        is_integrated=0,
        gcnArchName=f"{arch}:sramecc+:xnack-" if amd else "",
    )


def _constant(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


class Stream:
    """The device's one stream: nothing is launched on any, so that all are the same."""

    cuda_stream = stream_id = device_index = 0
    priority = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        self.device = torch.device("cuda", 0)

    def query(self) -> bool:
        return True

    def record_event(self, event: Event | None = None) -> Event:
        return event or Event()

    def synchronize(self) -> None: ...

    def wait_event(self, event: Event) -> None: ...

    def wait_stream(self, stream: Stream) -> None: ...

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None: ...


class Event:
    """Times nothing: what passes between two of them on a device that is not there is no number."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def record(self, stream: Stream | None = None) -> None: ...

    def wait(self, stream: Stream | None = None) -> None: ...

    def synchronize(self) -> None: ...

    def query(self) -> bool:
        return True

    def elapsed_time(self, end_event: Event) -> float:
        return math.nan


class CUDAGraph:
    """Records nothing: what is in it runs once, where it stands, and a replay does nothing more."""

    def capture_begin(self, *_: Any, **__: Any) -> None: ...

    def capture_end(self) -> None: ...

    def replay(self) -> None: ...

    def reset(self) -> None: ...


def _no_generator(*_: Any, **__: Any) -> torch.Tensor:
    with torch.utils._python_dispatch._disable_current_modes():
        return torch.zeros(16, dtype=torch.uint8, device="cpu")


def torch_cuda(device: Device, arch: str) -> None:
    """`torch.cuda` answers for one device of this kind, and does nothing."""
    amd = device.vendor == "amd"
    found = properties(device, arch)
    memory = found.total_memory
    answers: dict[str, Any] = {
        "is_available": True,
        "is_initialized": True,
        "device_count": 1,
        "current_device": 0,
        "get_device_properties": found,
        "get_device_capability": device.capability,
        "get_device_name": device.name,
        "is_bf16_supported": amd or device.capability >= (8, 0),
        "is_tf32_supported": not amd and device.capability >= (8, 0),
        "is_current_stream_capturing": False,
        "get_arch_list": [arch],
        "mem_get_info": (memory, memory),
        "memory_allocated": 0,
        "max_memory_allocated": 0,
        "memory_reserved": 0,
        "max_memory_reserved": 0,
        "reset_peak_memory_stats": None,
        "empty_cache": None,
        "set_device": None,
        "synchronize": None,
        "manual_seed": None,
        "manual_seed_all": None,
        "set_rng_state": None,
        "_exchange_device": 0,
        "_maybe_exchange_device": 0,
        "_lazy_init": None,
        "current_stream": Stream(),
        "default_stream": Stream(),
        "set_stream": None,
    }
    for name, value in answers.items():
        setattr(torch.cuda, name, _constant(value))
    torch.cuda.get_rng_state = _no_generator
    torch.cuda.Stream, torch.cuda.Event = Stream, Event
    torch.cuda.stream = lambda stream: stream or Stream()
    torch.cuda.CUDAGraph, torch.cuda.graph = CUDAGraph, lambda *_, **__: nullcontext()
    # Everything that is counted is nothing, by whatever name.
    torch.cuda.memory_stats = torch.cuda.memory.memory_stats = lambda *_, **__: defaultdict(
        int, num_ooms=0, num_alloc_retries=0
    )
    torch.cuda.default_generators = (torch.default_generator,)
    torch._C._cuda_cudaCachingAllocator_is_enabled = _constant(True)
    # Recurrent layers would lay out their weights for cuDNN, by their addresses.
    torch.backends.cudnn.is_acceptable = _constant(False)
    # Generated code that would tune itself imports it.
    torch._C._cuda_getCurrentRawStream = _constant(0)


def device_interface() -> None:
    """Dynamo's and Inductor's own table of devices."""
    from torch._dynamo.device_interface import CudaInterface, get_interface_for_device, register_interface_for_device

    get_interface_for_device("cpu")  # fills the table, which would otherwise be filled over ours
    own = ("current_device", "set_device", "device_count", "synchronize", "get_device_properties", "is_bf16_supported")
    members: dict[str, Any] = {name: staticmethod(getattr(torch.cuda, name)) for name in own}
    for name in ("exchange_device", "maybe_exchange_device", "get_raw_stream", "memory_allocated"):
        members[name] = staticmethod(_constant(0))
    interface = type("VirtualCudaInterface", (CudaInterface,), members)
    for place in ("cuda", "cuda:0"):
        register_interface_for_device(place, interface)
