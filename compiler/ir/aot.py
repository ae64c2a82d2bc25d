"""AOTAutograd taken apart: its joint graph after each transform, and the ledger of what the transforms replaced."""

from __future__ import annotations

from typing import Literal

from compiler.text import Frozen, Message

TensorKind = Literal["input", "parameter", "buffer", "intermediate"]


class OpCount(Frozen):
    op: str
    count: int


class NodeOp(Frozen):
    """A node by its name in the graph that the field speaks of, and its operator."""

    node: str
    op: str


class AotStep(Frozen):
    """The graph after one transform. `graph` is the hash of a `graph/1` artifact, null when `unknown` says why there is none.

    `gained` and `lost` are operators by how many more, or fewer, there are than a step earlier; `diff` is a unified diff of the
    two graphs' printed form. `equal_to_real` is said of `decomposed` only: whether the graph traced again is the one that
    AOTAutograd made, node for node (operators, arguments, shapes, types, strides), up to names; `difference` is the first
    place where it is not. `seconds` are those of the replay."""

    name: Literal["traced", "functionalized", "decomposed", "joint"]
    graph: str | None = None
    nodes: int | None = None
    forward: int | None = None
    backward: int | None = None
    gained: list[OpCount] = []
    lost: list[OpCount] = []
    diff: str = ""
    equal_to_real: bool | None = None
    difference: str = ""
    seconds: float | None = None
    unknown: Message | None = None


class AotStepsPayload(Frozen):
    """`id` is `compile/joint/graph`. Without steps, `skipped` says why."""

    format: Literal["aot_steps/1"] = "aot_steps/1"
    id: str
    steps: list[AotStep]
    skipped: Message | None = None


class Mutation(Frozen):
    """One in-place operation of the traced program on one tensor.

    `tensor` is the tensor whose memory it writes, as the user wrote it, or, for an intermediate, the node of the
    functionalized graph that made it; `through_view` when it was written by way of a view. `functional` are the nodes of the
    functionalized graph that stand for the operation, `nodes` those of the joint graph. `copy_node` is the node of the joint
    graph that writes an input's last value back, null when there is none. `line` is the snippet's."""

    op: str
    what: TensorKind
    tensor: str
    through_view: bool = False
    backward: bool = False
    line: int | None = None
    functional: list[NodeOp] = []
    nodes: list[str] = []
    copy_node: str | None = None


class MutatedInput(Frozen):
    """An input that is another one after the call. `type` is torch's word. `copy_node` is the node of the joint graph that
    writes it back, `value` the node that holds its last value. Without a `copy_node`, the value is an output of the graph,
    and the runtime writes it back."""

    tensor: str
    what: TensorKind
    type: str
    data: bool
    metadata: bool
    requires_grad: bool
    hidden_from_autograd: bool
    under_no_grad: bool
    copy_node: str | None = None
    value: str | None = None
    line: int | None = None


class TrackedView(Frozen):
    """A view of memory that is written in place, so that the one shows in the other. `nodes` are the joint graph's."""

    op: str
    what: TensorKind
    tensor: str
    line: int | None = None
    nodes: list[str] = []


class Regenerated(Frozen):
    """Views that were made anew from a written base, when `reader` next read them. Nodes are the functionalized graph's."""

    reader: str
    line: int | None = None
    views: list[NodeOp]


class OutputAlias(Frozen):
    """An output of the model that shares memory. `type` is torch's word; `base` is the input as the user wrote it, or the
    node of the joint graph that is the base, "" where torch names none; `views` lead from the base to the output."""

    output: int
    type: str
    base: str = ""
    views: list[str] = []
    requires_grad: bool = False


class SyntheticBase(Frozen):
    """Inputs that share memory and are written: torch passes their common base in their place. `made` when the base is not
    a tensor that exists already."""

    base_of: str
    made: bool


class Decomposition(Frozen):
    """An operator that a decomposition replaced, and by what; once for each way that it went. `examples` are nodes of the
    joint graph, those of one call."""

    op: str
    into: list[OpCount]
    count: int
    examples: list[str] = []
    lines: list[int] = []


class RandomNode(Frozen):
    node: str
    op: str
    line: int | None = None


class Rng(Frozen):
    """`functionalized`: seeds are inputs of the graph (`seeds`, its placeholders) and not the generator's state. `nodes` draw."""

    functionalized: bool
    seeds: list[str] = []
    nodes: list[RandomNode] = []


class Subclass(Frozen):
    """A tensor subclass at the edge of the graph, which the graph has as `count` plain tensors from place `first` on."""

    side: Literal["input", "output", "tangent"]
    index: int
    tensor: str
    type: str
    attrs: list[str]
    first: int
    count: int


class LedgerPayload(Frozen):
    """`id` is `compile/joint/graph`. `exact` when the joint graph was reproduced, so that its nodes are named; else the nodes
    are those of the graph traced again. `unknown` says why parts are missing."""

    format: Literal["ledger/1"] = "ledger/1"
    id: str
    exact: bool
    mutations: list[Mutation] = []
    mutated_inputs: list[MutatedInput] = []
    views: list[TrackedView] = []
    regenerated: list[Regenerated] = []
    outputs: list[OutputAlias] = []
    synthetic_bases: list[SyntheticBase] = []
    intermediate_bases: list[str] = []
    decompositions: list[Decomposition] = []
    rng: Rng
    subclasses: list[Subclass] = []
    effect_tokens: list[str] = []
    unknown: Message | None = None
