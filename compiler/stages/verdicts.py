"""What became of each forward node of a joint graph, and the sentence that says why. Torch-free.

The verdict is read off the two graphs that came out; the reason is the partitioner's own, from its flow network."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from compiler.ir.graph import Graph, Node
from compiler.ir.partition import NodeDecision
from compiler.text import Message, message

if TYPE_CHECKING:
    from compiler.torch_compat.partitioner import Cut

Verdict = Literal["saved", "recomputed", "forward_only", "input", "backward_only"]


@dataclass(frozen=True)
class Split:
    """A joint graph and its two halves, whose nodes carry the roles `saved` and `recomputed`."""

    joint: Graph
    forward: Graph
    backward: Graph
    saved: frozenset[str]
    recomputed: tuple[str, ...]

    @staticmethod
    def of(joint: Graph, forward: Graph, backward: Graph, saved: list[str]) -> Split:
        calls = {node.name for node in forward.nodes if node.op.startswith("call")}
        again = tuple(node.name for node in backward.nodes if node.op.startswith("call") and node.name in calls)
        kept, twice = frozenset(saved), frozenset(again)

        def marked(graph: Graph) -> Graph:
            return Graph(graph.id, tuple(_marked(node, kept, twice) for node in graph.nodes))

        return Split(joint, marked(forward), marked(backward), kept, again)


def _marked(node: Node, saved: frozenset[str], recomputed: frozenset[str]) -> Node:
    roles = [role for role, names in (("saved", saved), ("recomputed", recomputed)) if node.name in names]
    return replace(node, roles=tuple(dict.fromkeys((*node.roles, *roles)))) if roles else node


def decide(split: Split, cut: Cut | None, partitioner: str) -> list[NodeDecision]:
    """One decision for each forward node of the joint graph, in its order."""
    in_forward = {node.name: node.op for node in split.forward.nodes}
    in_backward = {node.name: node.op for node in split.backward.nodes}
    recomputed = frozenset(split.recomputed)
    reaching = _reaching_backward(split.joint)
    decisions: list[NodeDecision] = []
    for node in split.joint.nodes:
        if node.phase != "forward" or node.op == "output":
            continue
        verdict: Verdict
        if node.op == "placeholder":
            verdict = "input" if node.name in in_backward else "forward_only"
        elif node.name in recomputed:
            verdict = "recomputed"
        elif node.name in in_backward and in_backward[node.name] == "placeholder":
            verdict = "saved"
        elif node.name in in_backward:
            verdict = "backward_only"
        else:
            verdict = "forward_only"
        reasons = cut.reasons.get(node.name, []) if cut is not None else []
        capacity = cut.capacity.get(node.name) if cut is not None else None
        present = node.name in in_forward or node.name in in_backward
        decisions.append(
            NodeDecision(
                node=node.name,
                verdict=verdict,
                bytes=node.value.bytes if node.value is not None and node.value.kind == "tensor" else None,
                capacity=None if capacity is None or capacity > 1e18 else capacity,
                reasons=reasons,
                banned=cut is not None and node.name in cut.banned,
                sentence=_sentence(node, verdict, reasons, cut, partitioner, present, node.name in reaching),
                line=node.line,
            )
        )
    return decisions


def _reaching_backward(joint: Graph) -> set[str]:
    """Forward nodes from which data flows to a backward node."""
    found: set[str] = set()
    for node in reversed(joint.nodes):
        if node.op != "output" and (node.phase == "backward" or node.name in found):
            found.update(node.inputs)
    return found


def _sentence(
    node: Node, verdict: Verdict, reasons: list[str], cut: Cut | None, partitioner: str, present: bool, reaching: bool
) -> Message:
    if verdict == "input":
        return message("partition.input")
    if verdict == "backward_only":
        return message("partition.backward_only")
    if verdict == "forward_only":
        if node.op == "placeholder" or not reaching:
            return message("partition.forward_only.not_needed")
        return message("partition.forward_only.behind_saved") if present else message("partition.forward_only.merged")
    if cut is None:
        return _without_network(verdict, partitioner)
    return _saved(reasons, cut, node) if verdict == "saved" else _recomputed(reasons, cut, node)


def _without_network(verdict: Verdict, partitioner: str) -> Message:
    if partitioner == "default_partition":
        return message("partition.saved.default") if verdict == "saved" else message("partition.recomputed.default")
    if partitioner == "min_cut_rematerialization_partition":
        # A memory budget of 0 keeps the inputs and solves nothing.
        return message("partition.saved.budget") if verdict == "saved" else message("partition.recomputed.budget")
    return message("partition.custom", partitioner=partitioner)


def _saved(reasons: list[str], cut: Cut, node: Node) -> Message:
    banned = next((text for text in reasons if text.startswith("cannot recompute")), None)
    if banned is None:
        weight = cut.capacity.get(node.name)
        return message("partition.saved.cheapest", capacity=None if weight is None else round(weight))
    reason = banned.partition(": ")[2]
    known = {
        "compute intensive op": message("partition.saved.compute_intensive"),
        "not in recomputable allowlist": message("partition.saved.not_recomputable"),
        "random op": message("partition.saved.random"),
        "non-builtin op": message("partition.saved.custom_op"),
        "materialized in backward": message("partition.saved.materialized"),
        "too far from backward": message("partition.saved.far_from_backward"),
        "reduction op": message("partition.saved.reduction"),
        "marked MUST_SAVE": message("partition.saved.must_save"),
        "used far apart": message("partition.saved.used_far_apart"),
        "long fusible chain": message("partition.saved.long_chain"),
        "forward RNG seed": message("partition.saved.seed"),
    }
    return known.get(reason, message("partition.saved.other", reason=reason or banned))


def _recomputed(reasons: list[str], cut: Cut, node: Node) -> Message:
    if any(text.startswith("must recompute") for text in reasons):
        return message("partition.recomputed.checkpoint")
    if any(text.startswith("cannot save: view op") for text in reasons):
        return message("partition.recomputed.view")
    if any(text.startswith("cannot save: non-tensor") for text in reasons):
        return message("partition.recomputed.tuple")
    forced = next((text for text in reasons if text.startswith("cannot save")), None)
    if forced is not None:
        return message("partition.recomputed.cannot_save", reason=forced.partition(": ")[2])
    if node.name in cut.banned:
        return message("partition.recomputed.although_banned")
    weight = cut.capacity.get(node.name)
    return message("partition.recomputed.cheaper", capacity=None if weight is None else round(weight))
