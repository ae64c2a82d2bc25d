"""An FX graph as a value, and its columnar form for the wire.

`Graph` and `Node` are what stages work with; `GraphPayload` is what travels: parallel columns with dictionary-coded
strings, values and stacks, so that 20,000 nodes are 1.7 MB and not 10.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from compiler.text import Frozen


class SymbolicSize(Frozen):
    """A size that is an expression: `hint` is its value in this run, null when it is data-dependent (unbacked)."""

    expr: str
    hint: int | None = None


Size = int | SymbolicSize


class TensorValue(Frozen):
    """A tensor's metadata. `stride` is in elements and null for sparse layouts; `bytes` are those of
    its elements (not of its storage), by the hint of each symbolic size, null when that is unknown."""

    kind: Literal["tensor"] = "tensor"
    shape: tuple[Size, ...]
    dtype: str
    device: str
    stride: tuple[Size, ...] | None = None
    bytes: int | None = None
    requires_grad: bool = False
    layout: str = "strided"
    memory_format: str | None = None


class ScalarValue(Frozen):
    """A Python or symbolic number that flows through the graph."""

    kind: Literal["scalar"] = "scalar"
    type: str
    value: Size | float | bool | str | None = None


class TupleValue(Frozen):
    kind: Literal["tuple"] = "tuple"
    items: tuple[TensorValue | ScalarValue | None, ...]


Value = TensorValue | ScalarValue | TupleValue


class StackFrame(Frozen):
    """One Python frame, outermost first in a stack. `user` marks frames of the snippet's own files."""

    file: str
    line: int
    function: str
    code: str = ""
    user: bool = False


@dataclass(frozen=True, slots=True)
class Node:
    """One FX node. `line` is the snippet's line it comes from, None where only a library's line is known (then `stack`
    has it). `twin` is the forward node that this backward node is the gradient of. `roles` are words such as
    "saved", "recomputed", "accumulation", "mutation", "tangent", "primal", "parameter", "buffer", "input", "output"."""

    name: str
    op: str
    target: str
    args: str
    inputs: tuple[str, ...]
    value: Value | None = None
    phase: Literal["forward", "backward", ""] = ""
    module: str = ""
    module_type: str = ""
    call: int = 0
    line: int | None = None
    stack: tuple[StackFrame, ...] = ()
    seq_nr: int | None = None
    twin: str | None = None
    grad_fn: str = ""
    roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Graph:
    """`id` is `compile/stage/graph`. Nodes are in FX order, which is topological."""

    id: str
    nodes: tuple[Node, ...]


class NodeColumns(Frozen):
    """Parallel columns. Strings are indices into `GraphPayload.strings` (0 is always ""); -1 is "none" for `value`,
    `stack`, `seq_nr`, `twin` and `bytes`; line 0 is "unknown"."""

    name: list[int]
    op: list[int]
    target: list[int]
    args: list[int]
    phase: list[int]
    module: list[int]
    module_type: list[int]
    call: list[int]
    line: list[int]
    stack: list[int]
    seq_nr: list[int]
    twin: list[int]
    grad_fn: list[int]
    roles: list[int]
    value: list[int]
    bytes: list[int]


class EdgeColumns(Frozen):
    """Data flow: `source[i]` → `target[i]`, indices of nodes."""

    source: list[int]
    target: list[int]


class GraphPayload(Frozen):
    """`roles` of a node are one string, words separated by a space."""

    format: Literal["graph/1"] = "graph/1"
    id: str
    strings: list[str]
    values: list[Value]
    stacks: list[list[StackFrame]]
    nodes: NodeColumns
    edges: EdgeColumns
