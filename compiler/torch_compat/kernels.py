"""From each line of a generated kernel, in C++ or for Triton, to the FX node that it computes.

The node that is being lowered is remembered by the IR that it becomes; each operation of a loop body takes it over; while a
loop body is turned into code, every line written ends in a mark, `/*@7@*/`. Marks are taken out where a kernel is
defined, before its text is compared with others or hashed: the generated code is the same with and without.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch._inductor.codegen.common as common
import torch._inductor.codegen.cpp as cpp
import torch._inductor.codegen.triton as triton
import torch._inductor.ir as ir
import torch._inductor.loop_body as loop_body
import torch._inductor.utils as utils
import torch.fx as fx
from torch._inductor.graph import GraphLowering
from torch._inductor.scheduler import BaseSchedulerNode, Scheduler
from torch._inductor.virtualized import V

from compiler.torch_compat.hooks import replaced
from compiler.torch_compat.scheduler import subgraph_name

_MARK = re.compile(r"/\*@(\d+)@\*/")
_NODE = "aotscope_node"
_STORES = (
    (ir.Pointwise, "store_output"),
    (ir.Scatter, "store_output"),
    (ir.Reduction, "store_reduction"),
    (ir.MultiOutputReduction, "store_reduction"),
    (ir.Scan, "store_reduction"),
    (ir.Sort, "store_reduction"),
)


@dataclass(frozen=True)
class Group:
    """A scheduler node after fusion; `body` names the higher-order operator's body that it is in, "" for the graph."""

    body: str
    name: str


@dataclass(frozen=True)
class Definition:
    """One kernel as it was asked for, for some fused scheduler nodes; the same text may be asked for again, for others.
    `marks` maps a line of the kernel's source, counted from 0 at its first line that is not empty, to the FX nodes it
    computes; `template` are those of the template that the kernel is made from, if it is: its lines have no marks."""

    name: str
    marks: dict[int, list[fx.Node]]
    origins: list[fx.Node]
    template: list[fx.Node]
    groups: list[Group]


@dataclass(frozen=True)
class Buffer:
    """The FX nodes that a buffer was lowered from, and the fused scheduler node that makes it, if one does."""

    origins: list[fx.Node]
    group: Group | None


@dataclass(frozen=True)
class Generated:
    """The whole generated file of one graph. `contexts` are torch's own: from this line on, the wrapper is about this node.
    `buffers` maps a buffer's name to what it is."""

    lowering: Any
    text: str
    contexts: list[tuple[int, fx.Node]]
    definitions: list[Definition]
    buffers: dict[str, Buffer]


@dataclass
class _State:
    lowering: list[fx.Node] = field(default_factory=list)
    numbers: dict[fx.Node, int] = field(default_factory=dict)
    nodes: list[fx.Node] = field(default_factory=list)
    definitions: list[Definition] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)

    def number(self, node: fx.Node) -> int:
        number = self.numbers.get(node)
        if number is None:
            number = self.numbers[node] = len(self.nodes)
            self.nodes.append(node)
        return number

    def clear(self) -> None:
        for kept in (self.numbers, self.nodes, self.definitions, self.bodies):
            kept.clear()


@contextmanager
def around_codegen(started: Callable[[], None], finished: Callable[[Generated], None]) -> Iterator[None]:
    """`started()` when the code of a graph begins to be generated, `finished(generated)` when its text is there."""
    state = _State()

    def codegen(original: Callable[..., Any]) -> Callable[..., Any]:
        def run(self: Any) -> Any:
            if getattr(self, "parent", None) is not None:  # the body of a higher-order operator, in its parent's file
                state.bodies.append(self)
                return original(self)
            state.clear()
            result = original(self)
            wrapper = result[0]
            finished(
                Generated(
                    lowering=self,
                    text=wrapper.value,
                    contexts=[(line, node) for line, node in wrapper.line_map if isinstance(node, fx.Node)],
                    definitions=list(state.definitions),
                    buffers=_buffers([self, *state.bodies]),
                )
            )
            return result

        return run

    def scheduler_codegen(original: Callable[..., Any]) -> Callable[..., Any]:
        def run(self: Any) -> Any:
            if getattr(V.graph, "parent", None) is None:
                started()
            return original(self)

        return run

    def codegen_body(original: Callable[..., Any]) -> Callable[..., Any]:
        def run(self: Any, parent: Any) -> Any:
            state.bodies.append(self)
            return original(self, parent)

        return run

    with ExitStack() as stack:
        for context in (*_lowering_marks(state), *_line_marks(state)):
            stack.enter_context(context)
        stack.enter_context(replaced(GraphLowering, "codegen", codegen))
        stack.enter_context(replaced(Scheduler, "codegen", scheduler_codegen))
        stack.enter_context(replaced(GraphLowering, "codegen_subgraph", codegen_body))
        yield


def _buffers(lowerings: list[Any]) -> dict[str, Buffer]:
    found: dict[str, Buffer] = {}
    for lowering in lowerings:
        fused = lowering.scheduler.name_to_fused_node
        for name, buffer in lowering.name_to_buffer.items():
            origins = [node for node in getattr(buffer, "origins", ()) if isinstance(node, fx.Node)]
            made_by = fused.get(getattr(buffer, "operation_name", None))
            group = None if made_by is None else Group(subgraph_name(lowering), made_by.get_name())
            found[name] = Buffer(origins, group)
    return found


def _lowering_marks(state: _State) -> list[Any]:
    """Each loop nest remembers the FX node that it was lowered from, and says so while its body is traced."""

    def remember(original: Callable[..., Any]) -> Callable[..., Any]:
        def post_init(self: Any) -> None:
            original(self)
            node = getattr(V, "current_node", None)
            if not isinstance(node, fx.Node):
                return
            object.__setattr__(self, _NODE, node)
            inner = self.inner_fn
            if getattr(inner, _NODE, None) is not node:
                object.__setattr__(self, "inner_fn", _about(state, node, inner))

        return post_init

    def store(original: Callable[..., Any]) -> Callable[..., Any]:
        def stored(self: Any, *args: Any, **kwargs: Any) -> Any:
            node = getattr(self, _NODE, None)
            if node is None:
                return original(self, *args, **kwargs)
            state.lowering.append(node)
            try:
                return original(self, *args, **kwargs)
            finally:
                state.lowering.pop()

        return stored

    def create_node(original: Callable[..., Any]) -> Callable[..., Any]:
        def create(self: Any, *args: Any, **kwargs: Any) -> Any:
            made = original(self, *args, **kwargs)
            node = state.lowering[-1] if state.lowering else _interpreted()
            if node is not None:
                made.meta[_NODE] = node
            return made

        return create

    stores = [replaced(owner, name, store) for owner, name in _STORES if name in vars(owner)]
    return [
        replaced(ir.Loops, "__post_init__", remember),
        replaced(loop_body.LightTracer, "create_node", create_node),
        *stores,
    ]


def _about(state: _State, node: fx.Node, inner: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(inner)
    def traced(*args: Any, **kwargs: Any) -> Any:
        state.lowering.append(node)
        try:
            return inner(*args, **kwargs)
        finally:
            state.lowering.pop()

    setattr(traced, _NODE, node)
    return traced


def _interpreted() -> fx.Node | None:
    """The FX node of the operation of a loop body that is being interpreted, if any is."""
    current = getattr(V.interpreter, "current_node", None)
    return current.meta.get(_NODE) if isinstance(current, fx.Node) else None


def _line_marks(state: _State) -> list[Any]:
    """Each line written while a loop body is interpreted is marked; the marks leave the text where a kernel is defined."""

    def writeline(original: Callable[..., Any]) -> Callable[..., Any]:
        def write(self: Any, line: Any) -> Any:
            node = _interpreted()
            return original(self, line if node is None else _marked(line, state.number(node)))

        return write

    def augment_key(original: Callable[..., Any]) -> Callable[..., Any]:
        return lambda self, key: original(self, _MARK.sub("", key) if isinstance(key, str) else key)

    def define_kernel(original: Callable[..., Any]) -> Callable[..., Any]:
        def define(self: Any, src_code: str, nodes: Any, *args: Any, **kwargs: Any) -> Any:
            name = original(self, _MARK.sub("", src_code), nodes, *args, **kwargs)
            state.definitions.append(_definition(state, str(name), src_code, nodes))
            return name

        return define

    return [
        replaced(utils.IndentedBuffer, "writeline", writeline),
        replaced(common.CSE, "augment_key", augment_key),
        replaced(cpp.CppScheduling, "define_kernel", define_kernel),
        replaced(triton.TritonScheduling, "define_kernel", define_kernel),
    ]


def _marked(line: Any, number: int) -> Any:
    mark = f"/*@{number}@*/"
    if isinstance(line, str):
        plain = not line.strip() or "\n" in line or line.rstrip().endswith("\\") or "/*@" in line
        return line if plain else line + mark
    if isinstance(line, utils.DeferredLineBase) and "/*@" not in line.line:
        return line._new_line(line.line + mark)
    return line


def _definition(state: _State, name: str, marked: str, nodes: Any) -> Definition:
    lines = marked.lstrip("\n").split("\n")
    found = {number: [state.nodes[int(mark)] for mark in _MARK.findall(line)] for number, line in enumerate(lines)}
    # Triton's schedule of a kernel says between the nodes where a reduction begins and ends.
    members = [member for node in nodes if isinstance(node, BaseSchedulerNode) for member in node.get_nodes()]
    fused = V.graph.scheduler.name_to_fused_node
    body = subgraph_name(V.graph)
    groups = [Group(body, fused[member.get_name()].get_name()) for member in members if member.get_name() in fused]
    return Definition(
        name=name,
        marks={number: marks for number, marks in found.items() if marks},
        origins=_origins(members),
        template=_origins([member for member in members if member.is_template()]),
        groups=list(dict.fromkeys(groups)),
    )


def _origins(members: list[Any]) -> list[fx.Node]:
    nodes = [member.node for member in members if member.node is not None]
    return [origin for node in nodes for origin in node.get_origins() if isinstance(origin, fx.Node)]
