"""How many arithmetic operations an FX node takes at least, by shapes alone.

Matrix products, convolutions and attention: torch's own formulas (`torch.utils.flop_counter`, a multiplication and
an addition are two). Elementwise operators, which torch tags as such: one for each element of the result, however
dear (`exp` counts as one). Reductions, tagged too: a formula for each. What only moves data: none. Everything else
is unknown.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx as fx
from torch.utils.flop_counter import flop_registry

from compiler.ir.graph import TensorValue, TupleValue, Value
from compiler.ir.roofline import NodeOperations

Values = Callable[[fx.Node], Value | None]

_TORCH = "torch.utils.flop_counter"
_TAG_POINTWISE = "torch.Tag.pointwise"
_TAG_REDUCTION = "torch.Tag.reduction"
_aten = torch.ops.aten

_MOVES = {
    _aten.clone, _aten._to_copy, _aten.copy, _aten.copy_, _aten.full, _aten.full_like, _aten.empty, _aten.cat, _aten.index,
    _aten.select_scatter, _aten.slice_scatter, _aten.gather, _aten.index_select, _aten.embedding, _aten.constant_pad_nd,
    _aten.scalar_tensor, _aten.lift_fresh_copy, _aten.repeat, _aten.flip, _aten.arange, _aten.scatter, _aten.index_put,
    _aten.select, _aten.fill, _aten.zeros, _aten.ones, _aten.new_empty, torch.ops.prims.convert_element_type,
    torch.ops.prims.iota, torch.ops.prims.device_put,
}  # fmt: skip
# Operator → (operations for each element of the input, what they are).
_REDUCTIONS: dict[Any, tuple[int, str]] = {
    _aten.sum: (1, "n"),
    _aten.mean: (1, "n"),
    _aten.amax: (1, "n"),
    _aten.amin: (1, "n"),
    _aten.max: (1, "n"),
    _aten.min: (1, "n"),
    _aten.argmax: (1, "n"),
    _aten.argmin: (1, "n"),
    _aten.prod: (1, "n"),
    _aten.any: (1, "n"),
    _aten.all: (1, "n"),
    _aten.cumsum: (1, "n"),
    # A sum of the values, and the squares and their sum.
    _aten.var: (3, "3 n"),
    _aten.var_mean: (3, "3 n"),
}
# Inductor's own: the maximum; a difference, an exponential and a sum.
_ONLINE_SOFTMAX = (4, "4 n")


_CONVOLUTIONS = (_aten.convolution, _aten.convolution_backward)


@dataclass(frozen=True, slots=True)
class Tf32:
    """For which operators torch's own switches allow TF32 where the inputs are float32. Attention counts as products."""

    products: bool
    convolutions: bool


def tf32() -> Tf32:
    """As the switches stand, in the words that both of torch's ways to set them agree on. Its defaults differ: products no,
    convolutions yes."""
    return Tf32(
        products=torch.backends.cuda.matmul.fp32_precision == "tf32",
        convolutions=torch.backends.cudnn.conv.fp32_precision == "tf32",
    )


def is_view(node: fx.Node) -> bool:
    """Whether a node's result is another tensor's memory, or a part of a tuple."""
    return node.target is operator.getitem or bool(getattr(node.target, "is_view", False))


def mutates(node: fx.Node) -> bool:
    """Whether a node writes to its first argument."""
    schema = getattr(node.target, "_schema", None)
    return bool(schema is not None and schema.is_mutable)


def gathers(node: fx.Node) -> bool:
    """Whether a node reads only those rows of its first argument that its indices name."""
    return getattr(node.target, "overloadpacket", None) in (
        _aten.embedding,
        _aten.index,
        _aten.gather,
        _aten.index_select,
    )


def operations(node: fx.Node, values: Values, allowed: Tf32) -> NodeOperations:
    """What a node computes, and the units and type that it asks for; whether the device has them is not known here."""
    packet = getattr(node.target, "overloadpacket", node.target)
    name = str(node.target)
    if is_view(node) or packet in _MOVES:
        return NodeOperations(node=node.name, target=name, operations=0)
    inputs = [value for argument in node.all_input_nodes if isinstance(value := values(argument), TensorValue)]
    result = _first(values(node))
    if packet in flop_registry:
        return _by_torch(node, name, packet, values, inputs, allowed)
    dtype = _arithmetic(inputs, result)
    tags = getattr(node.target, "tags", ())
    if torch.Tag.pointwise in tags:
        count = None if result is None else _elements(result)
        return _row(node, name, count, dtype, "n", _TAG_POINTWISE)
    reduction = _ONLINE_SOFTMAX if "prepare_softmax_online" in name else _REDUCTIONS.get(packet)
    if reduction is not None and inputs:
        elements = _elements(inputs[0])
        count = None if elements is None else reduction[0] * elements
        return _row(node, name, count, dtype, reduction[1], _TAG_REDUCTION)
    return NodeOperations(node=node.name, target=name, operations=None)


def _row(node: fx.Node, target: str, count: int | None, dtype: str, formula: str, source: str) -> NodeOperations:
    return NodeOperations(node=node.name, target=target, operations=count, dtype=dtype, formula=formula, source=source)


def _by_torch(
    node: fx.Node, name: str, packet: Any, values: Values, inputs: list[TensorValue], allowed: Tf32
) -> NodeOperations:
    def shape(argument: fx.Node) -> Any:
        value = _first(values(argument))
        return argument if value is None else torch.Size(_sizes(value))

    dtype = inputs[0].dtype if inputs else ""
    may = allowed.convolutions if packet in _CONVOLUTIONS else allowed.products
    kind = "tf32" if dtype == "float32" and may else dtype
    count: int | None
    try:
        arguments = fx.map_arg(node.args, shape)
        options = fx.map_arg(node.kwargs, shape)
        count = int(flop_registry[packet](*arguments, **options, out_val=shape(node)))
    except (AssertionError, AttributeError, TypeError, ValueError, IndexError):
        # The formula is for other arguments than these: torch's counter would refuse as well.
        count = None
    return NodeOperations(
        node=node.name,
        target=name,
        operations=count,
        unit="matrix",
        dtype=kind,
        formula=getattr(flop_registry[packet], "__name__", ""),
        source=_TORCH,
    )


def _first(value: Value | None) -> TensorValue | None:
    if isinstance(value, TupleValue):
        return next((item for item in value.items if isinstance(item, TensorValue)), None)
    return value if isinstance(value, TensorValue) else None


def _sizes(value: TensorValue) -> list[int]:
    """Raises ValueError for a size without a hint."""
    sizes = [size if isinstance(size, int) else size.hint for size in value.shape]
    if None in sizes:
        raise ValueError("a size without a hint")
    return [size for size in sizes if size is not None]


def _elements(value: TensorValue) -> int | None:
    try:
        return math.prod(_sizes(value))
    except ValueError:
        return None


def _arithmetic(inputs: list[TensorValue], result: TensorValue | None) -> str:
    """The type that Inductor's code computes in: half types as float32 (its default
    `triton.codegen_upcast_to_fp32`); a comparison in that of its operands."""
    known = [value.dtype for value in (*inputs[:1], *([result] if result else []))]
    dtype = next((one for one in reversed(known) if one != "bool"), known[0] if known else "")
    return "float32" if dtype in ("float16", "bfloat16") else dtype
