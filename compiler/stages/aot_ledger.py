"""The ledger of one joint graph: what functionalization and decompositions replaced, and what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compiler.events import StageName
from compiler.ir.aot import (
    Decomposition,
    LedgerPayload,
    MutatedInput,
    Mutation,
    NodeOp,
    OpCount,
    OutputAlias,
    RandomNode,
    Regenerated,
    Rng,
    Subclass,
    SyntheticBase,
    TensorKind,
    TrackedView,
)
from compiler.ir.graph import Graph, Node, StackFrame
from compiler.session import Session
from compiler.text import Message
from compiler.torch_compat import aot_meta
from compiler.torch_compat.aot_record import Call, Memory
from compiler.torch_compat.aot_replay import Held, Replay, Traced
from compiler.torch_compat.fx import frames, input_place, is_mutation, target_text

if TYPE_CHECKING:
    import torch.fx as fx

_EXAMPLE_LINES = 8


@dataclass(frozen=True)
class _Names:
    """Names as the reader knows them. `joint` maps a node of the decomposed replay to its name in the joint graph."""

    joint: Mapping[str, str]
    real: Mapping[str, Node]
    placeholders: Mapping[Any, str]
    originals: list[Node]

    def tensor(self, descriptor: Any) -> tuple[str, TensorKind]:
        """An input by torch's descriptor of it: as the user wrote it, and what it is. Where the graph has something else in its
        place (a base, inner tensors), Dynamo's graph has it."""
        node = self.real.get(self.placeholders.get(descriptor, ""))
        index = input_place(descriptor)
        if node is None and index is not None and index < len(self.originals):
            node = self.originals[index]
        return self._as_written(node) if node is not None else (str(descriptor.expr()), "input")

    def line(self, name: str | None) -> int | None:
        node = self.real.get(name or "")
        return node.line if node is not None else None

    @staticmethod
    def _as_written(node: Node) -> tuple[str, TensorKind]:
        what: TensorKind = "buffer" if "buffer" in node.roles else "parameter" if "parameter" in node.roles else "input"
        return node.args or node.name, what

    def memory(self, memory: Memory) -> tuple[str, TensorKind]:
        node = memory.node
        if node is not None and node.op == "placeholder":
            real = self.real.get(node.name)
            return self._as_written(real) if real is not None else (node.name, "input")
        return (node.name if node is not None else ""), "intermediate"


def ledger(
    session: Session, held: Held, real: Graph, found: Mapping[Replay, Traced | Message], exact: bool
) -> LedgerPayload:
    """From the replays with what was recorded in them, and torch's own metadata. `exact`: the decomposed replay is the joint
    graph up to names."""
    decomposed, functionalized = found["decomposed"], found["functionalized"]
    unknown = next((step for step in (decomposed, functionalized) if not isinstance(step, Traced)), None)
    graph = decomposed.module.graph if isinstance(decomposed, Traced) else None
    names = _names(real, graph, session.graphs.get((held.compile, StageName.DYNAMO, "dynamo")), exact)
    copies = _copies(graph, names)
    draws = [node for node in real.nodes if aot_meta.draws(node.target)]
    mutations, views, regenerated = (
        _functionalization(session, names, copies, functionalized, decomposed)
        if isinstance(functionalized, Traced)
        else ([], [], [])
    )
    facts = aot_meta.facts(held.metadata, held.descriptors, graph)
    return LedgerPayload(
        id=real.id,
        exact=exact,
        mutations=mutations,
        mutated_inputs=_mutated_inputs(names, copies, facts),
        views=views,
        regenerated=regenerated,
        outputs=[_output(alias, names) for alias in facts.aliases],
        synthetic_bases=[
            SyntheticBase(base_of=names.tensor(descriptor)[0], made=made) for descriptor, made in facts.bases
        ],
        intermediate_bases=[names.joint.get(name, name) for name in facts.intermediate_bases],
        decompositions=_decompositions(names, decomposed) if isinstance(decomposed, Traced) else [],
        rng=Rng(
            functionalized=facts.rng_functionalized,
            seeds=facts.seeds,
            nodes=[RandomNode(node=node.name, op=node.target, line=node.line) for node in draws],
        ),
        subclasses=[_subclass(found, names, held.descriptors) for found in facts.subclasses],
        effect_tokens=facts.tokens,
        unknown=unknown,
    )


def _names(real: Graph, graph: fx.Graph | None, dynamo: Graph | None, exact: bool) -> _Names:
    nodes = list(graph.nodes) if graph is not None else []
    same = {again.name: node.name for again, node in zip(nodes, real.nodes, strict=False)} if exact else {}
    return _Names(
        joint=same,
        real={node.name: node for node in real.nodes},
        placeholders={
            node.meta["desc"]: node.name for node in nodes if node.op == "placeholder" and "desc" in node.meta
        },
        originals=[node for node in dynamo.nodes if node.op == "placeholder"] if dynamo is not None else [],
    )


@dataclass(frozen=True)
class _Copy:
    node: str
    value: str
    line: int | None


def _copies(graph: fx.Graph | None, names: _Names) -> dict[str, _Copy]:
    """Name of a placeholder → the node that writes its last value back: a `copy_`, or a `set_` of its storage."""
    found: dict[str, _Copy] = {}
    for node in graph.nodes if graph is not None else ():
        if is_mutation(node) and len(node.all_input_nodes) == 2 and node.args[0].op == "placeholder":
            name = names.joint.get(node.name, node.name)
            value = names.joint.get(node.args[1].name, node.args[1].name)
            found[node.args[0].name] = _Copy(name, value, names.line(name))
    return found


def _functionalization(
    session: Session, names: _Names, copies: dict[str, _Copy], functionalized: Traced, decomposed: Traced | Message
) -> tuple[list[Mutation], list[TrackedView], list[Regenerated]]:
    """The calls of both replays are the same ones, in the same order: decompositions come below functionalization."""
    calls = functionalized.record.calls
    below = decomposed.record.calls if isinstance(decomposed, Traced) else []
    paired = [call.op for call in calls] == [call.op for call in below]
    written = {memory for call in calls for memory, _ in call.writes}
    mutations: list[Mutation] = []
    views: list[TrackedView] = []
    regenerated: list[Regenerated] = []
    for place, call in enumerate(calls):
        line = _line(session, call)
        nodes = [names.joint.get(node.name, node.name) for node in below[place].nodes] if paired else []
        for memory, through_view in call.writes:
            tensor, what = names.memory(memory)
            copy = copies.get(memory.node.name) if memory.node is not None else None
            mutations.append(
                Mutation(
                    op=call.op,
                    what=what,
                    tensor=tensor,
                    through_view=through_view,
                    backward=call.backward,
                    line=line,
                    functional=_node_ops(call.nodes),
                    nodes=nodes,
                    copy_node=copy.node if copy is not None else None,
                )
            )
        if call.views in written and not call.writes and call.views is not None:
            tensor, what = names.memory(call.views)
            views.append(TrackedView(op=call.op, what=what, tensor=tensor, line=line, nodes=nodes))
        own = next((i for i, node in enumerate(call.nodes) if target_text(node) == call.op), 0)
        if own and not call.writes:
            regenerated.append(Regenerated(reader=call.op, line=line, views=_node_ops(call.nodes[:own])))
    return mutations, views, regenerated


def _node_ops(nodes: Iterable[fx.Node]) -> list[NodeOp]:
    return [NodeOp(node=node.name, op=target_text(node)) for node in nodes]


def _line(session: Session, call: Call) -> int | None:
    sources = session.sources
    stack = tuple(
        StackFrame(file=sources.shown(file), line=line, function=function, code=code, user=sources.is_user(file))
        for file, line, function, code in frames(call.stack)
    )
    return sources.line(stack)


def _mutated_inputs(names: _Names, copies: dict[str, _Copy], facts: aot_meta.Facts) -> list[MutatedInput]:
    found: list[MutatedInput] = []
    for mutated in facts.mutated:
        tensor, what = names.tensor(mutated.descriptor)
        copy = copies.get(names.placeholders.get(mutated.descriptor, ""))
        returned = names.joint.get(mutated.returned, mutated.returned) if mutated.returned else None
        found.append(
            MutatedInput(
                tensor=tensor,
                what=what,
                type=mutated.type,
                data=mutated.data,
                metadata=mutated.metadata,
                requires_grad=mutated.requires_grad,
                hidden_from_autograd=mutated.hidden_from_autograd,
                under_no_grad=mutated.under_no_grad,
                copy_node=copy.node if copy is not None else None,
                value=copy.value if copy is not None else returned,
                line=copy.line if copy is not None else names.line(returned),
            )
        )
    return found


def _output(alias: aot_meta.Alias, names: _Names) -> OutputAlias:
    base = ""
    if alias.descriptor is not None:
        base = names.tensor(alias.descriptor)[0]
    elif alias.base_node:
        base = names.joint.get(alias.base_node, alias.base_node)
    return OutputAlias(
        output=alias.output, type=alias.type, base=base, views=alias.views, requires_grad=alias.requires_grad
    )


def _subclass(found: aot_meta.SubclassFact, names: _Names, descriptors: list[Any]) -> Subclass:
    tensor = ""
    if found.side == "input" and found.index < len(descriptors):
        tensor = names.tensor(descriptors[found.index])[0]
    return Subclass(
        side=found.side,
        index=found.index,
        tensor=tensor,
        type=found.type,
        attrs=found.attrs,
        first=found.first,
        count=found.count,
    )


def _decompositions(names: _Names, decomposed: Traced) -> list[Decomposition]:
    ways: dict[tuple[str, tuple[tuple[str, int], ...]], list[list[str]]] = {}
    for entry in decomposed.record.decomposed:
        if entry.nodes:
            into = tuple(sorted(Counter(target_text(node) for node in entry.nodes).items()))
            nodes = [names.joint.get(node.name, node.name) for node in entry.nodes]
            ways.setdefault((entry.op, into), []).append(nodes)
    return [
        Decomposition(
            op=op,
            into=[OpCount(op=target, count=count) for target, count in into],
            count=len(calls),
            examples=calls[0],
            lines=_lines(names, calls),
        )
        for (op, into), calls in sorted(ways.items(), key=lambda way: (-len(way[1]), way[0]))
    ]


def _lines(names: _Names, calls: list[list[str]]) -> list[int]:
    found = {names.line(node) for nodes in calls for node in nodes}
    return sorted(line for line in found if line is not None)[:_EXAMPLE_LINES]
