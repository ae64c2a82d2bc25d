"""One generated kernel down to machine code: every level's text with its lines linked, what it needs of the device, and which
configurations the autotuner would have tried."""

from __future__ import annotations

from typing import Literal

from compiler.ir.code import CodePayload
from compiler.text import Frozen, Message

LevelName = Literal["triton", "ttir", "ttgir", "llir", "ptx", "sass", "amdgcn"]


class Level(Frozen):
    """One text of the kernel. Line N of `code` is `<code.id>/@N`; its marks name lines of the generated code, FX nodes of the
    post-grad graph and lines of the snippet. `linked` of `statements` lines, those that do something, come from a line of the
    Triton source; `triton_line` is parallel to the text's lines, 0 where none is known (a statement that the compiler added
    belongs to no line)."""

    name: LevelName
    code: CodePayload
    triton_line: list[int]
    statements: int
    linked: int


class Candidate(Frozen):
    """A configuration as Inductor's heuristics propose it. `blocks` are the kernel's own constants, e.g. XBLOCK."""

    blocks: dict[str, int | str | bool]
    warps: int
    stages: int


class Need(Frozen):
    """What the compiled kernel needs: `value` is null where the tools do not say, and `source` the tool or document that says it.

    Names: registers, vector_registers and accumulation_registers (per thread), scalar_registers (per wave); spill_stores and
    spill_loads (bytes per thread), vector_spills and scalar_spills (registers); stack (bytes per thread); shared_dynamic,
    shared_static and shared_reserved (bytes per block); threads (per block)."""

    name: str
    value: int | None
    source: str


class OccupancyLimit(Frozen):
    """How many blocks fit on a multiprocessor as far as one resource is concerned, and how that was computed. `blocks` is null
    for a resource that the kernel does not use."""

    resource: Literal["threads", "blocks", "registers", "scalar_registers", "shared"]
    blocks: int | None
    formula: str


class Occupancy(Frozen):
    """Warps (wavefronts on AMD) that can be resident on a multiprocessor at once, of at most `most_warps`. An upper bound by the
    vendor's formula from compiled figures: nothing was run."""

    warps_per_block: int
    blocks: int
    warps: int
    most_warps: int
    limits: list[OccupancyLimit]
    source: str


class MetalPayload(Frozen):
    """`kernel` is the kernel's entity; `config` the index in `candidates` of the one that was compiled. Which candidate a real
    GPU would choose is decided there, by timing, and unknown here."""

    format: Literal["metal/1"] = "metal/1"
    id: str
    kernel: str
    target: str
    triton: str
    config: int
    candidates: list[Candidate]
    chosen: Message
    levels: list[Level]
    needs: list[Need]
    occupancy: Occupancy | None
    occupancy_unknown: Message | None = None
    assembler_log: str = ""
