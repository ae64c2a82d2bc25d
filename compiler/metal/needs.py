"""What a compiled kernel needs of the device, as the assembler, the CUDA tools and Triton say it."""

from __future__ import annotations

import re

from compiler.ir.metal import Need
from compiler.metal.occupancy import Usage, reserved_shared
from compiler.targets import Device
from compiler.torch_compat.triton_build import Compiled

_PTXAS = "ptxas -v"
_CUOBJDUMP = "cuobjdump -res-usage"
_TRITON = "Triton's metadata"
_GUIDE = "CUDA C++ Programming Guide: of each block, from compute capability 8.0 on"
_AMD = "metadata of the AMDGPU code object"

_AMD_FIELDS = (
    ("vector_registers", "vgpr_count"),
    ("accumulation_registers", "agpr_count"),
    ("scalar_registers", "sgpr_count"),
    ("vector_spills", "vgpr_spill_count"),
    ("scalar_spills", "sgpr_spill_count"),
    ("stack", "private_segment_fixed_size"),
    ("shared_static", "group_segment_fixed_size"),
)


def needs(compiled: Compiled, device: Device) -> list[Need]:
    """Figures by name; see `compiler.ir.metal.Need`."""
    threads = int(compiled.metadata["num_warps"]) * compiled.warp_size
    shared = compiled.metadata["shared"]
    rows = [
        Need(name="threads", value=threads, source=_TRITON),
        Need(name="shared_dynamic", value=None if shared is None else int(shared), source=_TRITON),
    ]
    if device.vendor == "amd":
        text = compiled.texts.get("amdgcn", "")
        return [
            *rows,
            *(Need(name=name, value=_int(rf"\.{key}:\s+(\d+)", text), source=_AMD) for name, key in _AMD_FIELDS),
        ]
    reserved = reserved_shared(device)
    static = _int(r"\bSHARED:(\d+)", compiled.usage)
    if static is not None and device.capability >= (9, 0):
        static = max(0, static - reserved)  # there, the binary's own section holds what the system reserves
    return [
        *rows,
        Need(name="registers", value=_int(r"Used (\d+) registers", compiled.log), source=_PTXAS),
        Need(name="spill_stores", value=_int(r"(\d+) bytes spill stores", compiled.log), source=_PTXAS),
        Need(name="spill_loads", value=_int(r"(\d+) bytes spill loads", compiled.log), source=_PTXAS),
        Need(name="stack", value=_int(r"\bSTACK:(\d+)", compiled.usage), source=_CUOBJDUMP),
        Need(name="shared_static", value=static, source=_CUOBJDUMP),
        Need(name="shared_reserved", value=reserved, source=_GUIDE),
    ]


def usage(rows: list[Need], device: Device) -> Usage | None:
    """What the formula of occupancy asks for; None when a tool was silent about it."""
    of = {row.name: row.value for row in rows}
    registers = of.get("vector_registers" if device.vendor == "amd" else "registers")
    threads, shared, static = of["threads"], of["shared_dynamic"], of["shared_static"]
    if registers is None or threads is None or shared is None or static is None:
        return None
    # AMD's segment is the same memory that Triton's figure counts.
    taken = max(shared, static) if device.vendor == "amd" else shared + static
    return Usage(threads, registers, taken, of.get("scalar_registers") or 0)


def _int(pattern: str, text: str) -> int | None:
    found = re.search(pattern, text)
    return int(found[1]) if found else None
