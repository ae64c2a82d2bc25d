"""Inductor's buffers while a built wrapper runs, each held against the FX node that it stands for.

Nothing is compiled again: when a wrapper is entered, its post-grad graph is interpreted on copies of the same arguments, once
as it is and once in float64; after each kernel that it launches, the buffers it was given are compared with those values. In
float64 lies the yardstick: a buffer is wrong when it is much farther from it than the interpreted graph is.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch
import torch.fx as fx
from torch._inductor.graph import GraphLowering

from compiler.torch_compat.rng import OVERRIDES
from compiler.torch_compat.wrapper import Built, kernel_lines, mark_lines

# Of the largest magnitude that takes part; and times the interpreted graph's own error.
_SHARE = {torch.float64: 1e-9, torch.complex128: 1e-9, torch.float16: 5e-3, torch.bfloat16: 3e-2}
_SHARE_DEFAULT = 2e-5
_OWN_TIMES = 10.0
_BUFFER = re.compile(r"\bbuf\d+\b")


@dataclass(frozen=True)
class WrongBuffer:
    """`difference` is the largest from the float64 value, `own` the interpreted graph's own, `scale` the value's largest
    magnitude. `line` is the wrapper's."""

    built: int
    buffer: str
    node: str
    stack: str
    line: int
    kernel: str
    difference: float
    own: float
    scale: float


@dataclass
class Watched:
    compared: int = 0
    first: WrongBuffer | None = None


def buffer_nodes(lowering: GraphLowering) -> dict[str, str]:
    """Buffer → the node of the post-grad graph whose value it holds. Without those whose memory is another's or is never written:
    mutations, and what a fused kernel keeps in registers."""
    gone = lowering.removed_buffers | lowering.inplaced_to_remove
    found: dict[str, str] = {}
    for buffer in lowering.buffers:
        node = getattr(buffer, "origin_node", None)
        name = buffer.get_name()
        if node is None or name in gone or buffer.get_mutation_names() or buffer.get_inputs_that_alias_output():
            continue
        if "Mutation" not in type(buffer.get_output_spec()).__name__:
            found[name] = node.name
    return found


def watch_buffers(wrappers: Sequence[Built]) -> Watched:
    """From now on every call of these wrappers is watched; what is found is in the result. For a fork: the marks stay."""
    watched = Watched()
    for index, built in enumerate(wrappers):
        if built.lowering is not None:
            mark_lines(built, _Watch(index, built, built.lowering, watched).at)
    return watched


class _Watch:
    def __init__(self, index: int, built: Built, lowering: GraphLowering, watched: Watched) -> None:
        module = lowering.orig_gm
        self._index = index
        self._module: fx.GraphModule = module
        self._nodes = buffer_nodes(lowering)
        self._watched = watched
        self._kernels = kernel_lines(built.text)
        self._text = built.text.splitlines()
        self._stacks = {node.name: node.meta.get("stack_trace") or "" for node in module.graph.nodes}
        self._operands = {node.name: [source.name for source in node.all_input_nodes] for node in module.graph.nodes}
        self._values: dict[str, torch.Tensor] = {}
        self._exact: dict[str, torch.Tensor] = {}
        self._seen: set[str] = set()
        self._line = 0

    def at(self, line: int) -> None:
        frame = sys._getframe(1)
        if frame.f_code.co_name != "call":  # a body of a higher-order operator
            return
        if not self._line and line:
            self._enter(frame.f_locals.get("args"))
        elif self._line in self._kernels:
            self._check(frame, self._line)
        self._line = line
        if not line:
            self._values, self._exact, self._seen = {}, {}, set()

    def _enter(self, args: Any) -> None:
        self._values = _interpreted(self._module, args, exact=False)
        self._exact = _interpreted(self._module, args, exact=True)

    def _check(self, frame: FrameType, line: int) -> None:
        if self._watched.first is not None:
            return
        names = [name for name in _BUFFER.findall(self._text[line - 1]) if name not in self._seen]
        for name in dict.fromkeys(names):
            tensor, node = frame.f_locals.get(name), self._nodes.get(name)
            if isinstance(tensor, torch.Tensor) and node is not None:
                self._seen.add(name)
                self._compare(name, node, tensor, line)

    def _compare(self, name: str, node: str, tensor: torch.Tensor, line: int) -> None:
        expected, exact = self._values.get(node), self._exact.get(node)
        if expected is None or exact is None or not (tensor.is_floating_point() or tensor.is_complex()):
            return
        actual = _as(tensor, expected)
        if actual is None:
            return
        self._watched.compared += 1
        difference, own = _distance(actual, exact), _distance(expected, exact)
        operands = [self._exact[source] for source in self._operands[node] if source in self._exact]
        scale = max(_magnitude(exact), *(_magnitude(operand) for operand in operands), 0.0)
        allowed = max(_OWN_TIMES * own, _SHARE.get(tensor.dtype, _SHARE_DEFAULT) * scale)
        if not difference <= allowed:
            kernel = self._kernels[line]
            self._watched.first = WrongBuffer(
                self._index, name, node, self._stacks[node], line, kernel, difference, own, _magnitude(exact)
            )


def _interpreted(module: fx.GraphModule, args: Any, *, exact: bool) -> dict[str, torch.Tensor]:
    """Node → a copy of its value. With `exact`, everything floating is computed in float64."""
    found: dict[str, torch.Tensor] = {}

    def widened(value: Any) -> Any:
        if not exact or not isinstance(value, torch.Tensor):
            return value
        return (
            value.double() if value.is_floating_point() else value.to(torch.complex128) if value.is_complex() else value
        )

    class Interpreter(fx.Interpreter):  # type: ignore[misc]
        def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            return OVERRIDES.get(target, target)(*args, **kwargs)

        def run_node(self, node: fx.Node) -> Any:
            value = torch.utils._pytree.tree_map(widened, super().run_node(node))
            if isinstance(value, torch.Tensor) and value.layout == torch.strided:
                found[node.name] = value.clone()
            return value

    copies = [widened(arg.clone()) if isinstance(arg, torch.Tensor) else arg for arg in args]
    interpreter = Interpreter(module, garbage_collect_values=True)
    interpreter.extra_traceback = False
    with torch.no_grad():
        interpreter.boxed_run(copies)
    return found


def _as(tensor: torch.Tensor, like: torch.Tensor) -> torch.Tensor | None:
    """`tensor` in the shape of `like`, None where that is not the same memory order."""
    if tensor.shape == like.shape:
        return tensor
    if tensor.numel() == like.numel() and tensor.is_contiguous() and like.is_contiguous():
        return tensor.reshape(like.shape)
    return None


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)


def _distance(one: torch.Tensor, other: torch.Tensor) -> float:
    """The largest difference; equal infinities and NaN at the same place are none. NaN when only one is NaN."""
    a, b = _wide(one), _wide(other)
    if not a.numel():
        return 0.0
    same = (a == b) | (a.isnan() & b.isnan())
    return float(torch.where(same, torch.zeros_like(a), a - b).abs().max())


def _magnitude(tensor: torch.Tensor) -> float:
    if not tensor.numel() or tensor.dtype == torch.bool:
        return 0.0
    values = _wide(tensor).abs()
    finite = values[values.isfinite()]
    return float(finite.max()) if finite.numel() else 0.0
