"""How many warps of a kernel fit on a multiprocessor at once: the vendors' published formulas, from compiled figures.

NVIDIA: the arithmetic of CUDA's own occupancy calculator (`cuda_occupancy.h` of the CUDA toolkit, also in Triton's wheel; the
tests run it beside ours) with the limits of the "Technical Specifications per Compute Capability" in the CUDA C++ Programming
Guide. Its limit by a block's virtual resources is not counted: Triton's files do not say them. AMD: LLVM's AMDGPU subtarget
(`AMDGPUBaseInfo.cpp`: waves by vector and scalar registers, workgroups per compute unit; `AMDGPUAsmPrinter.cpp`: local memory in
units of 128 words) for gfx90a and gfx942, whose file of vector registers (512 KiB of a compute unit: 512 a lane and SIMD) and
64 KiB of local memory are in the ROCm documentation's table of GPUs.
"""

from __future__ import annotations

from dataclasses import dataclass

from compiler.ir.metal import Occupancy, OccupancyLimit
from compiler.targets import Device

NVIDIA_SOURCE = (
    "CUDA toolkit, cuda_occupancy.h; CUDA C++ Programming Guide, technical specifications per compute capability"
)
AMD_SOURCE = "LLVM AMDGPU subtarget, AMDGPUBaseInfo.cpp, gfx90a and gfx942"

# Resident blocks per multiprocessor, by compute capability (CUDA C++ Programming Guide).
_BLOCKS = {(7, 5): 16, (8, 0): 32, (8, 9): 24, (9, 0): 32, (10, 0): 32}
# Registers are given to a warp in units of 256, and warps take them in fours: one for each part of a multiprocessor.
_REGISTER_UNIT = 256
_WARP_UNIT = 4
# From compute capability 8.0 on, shared memory is given in units of 128 bytes, and 1 KiB of each block is the system's.
_SHARED_UNIT_NEW, _SHARED_UNIT_OLD = 128, 256
SHARED_RESERVED = 1024

_AMD_SIMDS = 4
_AMD_WAVES_PER_SIMD = 8
_AMD_VECTOR_REGISTERS = 512
_AMD_VECTOR_UNIT = 8
_AMD_GROUPS_PER_UNIT = 16
_AMD_SHARED_UNIT = 512
# Scalar registers of a wave → waves of a SIMD (gfx8 and gfx9).
_AMD_SCALAR = ((80, 10), (88, 9), (100, 8))


@dataclass(frozen=True, slots=True)
class Usage:
    """What one block takes. `threads` per block; registers per thread (scalar ones per wave); `shared` bytes per block without
    what the system reserves."""

    threads: int
    registers: int
    shared: int
    scalar_registers: int = 0


def reserved_shared(device: Device) -> int:
    """Bytes of shared memory that the system takes of each block."""
    return SHARED_RESERVED if device.vendor == "nvidia" and device.capability >= (8, 0) else 0


def occupancy(device: Device, usage: Usage) -> Occupancy | None:
    """None for a compute capability whose limits are not in the table."""
    if device.vendor == "amd":
        return _amd(device, usage)
    most_blocks = _BLOCKS.get(device.capability)
    return None if most_blocks is None else _nvidia(device, usage, most_blocks)


def _nvidia(device: Device, usage: Usage, most_blocks: int) -> Occupancy:
    most_warps = int(device.threads_per_multiprocessor.value) // device.warp_size
    warps = _up(usage.threads, device.warp_size) // device.warp_size
    limits = [
        OccupancyLimit(resource="threads", blocks=most_warps // warps, formula=f"⌊{most_warps} / {warps}⌋"),
        OccupancyLimit(resource="blocks", blocks=most_blocks, formula=f"{most_blocks}"),
    ]
    total = int(device.registers_per_multiprocessor.value)
    if usage.registers:
        each = _up(usage.registers * device.warp_size, _REGISTER_UNIT)
        fit = total // each // _WARP_UNIT * _WARP_UNIT
        formula = f"⌊{total} / ⌈{usage.registers} × {device.warp_size}⌉{_REGISTER_UNIT}⌋{_WARP_UNIT} = {fit}; ⌊{fit} / {warps}⌋"
        limits.append(OccupancyLimit(resource="registers", blocks=fit // warps, formula=formula))
    limits.append(_nvidia_shared(device, usage))
    return _least(limits, warps, most_warps, NVIDIA_SOURCE)


def _nvidia_shared(device: Device, usage: Usage) -> OccupancyLimit:
    reserved = reserved_shared(device)
    unit = _SHARED_UNIT_NEW if reserved else _SHARED_UNIT_OLD
    each = _up(usage.shared + reserved, unit)
    total = int(device.shared_bytes_per_multiprocessor.value)
    formula = f"⌊{total} / ⌈{usage.shared} + {reserved}⌉{unit}⌋"
    return OccupancyLimit(resource="shared", blocks=total // each if each else None, formula=formula)


def _amd(device: Device, usage: Usage) -> Occupancy:
    waves = _up(usage.threads, device.warp_size) // device.warp_size
    most = _AMD_SIMDS * _AMD_WAVES_PER_SIMD
    # A block of one wave is limited by the waves alone.
    most_blocks = most if waves == 1 else _AMD_GROUPS_PER_UNIT
    limits = [
        OccupancyLimit(resource="threads", blocks=most // waves, formula=f"⌊{most} / {waves}⌋"),
        OccupancyLimit(resource="blocks", blocks=most_blocks, formula=f"{most_blocks}"),
    ]
    if usage.registers:
        each = _up(usage.registers, _AMD_VECTOR_UNIT)
        fit = min(_AMD_WAVES_PER_SIMD, _AMD_VECTOR_REGISTERS // each)
        formula = (
            f"min({_AMD_WAVES_PER_SIMD}, ⌊{_AMD_VECTOR_REGISTERS} / ⌈{usage.registers}⌉{_AMD_VECTOR_UNIT}⌋) = {fit}; "
            f"⌊{_AMD_SIMDS} × {fit} / {waves}⌋"
        )
        limits.append(OccupancyLimit(resource="registers", blocks=_AMD_SIMDS * fit // waves, formula=formula))
    if usage.scalar_registers:
        fit = next((count for registers, count in _AMD_SCALAR if usage.scalar_registers <= registers), 7)
        fit = min(fit, _AMD_WAVES_PER_SIMD)
        limits.append(
            OccupancyLimit(
                resource="scalar_registers",
                blocks=_AMD_SIMDS * fit // waves,
                formula=f"{usage.scalar_registers} → {fit}; ⌊{_AMD_SIMDS} × {fit} / {waves}⌋",
            )
        )
    each = _up(usage.shared, _AMD_SHARED_UNIT)
    total = int(device.shared_bytes_per_multiprocessor.value)
    formula = f"⌊{total} / ⌈{usage.shared}⌉{_AMD_SHARED_UNIT}⌋"
    limits.append(OccupancyLimit(resource="shared", blocks=total // each if each else None, formula=formula))
    return _least(limits, waves, most, AMD_SOURCE)


def _least(limits: list[OccupancyLimit], warps: int, most_warps: int, source: str) -> Occupancy:
    blocks = min(limit.blocks for limit in limits if limit.blocks is not None)
    return Occupancy(
        warps_per_block=warps,
        blocks=blocks,
        warps=blocks * warps,
        most_warps=most_warps,
        limits=limits,
        source=source,
    )


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
