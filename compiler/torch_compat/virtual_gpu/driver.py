"""Triton's driver for the target: it names the architecture and the limits, and launches nothing."""

from __future__ import annotations

import types
from typing import Any

from compiler.targets import Device


def activate(device: Device, arch: str) -> None:
    """Make Triton compile for it. The driver is of Triton's own class, without its constructor, because Inductor puts any other
    one out of force."""
    import triton
    from triton.backends.compiler import GPUTarget

    amd = device.vendor == "amd"
    major, minor = device.capability
    target = GPUTarget("hip", arch, device.warp_size) if amd else GPUTarget("cuda", major * 10 + minor, 32)
    facts = {
        "max_shared_mem": int(device.shared_bytes_per_block.value),
        "multiprocessor_count": int(device.multiprocessors.value),
        "max_num_regs": int(device.registers_per_multiprocessor.value),
        "warpSize": device.warp_size,
        "arch": arch,
    }
    base = triton.backends.backends["amd" if amd else "nvidia"].driver

    class Driver(base):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            self.utils = types.SimpleNamespace(get_device_properties=lambda _: facts)

        def get_current_target(self) -> Any:
            return target

        def get_current_device(self) -> int:
            return 0

        def set_current_device(self, device: int) -> None:
            pass

        def get_current_stream(self, device: int) -> int:
            return 0

        def get_device_capability(self, device: int = 0) -> tuple[int, int]:
            return major, minor

    triton.runtime.driver.set_active(Driver())
