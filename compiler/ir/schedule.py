"""Inductor's scheduler nodes before and after fusion, and the kernels they become."""

from __future__ import annotations

from typing import Literal

from compiler.ir.graph import Size
from compiler.text import Frozen, Message


class SchedulerNode(Frozen):
    """`origins` are FX node names of the post-grad graph. `reads` and `writes` are buffer names with their bytes.
    `kind` is Inductor's class in words: pointwise, reduction, extern, nop, template, foreach, grouped, other.
    `ir` is Inductor's own readable text of the node."""

    name: str
    kind: str
    buffers: list[str] = []
    shape: list[Size] = []
    dtype: str = ""
    origins: list[str] = []
    reads: dict[str, int] = {}
    writes: dict[str, int] = {}
    ir: str = ""
    line: int | None = None


class SchedulePayload(Frozen):
    format: Literal["schedule/1"] = "schedule/1"
    id: str
    nodes: list[SchedulerNode]


class FusionGroup(Frozen):
    """A node after fusion: `members` are the names of the nodes before. `bytes_before` sums what the members read and
    write each for itself; `bytes_after` what the group reads from and writes to memory, buffers inside it not counted."""

    name: str
    kind: str
    members: list[str]
    bytes_before: int | None = None
    bytes_after: int | None = None
    kernel: str = ""


class FusionDecision(Frozen):
    """Inductor's own answer for a pair that it considered, or that was asked of it again afterwards. `reason` is its own
    text; where it gives none, `explanation` says which of its conditions decided."""

    first: str
    second: str
    fused: bool
    reason: str = ""
    explanation: Message | None = None
    asked: Literal["by_inductor", "again"] = "by_inductor"


class FusionPayload(Frozen):
    """Pairs absent from `decisions` were never considered by Inductor."""

    format: Literal["fusion/1"] = "fusion/1"
    id: str
    groups: list[FusionGroup]
    decisions: list[FusionDecision] = []
    nodes_before: int
    nodes_after: int


class KernelLaunch(Frozen):
    """`line` is a line of the generated code."""

    line: int
    text: str = ""


class Kernel(Frozen):
    """A kernel or an external call. `first_line` and `last_line` are its source's range in the generated code (0 for an external
    call); `nodes` FX nodes of the post-grad graph, `lines` lines of the snippet; `recomputed` those of the
    nodes that the forward has computed already."""

    name: str
    kind: Literal["cpp", "extern", "triton"]
    nodes: list[str] = []
    lines: list[int] = []
    recomputed: list[str] = []
    ops: list[str] = []
    launches: list[KernelLaunch] = []
    first_line: int = 0
    last_line: int = 0
    group: str = ""


class UnlinkedStatement(Frozen):
    """A statement of a kernel that is linked to no line of Python: `line` is that of the generated code, `node` the FX node it
    computes, "" if that is not known either."""

    line: int
    text: str
    node: str = ""
    cause: Message


class KernelsPayload(Frozen):
    """Coverage counts statements of generated kernels: all, linked to an FX node, linked to a line of the snippet. `library`
    counts those linked to a library's line alone, by that line (`torch/optim/adam.py:526`); `unlinked` are the others."""

    format: Literal["kernels/1"] = "kernels/1"
    id: str
    kernels: list[Kernel]
    statements: int = 0
    statements_with_node: int = 0
    statements_with_line: int = 0
    library: dict[str, int] = {}
    unlinked: list[UnlinkedStatement] = []
