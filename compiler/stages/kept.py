"""What the partitioner keeps for the backward, in bytes, for the sizes that a graph was really called with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

import torch

from compiler.events import StageName
from compiler.ir.graph import Graph, ScalarValue, Size, SymbolicSize, TensorValue
from compiler.session import Session
from compiler.torch_compat.fx import evaluate
from compiler.torch_compat.replay import Given


def saved_by_partition(session: Session, calls: Iterable[tuple[str | None, Sequence[Given]]]) -> tuple[int, int] | None:
    """Bytes of the tensors that the backward halves are given, and of those that are no input of the forward. `calls` are the
    compiles whose forward halves ran, and the sizes of the arguments. None when none did, or a size is not known."""
    total = activations = 0
    found = False
    for compile_id, given in calls:
        forward = session.graphs.get((compile_id or "", StageName.PARTITION, "forward"))
        backward = session.graphs.get((compile_id or "", StageName.PARTITION, "backward"))
        inputs = [node for node in forward.nodes if node.op == "placeholder"] if forward is not None else []
        if forward is None or backward is None or len(inputs) != len(given):
            return None
        sizes = _sizes(forward, given)
        names = {node.name for node in inputs}
        found = True
        for node in backward.nodes:
            if node.op != "placeholder" or "tangent" in node.roles or not isinstance(node.value, TensorValue):
                continue
            size = _bytes(node.value, sizes)
            if size is None:
                return None
            total += size
            activations += 0 if node.name in names else size
    return (total, activations) if found else None


def _sizes(graph: Graph, given: Sequence[Given]) -> dict[str, int]:
    """The values of the symbols among a graph's sizes."""
    found: dict[str, int] = {}
    inputs = [node.value for node in graph.nodes if node.op == "placeholder"]
    for value, known in zip(inputs, given, strict=True):
        pairs: list[tuple[object, int]] = []
        if isinstance(value, ScalarValue) and isinstance(known, int):
            pairs = [(value.value, known)]
        elif isinstance(value, TensorValue) and isinstance(known, tuple):
            pairs = list(zip(value.shape, known, strict=False))
        found |= {size.expr: at for size, at in pairs if isinstance(size, SymbolicSize) and size.expr.isidentifier()}
    return found


def _bytes(value: TensorValue, sizes: dict[str, int]) -> int | None:
    if all(isinstance(size, int) for size in value.shape):
        return value.bytes
    extents = [_extent(size, sizes) for size in value.shape]
    known = [extent for extent in extents if extent is not None]
    return prod(known) * getattr(torch, value.dtype).itemsize if len(known) == len(extents) else None


def _extent(size: Size, sizes: dict[str, int]) -> int | None:
    return size if isinstance(size, int) else evaluate(size.expr, sizes)
