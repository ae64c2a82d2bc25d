"""The min-cut partition: what is saved, what runs again, and why."""

from __future__ import annotations

from typing import Literal

from compiler.text import Frozen, Message


class NodeDecision(Frozen):
    """What became of one forward node of the joint graph.

    verdict: `saved` (an output of the forward that the backward reads), `recomputed` (runs again in the backward),
    `forward_only` (the backward does not need it), `input` (a graph input the backward reads: kept anyway),
    `backward_only` (traced in the forward, but only the backward needs it: it moved there and runs once).
    `capacity` is the weight of its edge in the flow network in bytes, weighted as the partitioner weights it; null: unbounded.
    `reasons` are the partitioner's own texts on the edges of the node."""

    node: str
    verdict: Literal["saved", "recomputed", "forward_only", "input", "backward_only"]
    bytes: int | None = None
    capacity: float | None = None
    reasons: list[str] = []
    banned: bool = False
    sentence: Message
    line: int | None = None


class SavedTensor(Frozen):
    """One tensor that crosses from forward to backward, parameters and inputs among them (`is_input`)."""

    node: str
    bytes: int | None
    is_input: bool
    readers: list[str] = []
    line: int | None = None


class PartitionPayload(Frozen):
    """Byte figures are the partitioner's, by hint of symbolic sizes; what is really kept is measured in the memory stage."""

    format: Literal["partition/1"] = "partition/1"
    id: str
    partitioner: str
    decisions: list[NodeDecision]
    saved: list[SavedTensor]
    saved_bytes: int
    saved_activation_bytes: int
    save_everything_bytes: int | None = None
    eager_saved_bytes: int | None = None
    recomputed: list[str] = []
    memory_budget: float | None = None
    network_nodes: int | None = None
    network_edges: int | None = None
    cut_value: float | None = None
    options: dict[str, bool | int | float | str | None] = {}
