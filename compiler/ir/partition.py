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
    `reasons` are the partitioner's own texts on the edges of the node.
    `policy` is what the model's checkpoint says of the node, in torch's words (MUST_SAVE, PREFER_RECOMPUTE, …), and `region` the
    number of the checkpointed region that it lies in."""

    node: str
    verdict: Literal["saved", "recomputed", "forward_only", "input", "backward_only"]
    bytes: int | None = None
    capacity: float | None = None
    reasons: list[str] = []
    banned: bool = False
    policy: str = ""
    region: int | None = None
    sentence: Message
    line: int | None = None


class SavedTensor(Frozen):
    """One tensor that crosses from forward to backward, parameters and inputs among them (`is_input`)."""

    node: str
    bytes: int | None
    is_input: bool
    readers: list[str] = []
    line: int | None = None


class CheckpointRegion(Frozen):
    """One call of a checkpoint in the model: how many nodes it has under each policy, the snippet's lines that they come from,
    and what of it runs again."""

    region: int
    policies: dict[str, int]
    lines: list[int] = []
    nodes: int
    recomputed: int


class NetworkNodes(Frozen):
    """Columns: `name` is torch's (`mul_in`, `mul_out`, `source`, `sink`); `source_side` is whether the cut leaves it there."""

    name: list[str]
    source_side: list[bool]


class NetworkEdges(Frozen):
    """Columns. `source` and `target` are indices of nodes; `capacity` in bytes as the partitioner weights them, null: unbounded;
    `reason` an index of `strings` (0 is "", a plain edge of the data flow); `cut` is whether the cut goes through it."""

    source: list[int]
    target: list[int]
    capacity: list[float | None]
    reason: list[int]
    cut: list[bool]


class NetworkPayload(Frozen):
    """The flow network that was solved for the partition that was taken, the edges of the cut first. `edges_in_all` is the
    number of edges, with those that were left out for length."""

    format: Literal["network/1"] = "network/1"
    id: str
    strings: list[str]
    nodes: NetworkNodes
    edges: NetworkEdges
    edges_in_all: int
    value: float | None


class PartitionPayload(Frozen):
    """Byte figures are the partitioner's, by hint of symbolic sizes; what is really kept is measured in the memory stage.

    Of `recomputed`, `recomputed_heavy` are those that torch counts as compute-intensive (matrix products, convolutions,
    attention), and `drawn_again` those that draw random numbers from a new seed in the backward, so other ones than in the
    forward."""

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
    recomputed_heavy: list[str] = []
    drawn_again: list[str] = []
    regions: list[CheckpointRegion] = []
    memory_budget: float | None = None
    network_nodes: int | None = None
    network_edges: int | None = None
    cut_value: float | None = None
    options: dict[str, bool | int | float | str | None] = {}
