"""What AOTAutograd's metadata says of a graph: inputs that change, outputs that share memory, subclasses, seeds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import torch
import torch.fx as fx
from torch._functorch._aot_autograd.descriptors import (
    InputMutationAOTOutput,
    IntermediateBaseAOTOutput,
    PhiloxBackwardBaseOffsetAOTInput,
    PhiloxBackwardSeedAOTInput,
    PhiloxForwardBaseOffsetAOTInput,
    PhiloxForwardSeedAOTInput,
    PlainAOTOutput,
    SyntheticBaseAOTInput,
    ViewBaseAOTInput,
)
from torch._functorch._aot_autograd.schemas import MutationType, OutputType, SubclassCreationMeta
from torch.utils import _pytree as pytree

_SEEDS = (
    PhiloxForwardSeedAOTInput,
    PhiloxForwardBaseOffsetAOTInput,
    PhiloxBackwardSeedAOTInput,
    PhiloxBackwardBaseOffsetAOTInput,
)
_OF_INPUT = (OutputType.alias_of_input, OutputType.is_input)


@dataclass(frozen=True)
class Mutated:
    """`descriptor` is torch's name of the input; `returned` the node that is its last value, where the graph returns that."""

    descriptor: Any
    type: str
    data: bool
    metadata: bool
    requires_grad: bool
    hidden_from_autograd: bool
    under_no_grad: bool
    returned: str


@dataclass(frozen=True)
class Alias:
    """`descriptor` of the input that is the base, or `base_node`, the node that is."""

    output: int
    type: str
    descriptor: Any
    base_node: str
    views: list[str]
    requires_grad: bool


@dataclass(frozen=True)
class SubclassFact:
    side: Literal["input", "output", "tangent"]
    index: int
    type: str
    attrs: list[str]
    first: int
    count: int


@dataclass(frozen=True)
class Facts:
    mutated: list[Mutated]
    aliases: list[Alias]
    bases: list[tuple[Any, bool]]
    intermediate_bases: list[str]
    subclasses: list[SubclassFact]
    rng_functionalized: bool
    seeds: list[str]
    tokens: list[str]


def facts(metadata: Any, descriptors: list[Any], graph: fx.Graph | None) -> Facts:
    """`metadata` as before the trace; `graph` with torch's descriptors on what goes in and out, None when it is unknown."""
    outputs = _outputs(graph)
    return Facts(
        mutated=_mutated(metadata, descriptors, outputs),
        aliases=_aliases(metadata, descriptors, outputs),
        bases=[
            (descriptor.base_of, isinstance(descriptor, SyntheticBaseAOTInput))
            for descriptor in descriptors
            if isinstance(descriptor, (SyntheticBaseAOTInput, ViewBaseAOTInput))
        ],
        intermediate_bases=[
            name for descriptor, name in outputs.items() if isinstance(descriptor, IntermediateBaseAOTOutput)
        ],
        subclasses=[
            *_subclasses("input", metadata.subclass_inp_meta),
            *_subclasses("output", metadata.subclass_fw_graph_out_meta),
            *_subclasses("tangent", metadata.subclass_tangent_meta),
        ],
        rng_functionalized=bool(metadata.is_rng_op_functionalized),
        seeds=[
            node.name
            for node in (graph.nodes if graph is not None else ())
            if node.op == "placeholder" and isinstance(node.meta.get("desc"), _SEEDS)
        ],
        tokens=[str(token) for token in metadata.tokens],
    )


def _outputs(graph: fx.Graph | None) -> dict[Any, str]:
    """Torch's descriptor of an output → the node that it is."""
    output = next(iter(reversed(graph.nodes)), None) if graph is not None else None
    if output is None or output.op != "output":
        return {}
    leaves = pytree.tree_leaves(output.args[0], is_leaf=lambda value: value is None)
    named = output.meta.get("desc") or ()
    return {descriptor: leaf.name for leaf, descriptor in zip(leaves, named, strict=False) if isinstance(leaf, fx.Node)}


def _mutated(metadata: Any, descriptors: list[Any], outputs: dict[Any, str]) -> list[Mutated]:
    return [
        Mutated(
            descriptor=descriptor,
            type=info.mutation_type.name,
            data=info.mutates_data,
            metadata=info.mutates_metadata,
            requires_grad=info.requires_grad,
            hidden_from_autograd=info.mutations_hidden_from_autograd,
            under_no_grad=info.mutations_under_no_grad_or_inference_mode,
            returned=outputs.get(InputMutationAOTOutput(descriptor), ""),
        )
        for info, descriptor in zip(metadata.input_info, descriptors, strict=False)
        if info.mutation_type is not MutationType.NOT_MUTATED
    ]


def _aliases(metadata: Any, descriptors: list[Any], outputs: dict[Any, str]) -> list[Alias]:
    """`base_idx` counts inputs, outputs, or intermediate bases, by the type of the alias."""
    bases = [name for descriptor, name in outputs.items() if isinstance(descriptor, IntermediateBaseAOTOutput)]
    found: list[Alias] = []
    for place, info in enumerate(metadata.output_info):
        if info.output_type is OutputType.non_alias:
            continue
        of_input, base = info.output_type in _OF_INPUT, info.base_idx
        node = ""
        if base is not None and not of_input:
            if info.output_type is OutputType.alias_of_intermediate_base_is_user_output:
                node = outputs.get(PlainAOTOutput(base), "")
            elif base < len(bases):
                node = bases[base]
        sequence = info.view_meta_sequence
        found.append(
            Alias(
                output=place,
                type=info.output_type.name,
                descriptor=descriptors[base] if of_input and base is not None else None,
                base_node=node,
                views=[_view_name(view) for view in sequence.sequence] if sequence is not None else [],
                requires_grad=info.requires_grad,
            )
        )
    return found


def _view_name(view: Any) -> str:
    return type(view).__name__.removesuffix("_ViewMeta")


def _subclasses(side: Literal["input", "output", "tangent"], entries: Any) -> list[SubclassFact]:
    found: list[SubclassFact] = []
    for index, entry in enumerate(entries or ()):
        if not isinstance(entry, SubclassCreationMeta):
            continue
        kind = entry.original_subclass_type or type(entry.original_subclass)
        found.append(
            SubclassFact(
                side, index, kind.__qualname__, list(entry.attrs), entry.flat_tensor_start_idx, entry.arg_count
            )
        )
    return found


@lru_cache(maxsize=4096)
def _operator(target: str) -> Any:
    """The operator of the name that is shown for it, `aten.add.Tensor`."""
    found: Any = torch.ops
    for part in target.split("."):
        found = getattr(found, part, None) if part else None
        if found is None:
            return None
    return found if isinstance(found, torch._ops.OpOverload) else None


def draws(target: str) -> bool:
    """Whether an operator draws random numbers."""
    operator = _operator(target)
    return operator is not None and torch.Tag.nondeterministic_seeded in operator.tags
