"""What a picture shows of a graph: boxes and wires, large graphs folded by module."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from compiler.ir.diff import value_text
from compiler.ir.graph import Graph, Node

# dot takes 0.1 s for this many boxes, and minutes for thousands.
LIMIT = 200

BoxKind = Literal["forward", "backward", "recomputed"]
WireKind = Literal["forward", "backward", "crossing", "saved", "recomputed"]

_STRENGTH: dict[WireKind, int] = {"crossing": 0, "forward": 1, "backward": 1, "recomputed": 2, "saved": 3}


@dataclass(frozen=True, slots=True)
class Box:
    """A node, or `count` nodes of a module, `again` of them recomputed. `detail` is the operator and shape of a single node.
    `edge` marks what has no computation in it: inputs and the output. `hover` is all that is known of the node, a fact a line."""

    name: str
    detail: str
    kind: BoxKind
    count: int = 1
    again: int = 0
    edge: bool = False
    saved: bool = False
    hover: str = ""


@dataclass(frozen=True, slots=True)
class Wire:
    """Data that flows between two boxes, numbers into `View.boxes`. `saved`: kept from the forward for the backward;
    `crossing`: read by the backward, before anything was decided about it."""

    tail: int
    head: int
    kind: WireKind


@dataclass(frozen=True, slots=True)
class View:
    """`counts` are nodes of the graph, folded or not, by what they are; `nodes` is their number."""

    id: str
    boxes: tuple[Box, ...]
    wires: tuple[Wire, ...]
    nodes: int
    counts: dict[BoxKind, int]

    @property
    def folded(self) -> bool:
        return len(self.boxes) < self.nodes


def fold(graph: Graph, limit: int = LIMIT) -> View:
    """The graph in at most `limit` boxes, unless it has more parts than that which no module holds together."""
    nodes = graph.nodes
    kinds = [kind_of(node, graph) for node in nodes]
    groups = _groups(graph, kinds, limit)
    order: dict[int, int] = {}
    for group in groups:
        order.setdefault(group, len(order))
    members: list[list[int]] = [[] for _ in order]
    for i, group in enumerate(groups):
        members[order[group]].append(i)
    number = {node.name: order[groups[i]] for i, node in enumerate(nodes)}
    by_name = {node.name: i for i, node in enumerate(nodes)}
    wires: dict[tuple[int, int], WireKind] = {}
    for i, node in enumerate(nodes):
        for name in node.inputs:
            place = number[name], order[groups[i]]
            if place[0] == place[1]:
                continue
            j = by_name[name]
            kind = _wire(nodes[j], kinds[j], node, kinds[i])
            if place not in wires or _STRENGTH[kind] > _STRENGTH[wires[place]]:
                wires[place] = kind
    return View(
        id=graph.id,
        boxes=tuple(_box([nodes[i] for i in of], [kinds[i] for i in of]) for of in members),
        wires=tuple(Wire(tail, head, kind) for (tail, head), kind in wires.items()),
        nodes=len(nodes),
        counts=dict(Counter(kinds)),
    )


def kind_of(node: Node, graph: Graph) -> BoxKind:
    """Forward or backward, and recomputed where the node runs for the second time. What a backward graph takes in from the
    forward is forward."""
    halves = graph.id.rsplit("/", 1)[-1]
    if halves == "backward":
        if node.op == "placeholder":
            return "forward" if "saved" in node.roles else "backward"
        return "recomputed" if "recomputed" in node.roles else "backward"
    if node.phase != "backward":
        return "forward"
    return "recomputed" if "recomputed" in node.roles else "backward"


def short_target(node: Node) -> str:
    """`aten.addmm` of `torch.ops.aten.addmm.default`; FX's own word for what calls nothing."""
    if node.op in ("placeholder", "output", "get_attr"):
        return node.op
    return node.target.removeprefix("torch.ops.").removesuffix(".default")


def _wire(source: Node, from_: BoxKind, target: Node, to: BoxKind) -> WireKind:
    saved = "saved" in source.roles
    if saved and from_ == "forward" and (to != "forward" or target.op == "output"):
        return "saved"
    if from_ == "forward" and to == "backward":
        return "forward" if target.op == "output" else "crossing"
    if to == "recomputed":
        return "recomputed"
    return "backward" if "backward" in (from_, to) else "recomputed" if from_ == "recomputed" else "forward"


def _groups(graph: Graph, kinds: Sequence[BoxKind], limit: int) -> list[int]:
    """For each node the number of its group: deepest level of modules that gives at most `limit` of them."""
    if len(graph.nodes) <= limit:
        return list(range(len(graph.nodes)))
    deepest = max(len(_path(node)) for node in graph.nodes)
    for depth in range(deepest, -1, -1):
        groups = _runs(graph, kinds, depth)
        if len(set(groups)) <= limit:
            return groups
    # Forward and backward alternate too often: one group of each.
    return [int(kind != "forward") for kind in kinds]


def _path(node: Node) -> list[str]:
    return node.module.split(".") if node.module else []


def _runs(graph: Graph, kinds: Sequence[BoxKind], depth: int) -> list[int]:
    """Nodes that follow each other in the same module, cut at `depth`. Runs of a topological order read only earlier runs, so
    the folded graph has no cycle. Inputs read nothing: those of a module are one group wherever they stand. A parameter
    belongs to the first run that reads it."""
    groups = [-1] * len(graph.nodes)
    inputs: dict[tuple[str, ...], int] = {}
    held: dict[str, int] = {}
    last: tuple[object, ...] | None = None
    count = 0
    for i, node in enumerate(graph.nodes):
        if node.op == "placeholder" and not {"parameter", "buffer"}.isdisjoint(node.roles):
            held[node.name] = i
            continue
        path = tuple(_path(node)[:depth])
        if node.op == "placeholder":
            # The user's own inputs and the gradients of the outputs stay apart.
            place = (node.name,) if {"input", "tangent"} & set(node.roles) else ("", *path)
            if place not in inputs:
                inputs[place], count, last = count, count + 1, None
            groups[i] = inputs[place]
            continue
        key = (kinds[i] == "forward", path, node.op == "output")
        if key != last:
            last, count = key, count + 1
        groups[i] = count - 1
        for name in node.inputs:
            if name in held and node.op != "output":
                groups[held.pop(name)] = count - 1
    for i in held.values():
        groups[i] = count
    return groups


def _box(members: Sequence[Node], kinds: list[BoxKind]) -> Box:
    first = members[0]
    if len(members) > 1:
        # What a group computes says what it is, not the parameters that it holds.
        shown = [i for i, node in enumerate(members) if node.op != "placeholder"] or range(len(members))
        return Box(
            name=_common([_path(members[i]) for i in shown]),
            detail="",
            kind=next((kinds[i] for i in shown if kinds[i] != "recomputed"), "recomputed"),
            count=len(members),
            again=kinds.count("recomputed"),
            edge=all(node.op == "placeholder" for node in members),
            saved=any("saved" in members[i].roles and kinds[i] == "forward" for i in shown),
            hover="\n".join(node.name for node in members[:40]) + ("\n…" if len(members) > 40 else ""),
        )
    value = value_text(first.value)
    facts = (
        first.name,
        f"{first.op} {first.target}" if first.op != "output" else first.op,
        value,
        first.module,
        "" if first.line is None else f"line/{first.line}",
        " ".join(first.roles),
    )
    return Box(
        name=first.name,
        detail=" ".join(text for text in (short_target(first), value if first.op != "output" else "") if text),
        kind=kinds[0],
        edge=first.op in ("placeholder", "output"),
        saved="saved" in first.roles,
        hover="\n".join(fact for fact in facts if fact),
    )


def _common(paths: Sequence[Sequence[str]]) -> str:
    """The longest path that all of them begin with, as text."""
    shared: list[str] = []
    for parts in zip(*paths, strict=False):
        if len(set(parts)) > 1:
            break
        shared.append(parts[0])
    return ".".join(shared)
