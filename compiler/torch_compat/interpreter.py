"""Inductor without its native compiler: all code is generated, none is built; what runs is the post-grad graph, eagerly.

One private surface is replaced, `GraphLowering.compile_to_module` (as torch's own `_inductor.utils.get_code` does). So what
follows a graph break, the backward and later calls are seen, with real values, without waiting for a C++ compiler.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sympy
import torch
from torch._dynamo.utils import dynamo_timed
from torch._higher_order_ops.while_loop import while_loop_op
from torch._inductor import config
from torch._inductor.graph import GraphLowering
from torch._inductor.ir import MultiOutput
from torch._logging import trace_structured
from torch._subclasses.fake_tensor import FakeTensor

from compiler.torch_compat.rng import OVERRIDES

_assert_size_stride: Callable[..., None] = torch._C._dynamo.guards.assert_size_stride


@dataclass(frozen=True)
class FailedAt:
    """The node of a post-grad graph that raised when it ran, and its stack trace as text."""

    compile: str
    graph: str
    node: str
    stack: str


def failed_at(error: BaseException) -> FailedAt | None:
    """Where in a graph an exception comes from, if it comes from there."""
    found = getattr(error, _FAILED_AT, None)
    return found if isinstance(found, FailedAt) else None


_FAILED_AT = "__aotscope_failed_at__"


@dataclass(frozen=True)
class _Part:
    """One of an operator's several results, as the wrapper asserts it: elements, and the operator's name there."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    operator: str


def _parts(lowering: GraphLowering) -> dict[str, _Part]:
    """By FX node, what the wrapper asserts of operators' results (`ir.MultiOutput.codegen`): nothing of empty ones, and here
    nothing of those with symbolic sizes."""
    found: dict[str, _Part] = {}
    for buffer in lowering.buffers if config.size_asserts else ():
        if not isinstance(buffer, MultiOutput) or buffer.skip_size_stride_alignment_checks:
            continue
        node, extents = buffer.get_origin_node(), (*buffer.get_size(), *buffer.get_stride())
        if node is None or not all(sympy.sympify(extent).is_number for extent in extents):
            continue
        size, stride = tuple(map(int, buffer.get_size())), tuple(map(int, buffer.get_stride()))
        if 0 not in size:
            found[node.name] = _Part(size, stride, str(buffer.get_op_name()))
    return found


def _operator(node: torch.fx.Node) -> str:
    """What made a node's value: of one of several results, the operator that has them."""
    maker = node.args[0] if node.target is operator.getitem else node
    return str(getattr(maker, "target", node.target))


class _Interpreter(torch.fx.Interpreter):  # type: ignore[misc]
    """Fails where the generated wrapper does: at a missing part of an operator's result, before anything after it runs."""

    compile_id = ""
    kind = ""
    expected: dict[str, _Part]
    absent: dict[str, str]

    def __init__(self, module: torch.fx.GraphModule, turns: dict[str, list[int]]) -> None:
        super().__init__(module, garbage_collect_values=True)
        self.extra_traceback = False
        self._turns = turns

    def run_node(self, n: torch.fx.Node) -> Any:
        try:
            value = super().run_node(n)
            expected = self.expected.get(n.name)
            if value is None and expected is not None:
                self.absent[n.name] = _operator(n)
                _assert_size_stride(value, expected.size, expected.stride, expected.operator)
            return value
        except Exception as error:
            if failed_at(error) is None:
                stack = n.meta.get("stack_trace") or ""
                setattr(error, _FAILED_AT, FailedAt(self.compile_id, self.kind, n.name, stack))
            raise

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if target is while_loop_op:
            args = self._counted(*args)
        # Ours compute from the seed's value, which a fake one has not.
        function = target if any(isinstance(arg, FakeTensor) for arg in args) else OVERRIDES.get(target, target)
        result = function(*args, **kwargs)
        # Inductor puts operators on lists in place, and goes on reading what they gave: of these, nothing.
        return args[0] if result is None and _in_place_on_lists(target) else result

    def _counted(self, condition: Any, body: Callable[..., Any], *rest: Any) -> tuple[Any, ...]:
        """The arguments of a loop, whose turns are counted under its condition's name."""
        names = {id(module): name for name, module in self.module.named_modules()}
        turns = self._turns.setdefault(names.get(id(condition), ""), [])
        turns.append(0)

        def turn(*carried: Any) -> Any:
            turns[-1] += 1
            return body(*carried)

        return condition, turn, *rest


def _in_place_on_lists(target: Any) -> bool:
    return isinstance(target, torch._ops.OpOverload) and target._schema.name.startswith("aten::_foreach_")


class _Facade:
    """What compile_fx reads of the module of generated code, and nothing more: it would take a `runner` for one of its own."""

    key = None
    path = None
    __file__ = None

    def __init__(self, call: Callable[[list[Any]], Sequence[Any]]) -> None:
        self.call = call


class InterpretedModule:
    """One graph of Inductor's, interpreted: `call(args)` takes a list that it empties, and gives a tuple.

    `code` is the generated text, and `constants` what it reads besides its arguments; `compile` Dynamo's compile id; `graph` is
    forward, backward or inference. `runner` is what `call` delegates to: the interpreter, until another is put in its place
    (the dry run of the generated wrapper is one)."""

    def __init__(self, lowering: GraphLowering, code: str, compile: str | None) -> None:
        self.code = code
        self.compile = compile
        self.is_backward = bool(lowering.is_backward)
        self.constants: dict[str, Any] = {
            **lowering.constants,
            **lowering.torchbind_constants,
            **lowering.opaque_value_type_classes,
        }
        self.graph = "backward" if self.is_backward else "inference" if lowering.is_inference else "forward"
        self.runner: Callable[[list[Any]], Sequence[Any]] = self.interpret
        # Outputs that were to be tensors, by the fake kernels, and were nothing when the graph ran: name and operator of each.
        self.absent: dict[str, str] = {}
        # How often each `while_loop` of the last call turned, by the name of its condition.
        self.turns: dict[str, list[int]] = {}
        # GraphLowering's own copy of the post-grad graph, as it was lowered.
        self._interpreter = _Interpreter(lowering.orig_gm, self.turns)
        self._interpreter.compile_id, self._interpreter.kind = compile or "", self.graph
        # Read after code generation, which knows which results are asserted.
        self._interpreter.expected, self._interpreter.absent = _parts(lowering), self.absent
        self._inputs = list(lowering.graph_inputs.values())
        # Read after code generation: only then are the layouts of the outputs final.
        self._strides = [_stride(output) for output in lowering.graph_outputs or ()]
        self._symbolic = any(not step.is_number for stride in self._strides for step in stride or ())

    def call(self, args: list[Any]) -> Sequence[Any]:
        return self.runner(args)

    def interpret(self, args: list[Any]) -> tuple[Any, ...]:
        """Run the post-grad graph with what the generated wrapper does besides: checked inputs, and outputs in their strides."""
        self._check(args)
        sizes = self._sizes(args) if self._symbolic else {}
        self.turns.clear()
        with torch.no_grad():
            values = self._interpreter.boxed_run(args)
        self._note_absent(values)
        # Kept, they would hold the outputs alive: autograd then copies gradients where it could have taken them.
        self._interpreter.env = {}
        return tuple(
            _restride(value, stride, sizes) if isinstance(value, torch.Tensor) and stride is not None else value
            for value, stride in zip(values, self._strides, strict=True)
        )

    def _note_absent(self, values: Sequence[Any]) -> None:
        given = self._interpreter.graph.output_node().args[0]
        for node, value in zip(given, values, strict=True):
            if value is None and isinstance(node, torch.fx.Node) and isinstance(node.meta.get("val"), torch.Tensor):
                self.absent[node.name] = _operator(node)

    def _check(self, args: list[Any]) -> None:
        for expected, given in zip(self._inputs, args, strict=False):
            if (
                not isinstance(given, torch.Tensor)
                or given.layout != torch.strided
                or not hasattr(expected, "get_size")
            ):
                continue
            size, stride = expected.get_size(), expected.get_stride()
            if all(sympy.sympify(extent).is_number for extent in (*size, *stride)):
                _assert_size_stride(given, tuple(map(int, size)), tuple(map(int, stride)), "input")

    def _sizes(self, args: list[Any]) -> dict[sympy.Symbol, int]:
        """The values of the symbols in sizes, read off the inputs."""
        found: dict[sympy.Symbol, int] = {}
        for expected, given in zip(self._inputs, args, strict=False):
            if isinstance(expected, sympy.Symbol):
                found[expected] = int(given)
            elif isinstance(given, torch.Tensor) and given.layout == torch.strided and hasattr(expected, "get_size"):
                pairs = [*zip(expected.get_size(), given.shape, strict=True)]
                pairs += [*zip(expected.get_stride(), given.stride(), strict=True)]
                for extent, value in pairs:
                    if isinstance(extent, sympy.Symbol):
                        found.setdefault(extent, int(value))
        return found


def _stride(output: Any) -> tuple[sympy.Expr, ...] | None:
    """The stride of an output of the graph; None where it is a number, nothing, or has no layout."""
    if isinstance(output, sympy.Expr) or not hasattr(output, "get_stride"):
        return None
    try:
        return tuple(sympy.sympify(step) for step in output.get_stride())
    except (NotImplementedError, AttributeError):  # constants and opaque values
        return None


def _restride(value: torch.Tensor, stride: tuple[sympy.Expr, ...], sizes: dict[sympy.Symbol, int]) -> torch.Tensor:
    if value.layout != torch.strided or len(stride) != value.dim():
        return value
    wanted = tuple(int(step.subs(sizes)) for step in stride)
    if wanted == value.stride():
        return value
    if all(a == b or extent <= 1 for a, b, extent in zip(wanted, value.stride(), value.shape, strict=True)):
        return value.as_strided(value.shape, wanted)
    fresh = torch.empty_strided(value.shape, wanted, dtype=value.dtype, device=value.device)
    fresh.copy_(value)
    return fresh


@contextlib.contextmanager
def interpreted(current_compile: Callable[[], str | None], made: Callable[[InterpretedModule], None]) -> Iterator[None]:
    """While it lasts, Inductor's compiled callables are interpreted; `made` is told of each one."""
    original = GraphLowering.compile_to_module

    def compile_to_module(self: GraphLowering) -> _Facade:
        with dynamo_timed(
            "GraphLowering.compile_to_module",
            phase_name="code_gen",
            log_pt2_compile_event=True,
            dynamo_compile_column_us="inductor_code_gen_cumulative_compile_time_us",
        ):
            code, _ = self.codegen_with_cpp_wrapper() if self.cpp_wrapper else self.codegen()
            trace_structured("inductor_output_code", payload_fn=lambda: code.value)  # there is no file
            if GraphLowering.save_output_code is not None:
                GraphLowering.save_output_code(code.value)
            module = InterpretedModule(self, code.value, current_compile())
            made(module)
            return _Facade(module.call)

    GraphLowering.compile_to_module = compile_to_module
    try:
        yield
    finally:
        GraphLowering.compile_to_module = original
