"""Inductor's scheduler: its nodes before and after fusion, and its answer for each pair that it considered."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
import torch._inductor.config as config
import torch._inductor.ir as ir
import torch._inductor.scheduler as scheduler
import torch.fx as fx
from torch._inductor.codegen.cpp import CppScheduling
from torch._inductor.virtualized import V

from compiler.ir.graph import Size, SymbolicSize
from compiler.ir.schedule import SchedulerNode
from compiler.text import Message, message
from compiler.torch_compat.hooks import replaced


@dataclass(frozen=True)
class Answer:
    """Inductor's answer for an ordered pair: `reason` is its own text; `explanation` ours, where it gives none."""

    first: str
    second: str
    fused: bool
    reason: str = ""
    explanation: Message | None = None


@dataclass
class Fusing:
    """One run of the fusion: the scheduler, its nodes before and after, and what it answered, the last answer for a pair.
    `nodes` are those it was asked about, by name, groups on the way included."""

    scheduler: Any
    before: list[Any]
    after: list[Any] = field(default_factory=list)
    answers: dict[tuple[str, str], Answer] = field(default_factory=dict)
    nodes: dict[str, Any] = field(default_factory=dict)
    begun: bool = False


@contextmanager
def around_fusion(
    before: Callable[[Fusing], None], after: Callable[[Fusing], None], started: Callable[[], None] | None = None
) -> Iterator[None]:
    """`before(fusing)` when the scheduler is about to fuse, `after(fusing)` when it has. With `started`, which is called once
    every `before` is done, its answers are recorded."""
    running: list[Fusing] = []
    spoken: list[str] = []

    def around_fuse(original: Callable[..., Any]) -> Callable[..., Any]:
        def fuse_nodes(self: Any, nodes: list[Any]) -> list[Any]:
            fusing = Fusing(self, list(nodes))
            before(fusing)
            running.append(fusing)
            try:
                result: list[Any] = original(self, nodes)
            finally:
                running.pop()
            fusing.after = list(result)
            after(fusing)
            return result

        return fuse_nodes

    def around_round(original: Callable[..., Any]) -> Callable[..., Any]:
        def fuse_nodes_once(self: Any, *args: Any, **kwargs: Any) -> Any:
            if running and not running[-1].begun and started is not None:
                running[-1].begun = True
                started()
            return original(self, *args, **kwargs)

        return fuse_nodes_once

    def around_can_fuse(original: Callable[..., Any]) -> Callable[..., Any]:
        def can_fuse(self: Any, node1: Any, node2: Any, *args: Any, **kwargs: Any) -> Any:
            spoken.clear()
            result = original(self, node1, node2, *args, **kwargs)
            if running and node1 is not node2:  # two that were fused meanwhile are asked for once more, as one
                first, second = node1.get_name(), node2.get_name()
                running[-1].nodes[first], running[-1].nodes[second] = node1, node2
                reason = "" if result or not spoken else spoken[-1]
                running[-1].answers[first, second] = Answer(first, second, bool(result), reason)
            return result

        return can_fuse

    def around_cycle(original: Callable[..., Any]) -> Callable[..., Any]:
        def will_fusion_create_cycle(self: Any, node1: Any, node2: Any) -> Any:
            spoken.clear()
            result = original(self, node1, node2)
            if running and result:
                first, second = node1.get_name(), node2.get_name()
                reason = spoken[-1] if spoken else "will create cycle"
                running[-1].answers[first, second] = Answer(first, second, False, reason)
            return result

        return will_fusion_create_cycle

    with ExitStack() as stack:
        stack.enter_context(replaced(scheduler.Scheduler, "fuse_nodes", around_fuse))
        if started is not None:
            stack.enter_context(replaced(scheduler.Scheduler, "fuse_nodes_once", around_round))
            stack.enter_context(replaced(scheduler.WhyNoFuse, "__call__", _listening(spoken)))
            stack.enter_context(replaced(scheduler.Scheduler, "can_fuse", around_can_fuse))
            stack.enter_context(replaced(scheduler.Scheduler, "will_fusion_create_cycle", around_cycle))
        yield


def _listening(spoken: list[str]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def speak(self: Any, reason: str, *args: Any) -> Any:
            spoken.append(reason % args if args else reason)
            return original(self, reason, *args)

        return speak

    return make


def ask_again(fusing: Fusing, limit: int) -> list[Answer]:
    """Inductor's decision for the pairs of final nodes that it never considered, when there are at most `limit` nodes.
    It may try other loop orders to decide; they are always rolled back."""
    nodes = fusing.after
    if len(nodes) > limit:
        return []
    owner, kept = fusing.scheduler, fusing.scheduler.nodes
    owner.nodes = nodes
    answers: list[Answer] = []
    try:
        for first, second in itertools.combinations(nodes, 2):
            names = (first.get_name(), second.get_name())
            if names not in fusing.answers and names[::-1] not in fusing.answers:
                answers.append(ask(owner, first, second))
    finally:
        owner.nodes = kept
    return answers


def ask(owner: Any, first: Any, second: Any) -> Answer:
    """A scheduler's answer for two of its nodes, which stay as they are. Where it would have fused them, the explanation is that
    it never considered them."""
    spoken: list[str] = []
    with replaced(scheduler.WhyNoFuse, "__call__", _listening(spoken)):
        return _ask(owner, first, second, spoken)


def _ask(owner: Any, first: Any, second: Any, spoken: list[str]) -> Answer:
    names = (first.get_name(), second.get_name())
    for node in (first, second):
        if owner.unfusable_node(node):
            return Answer(*names, False, "", message("fusion.unfusable", node=node.get_name()))
    if second.get_operation_names() & first.ancestors:
        first, second = second, first
    spoken.clear()
    tracker = scheduler._LoopMutationTracker.create((first, second))
    try:
        allowed = owner._can_fuse_impl(first, second, can_reorder=False)
        cycle = bool(allowed) and owner.will_fusion_create_cycle(first, second)
    finally:
        tracker.finish(rollback=True)
    if allowed and not cycle:
        return Answer(*names, False, "", message("fusion.not_considered"))
    if spoken:
        return Answer(*names, False, spoken[-1])
    return Answer(*names, False, "", backend_refusal(owner, first, second))


def backend_refusal(owner: Any, first: Any, second: Any) -> Message:
    """The C++ backend refuses without a word: which of its conditions does not hold."""
    backend = owner.get_backend(first.get_device())
    if not isinstance(backend, CppScheduling) or first.is_template() or second.is_template():
        return message("fusion.backend_refused")
    if any(type(node).__name__ == "OuterLoopFusedSchedulerNode" for node in (first, second)):
        return message("fusion.outer_loop")
    size = len(first.get_nodes()) + len(second.get_nodes())
    if size > config.cpp.max_horizontal_fusion_size:
        return message("fusion.too_many", nodes=size, limit=config.cpp.max_horizontal_fusion_size)
    (_, (own, own_reduced)), (_, (other, other_reduced)) = first.group, second.group
    if (own, own_reduced) != (other, other_reduced):
        return message("fusion.loops_differ", first=_ranges(own, own_reduced), second=_ranges(other, other_reduced))
    if first.is_reduction():
        return message("fusion.after_reduction")
    return message("fusion.backend_refused")


def _ranges(outer: Any, reduced: Any) -> str:
    text = " × ".join(str(extent) for extent in outer) or "1"
    return f"{text} | {' × '.join(str(extent) for extent in reduced)}" if reduced else text


def graph_kind(lowering: Any) -> Literal["forward", "backward", "inference"]:
    """Which graph a GraphLowering lowers; that of a subgraph is its parent's."""
    lowering = root(lowering)
    return "backward" if lowering.is_backward else "inference" if lowering.is_inference else "forward"


def root(lowering: Any) -> Any:
    while getattr(lowering, "parent", None) is not None:
        lowering = lowering.parent
    return lowering


@dataclass(frozen=True)
class Place:
    """Where the scheduler is: in the graph itself, or in the `body` of a higher-order operator. `fx` is the graph's own."""

    kind: Literal["forward", "backward", "inference"]
    body: str
    fx: fx.Graph

    @property
    def suffix(self) -> str:
        """What tells the ids of a body's scheduler nodes from the graph's own."""
        return f".{self.body}" if self.body else ""


def place(lowering: Any = None) -> Place:
    """The place of a GraphLowering; of the current one by default."""
    lowering = V.graph if lowering is None else lowering
    return Place(graph_kind(lowering), subgraph_name(lowering), root(lowering).graph)


def subgraph_name(lowering: Any) -> str:
    """The name of a subgraph of a higher-order operator, "" for the graph itself."""
    return str(lowering.name) if getattr(lowering, "parent", None) is not None else ""


_KINDS = {
    "ExternKernelSchedulerNode": "extern",
    "NopKernelSchedulerNode": "nop",
    "ForeachKernelSchedulerNode": "foreach",
    "GroupedSchedulerNode": "grouped",
}


def kind(node: Any) -> str:
    """Inductor's class of a scheduler node in a word."""
    named = _KINDS.get(type(node).__name__)
    if named is not None:
        return named
    if node.is_template():
        return "template"
    if isinstance(node, (scheduler.SchedulerNode, scheduler.FusedSchedulerNode)):
        return "reduction" if node.is_reduction() else "pointwise"
    return "other"


def members(node: Any) -> list[str]:
    """Names of the scheduler nodes that a node consists of; its own when it is not fused."""
    return [member.get_name() for member in node.get_nodes()]


def origin_nodes(node: Any) -> list[fx.Node]:
    """The FX nodes that a scheduler node was lowered from, without order."""
    return [
        origin
        for member in node.get_nodes()
        if member.node is not None
        for origin in member.node.get_origins()
        if isinstance(origin, fx.Node)
    ]


def complex_fallback(node: Any) -> bool:
    """Whether this runs as a kernel of torch's own because a complex number goes in or comes out."""
    if not isinstance(getattr(node, "node", None), ir.FallbackKernel):
        return False
    values = [value for origin in origin_nodes(node) for value in (origin, *origin.all_input_nodes)]
    tensors = [value.meta.get("val") for value in values]
    return any(isinstance(tensor, torch.Tensor) and tensor.is_complex() for tensor in tensors)


def describe(node: Any, origins: list[str], line: int | None) -> SchedulerNode:
    """A scheduler node before fusion as a value; bytes are Inductor's own count of what it reads and writes."""
    shape, dtype = _shape(node)
    return SchedulerNode(
        name=node.get_name(),
        kind=kind(node),
        buffers=[buffer.get_name() for buffer in node.get_outputs()],
        shape=shape,
        dtype=dtype,
        origins=origins,
        reads=accesses(node, reads=True, writes=False),
        writes=accesses(node, reads=False, writes=True),
        ir=_ir_text(node),
        line=line,
    )


def accesses(node: Any, *, reads: bool, writes: bool) -> dict[str, int]:
    """Buffer → bytes that a node reads from or writes to memory, as Inductor counts them."""
    found = node.get_read_write_buffer_accesses(include_reads=reads, include_writes=writes)
    return {str(name): int(count) for name, count in found.items()}


def _shape(node: Any) -> tuple[list[Size], str]:
    layout = getattr(node.node, "layout", None)
    if not isinstance(layout, ir.Layout):
        return [], ""
    return [_size(extent) for extent in layout.size], str(layout.dtype).removeprefix("torch.")


def _size(extent: Any) -> Size:
    if getattr(extent, "is_number", True):
        return int(extent)
    known = V.graph.sizevars.optimization_hint(extent, fallback=-1)
    return SymbolicSize(expr=str(extent), hint=None if known < 0 else int(known))


def _ir_text(node: Any) -> str:
    body = getattr(node, "_body", None)
    if body is not None and hasattr(body, "debug_str"):
        return str(body.debug_str())
    inner = node.node
    kernel = getattr(inner, "python_kernel_name", None) or type(inner).__name__
    inputs = getattr(inner, "inputs", None) or []
    names = [value.get_name() for value in inputs if hasattr(value, "get_name")]
    return f"{kernel}({', '.join(names)})"
