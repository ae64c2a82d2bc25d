"""What torch keeps on a node of an FX graph, read without touching it: values, stacks, modules, descriptors.

No symbolic size is ever turned into a number (that would add a guard and specialise the graph): its hint is read instead.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from linecache import getline
from types import FunctionType
from typing import Any

import sympy
import torch
import torch.fx as fx
import torch.utils._sympy.functions as _sympy

from compiler.ir.graph import ScalarValue, Size, SymbolicSize, TensorValue, TupleValue, Value

_ARGS_LIMIT = 4000
_FRAME = re.compile(r'File "([^"]+)", line (\d+), in ([^\n]*)\n?((?:(?!\s*File ")[^\n]*\n?)*)')


def size(value: Any) -> Size:
    """A size as torch holds it: a number, or an expression with its hint (null when data-dependent)."""
    if isinstance(value, int):
        return value
    node = value.node
    constant = getattr(node, "constant", None)
    if constant is not None:
        return int(constant)
    expr = getattr(node, "expr", None)
    if expr is None:  # the ragged size of a nested tensor has no expression
        return SymbolicSize(expr=str(value))
    if expr.is_number:
        return int(expr)
    return _symbolic(str(expr), _as_int(node.hint))


def evaluate(expr: str, sizes: Mapping[str, int]) -> int | None:
    """An expression of torch's, as text, for these values of its symbols; None when one is missing."""
    functions = {name: getattr(_sympy, name) for name in _sympy.__all__}
    value = sympy.sympify(expr, locals=functions | {name: sympy.Integer(at) for name, at in sizes.items()})
    return int(value) if value.is_Integer else None


def _as_int(hint: object) -> int | None:
    return hint if isinstance(hint, int) else None


@lru_cache(maxsize=4096)
def _symbolic(expr: str, hint: int | None) -> SymbolicSize:
    return SymbolicSize(expr=expr, hint=hint)


def hint(value: Size) -> int | None:
    return value if isinstance(value, int) else value.hint


def tensor_value(tensor: torch.Tensor) -> TensorValue:
    """Metadata of a tensor: shape and stride in elements, bytes of its elements by the hints of symbolic sizes."""
    strided = tensor.layout == torch.strided and not tensor.is_nested
    shape = tuple(size(dim) for dim in tensor.shape)
    return _tensor(
        shape,
        tuple(size(step) for step in tensor.stride()) if strided else None,
        tensor.dtype,
        tensor.device,
        tensor.layout,
        tensor.requires_grad,
    )


@lru_cache(maxsize=4096)
def _tensor(
    shape: tuple[Size, ...],
    stride: tuple[Size, ...] | None,
    dtype: torch.dtype,
    device: torch.device,
    layout: torch.layout,
    requires_grad: bool,
) -> TensorValue:
    total: int | None = dtype.itemsize if stride is not None else None
    for dim in shape:
        known = hint(dim)
        total = None if total is None or known is None else total * known
    return TensorValue(
        shape=shape,
        dtype=str(dtype).removeprefix("torch."),
        device=str(device),
        stride=stride,
        bytes=total,
        requires_grad=requires_grad,
        layout=str(layout).removeprefix("torch."),
        memory_format=_memory_format(shape, stride),
    )


def _memory_format(shape: tuple[Size, ...], stride: tuple[Size, ...] | None) -> str | None:
    """By the hints: torch's own question would add guards on symbolic sizes."""
    if stride is None:
        return None
    sizes = [hint(dim) for dim in shape]
    steps = [hint(step) for step in stride]

    def dense(order: Sequence[int]) -> bool:
        expected = 1
        for axis in order:
            extent, step = sizes[axis], steps[axis]
            if extent is None or step is None or (extent != 1 and step != expected):
                return False
            expected *= extent
        return True

    if dense(range(len(shape) - 1, -1, -1)):
        return "contiguous"
    if len(shape) == 4 and dense((1, 3, 2, 0)):
        return "channels_last"
    if len(shape) == 5 and dense((1, 4, 3, 2, 0)):
        return "channels_last_3d"
    return None


def value_of(node: fx.Node) -> Value | None:
    """What flows out of a node, or None where torch keeps nothing about it."""
    meta = node.meta
    raw = meta.get("val")
    if raw is None:
        raw = meta.get("example_value")
    return _value(raw)


def _value(raw: Any) -> Value | None:
    if isinstance(raw, torch.Tensor):
        return tensor_value(raw)
    if isinstance(raw, (tuple, list)):
        return TupleValue(items=tuple(_item(part) for part in raw))
    return _scalar(raw)


def _item(raw: Any) -> TensorValue | ScalarValue | None:
    return tensor_value(raw) if isinstance(raw, torch.Tensor) else _scalar(raw)


def _scalar(raw: Any) -> ScalarValue | None:
    if isinstance(raw, torch.SymInt):
        return ScalarValue(type="SymInt", value=size(raw))
    if isinstance(raw, (torch.SymFloat, torch.SymBool)):
        return ScalarValue(type=type(raw).__name__, value=str(raw))
    if isinstance(raw, (bool, int, float, str)):
        return ScalarValue(type=type(raw).__name__, value=raw)
    return None


def target_text(node: fx.Node) -> str:
    """A node's target as a reader knows it: `aten.addmm.default`, `torch.nn.functional.gelu`, a method's name."""
    target: Any = node.target
    return target if isinstance(target, str) else str(_function_name(target))


@lru_cache(maxsize=4096)
def _function_name(target: Any) -> str:
    if isinstance(target, torch._ops.OperatorBase):
        return str(target)
    name: str = getattr(target, "__qualname__", getattr(target, "__name__", str(target)))
    module = getattr(target, "__module__", None) or ""
    if module == "_operator":
        module = "operator"
    if module in ("torch._C", "torch._C._nn", "torch._C._VariableFunctions"):
        module = "torch.nn.functional" if module.endswith("_nn") else "torch"
    if name.startswith(("_VariableFunctionsClass.", "PyCapsule.")):
        name = name.split(".", 1)[1]
    return f"{module}.{name}" if module and module != "builtins" else name


def args_text(node: fx.Node) -> str:
    """A node's arguments as they would be written in a call, other nodes by their names."""
    if node.op in ("placeholder", "get_attr"):
        return ""
    parts = [argument_text(arg) for arg in node.args]
    parts += [f"{key}={argument_text(arg)}" for key, arg in node.kwargs.items()]
    text = ", ".join(parts)
    # What a graph returns is never cut: it could not be run otherwise.
    return text if len(text) <= _ARGS_LIMIT or node.op == "output" else text[: _ARGS_LIMIT - 1] + "…"


def argument_text(arg: Any) -> str:
    if isinstance(arg, fx.Node):
        return str(arg.name)
    if isinstance(arg, (list, fx.immutable_collections.immutable_list)):
        return "[" + ", ".join(argument_text(item) for item in arg) + "]"
    if isinstance(arg, tuple):
        inner = ", ".join(argument_text(item) for item in arg)
        return f"({inner},)" if len(arg) == 1 else f"({inner})"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{key!r}: {argument_text(item)}" for key, item in arg.items()) + "}"
    if isinstance(arg, slice):
        return f"slice({argument_text(arg.start)}, {argument_text(arg.stop)}, {argument_text(arg.step)})"
    if isinstance(arg, (str, int, float, complex, bool, type(None), torch.dtype, torch.device, torch.layout)):
        return repr(arg)
    if isinstance(arg, (torch.memory_format, torch.SymInt, torch.SymFloat, torch.SymBool)):
        return str(arg)
    if callable(arg) and hasattr(arg, "__name__"):
        return str(arg.__name__)
    return f"<{type(arg).__name__}>"


def frames(stack_trace: str) -> tuple[tuple[str, int, str, str], ...]:
    """`meta["stack_trace"]` as (file, line, function, code), outermost first."""
    return tuple(
        (file, int(line), function.strip(), code.strip().split("\n", 1)[0].strip())
        for file, line, function, code in _FRAME.findall(stack_trace)
    )


def modules(node: fx.Node) -> tuple[tuple[str, str, str], ...]:
    """The modules that a node lies in, outermost first, as torch names them: (key, path, class name).

    The key ends in `@1` for the second call of a module, `@2` for the third."""
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack")
    if not stack:
        return ()
    return tuple(
        (str(key), path, kind if isinstance(kind, str) else kind.__qualname__) for key, (path, kind) in stack.items()
    )


def module_frame(node: fx.Node) -> tuple[str, int, str, str] | None:
    """(file, line, function, code) of the `forward` of the module of `torch.nn` that a node lies in: Dynamo leaves such frames
    out of its stacks. The line is that of the `def`. None where the module is not one of torch's."""
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack")
    if not stack:
        return None
    kind = [*stack.values()][-1][1]
    return _forward_of(kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}")


@lru_cache(maxsize=1024)
def _forward_of(kind: str) -> tuple[str, int, str, str] | None:
    module, _, name = kind.rpartition(".")
    forward = getattr(getattr(sys.modules.get(module), name, None), "forward", None)
    if not kind.startswith("torch.nn.") or not isinstance(forward, FunctionType):
        return None
    code = forward.__code__
    return code.co_filename, code.co_firstlineno, code.co_name, getline(code.co_filename, code.co_firstlineno).strip()


def stack_trace(node: fx.Node) -> str:
    return node.meta.get("stack_trace") or ""


def seq_nr(node: fx.Node) -> int | None:
    """The number of the autograd node: a backward node has that of the forward nodes it is the gradient of."""
    number = node.meta.get("seq_nr")
    return number if isinstance(number, int) and number >= 0 else None


def is_accumulation(node: fx.Node) -> bool:
    """Whether a node sums the gradients of a tensor that is used more than once."""
    return bool(node.meta.get("is_gradient_acc")) or "Gradient addition node" in stack_trace(node)


def is_mutation(node: fx.Node) -> bool:
    """Whether a node writes to one of its arguments."""
    if node.op == "call_method":
        name = str(node.target)
        return name.endswith("_") and not name.endswith("__")
    schema = getattr(node.target, "_schema", None)
    return bool(schema is not None and schema.is_mutable)


def is_addition(node: fx.Node) -> bool:
    """Whether a node's gradient reaches what it read unchanged, without a node of the backward."""
    return node.target is torch.ops.aten.add.Tensor


def half(node: fx.Node) -> str:
    """The half of a joint graph that a node lies in, by torch's own tag, which the partitioner reads too: what has none
    (an assertion, a random seed) is computed in the forward. "" in a graph without tags."""
    tag = node.meta.get("partitioner_tag")
    if tag is None:
        return "forward" if node.op.startswith("call") and "desc" in _first(node).meta else ""
    return "backward" if tag in ("is_backward", "must_be_in_backward") else "forward"


def _first(node: fx.Node) -> fx.Node:
    return next(iter(node.graph.nodes))


def has_backward(graph: fx.Graph) -> bool:
    """Whether a graph holds a backward: torch tags each of its nodes."""
    return any(node.meta.get("partitioner_tag") == "is_backward" for node in graph.nodes)


def is_tangent(node: fx.Node) -> bool:
    if node.op != "placeholder":
        return False
    descriptor = node.meta.get("desc")
    return bool(descriptor.is_tangent()) if hasattr(descriptor, "is_tangent") else "tangents" in node.name


def input_index(node: fx.Node) -> int | None:
    """Which placeholder of Dynamo's graph a placeholder of a later graph is, where it is one of them as it came."""
    return input_place(node.meta.get("desc"))


def input_place(descriptor: Any) -> int | None:
    """The place among the inputs of Dynamo's graph that torch's descriptor of an input comes down to."""
    while descriptor is not None and not isinstance(getattr(descriptor, "idx", None), int):
        descriptor = getattr(descriptor, "base", None) or getattr(descriptor, "base_of", None)
    return None if descriptor is None else int(descriptor.idx)


def input_indices(graph: fx.Graph) -> dict[str, int]:
    """Name of a placeholder → which placeholder of Dynamo's graph it is, for those that are one as it came."""
    found: dict[str, int] = {}
    for node in graph.nodes:
        if node.op != "placeholder":
            break
        index = None if is_tangent(node) else input_index(node)
        if index is not None:
            found[node.name] = index
    return found


def output_roles(output: fx.Node) -> dict[str, tuple[str, int | None]]:
    """Node name → (role, index of Dynamo's placeholder it belongs to) for what a graph returns.

    role: `output` for the user's outputs, `gradient` for gradients of inputs, "" for torch's own."""
    leaves: list[Any] = []

    def collect(arg: Any) -> None:
        if isinstance(arg, (list, tuple)):
            for item in arg:
                collect(item)
        else:
            leaves.append(arg)

    collect(output.args[0])
    descriptors = output.meta.get("desc")
    found: dict[str, tuple[str, int | None]] = {}
    for position, leaf in enumerate(leaves):
        if not isinstance(leaf, fx.Node):
            continue
        descriptor = descriptors[position] if descriptors and position < len(descriptors) else None
        if descriptor is None:
            found.setdefault(leaf.name, ("output", None))
        elif descriptor.is_grad():
            found[leaf.name] = ("gradient", input_place(getattr(descriptor, "grad_of", None)))
        elif type(descriptor).__name__ in ("SavedForBackwardsAOTOutput", "SavedForBackwardsNoVcCheckAOTOutput"):
            found.setdefault(leaf.name, ("", None))
        else:
            found.setdefault(leaf.name, ("output", None))
    return found


def source_name(node: fx.Node) -> str:
    """Dynamo's expression for one of its placeholders, e.g. `L['self']._modules['fc1']._parameters['weight']`."""
    source = getattr(node, "_dynamo_source", None)
    if source is None:
        source = getattr(node.meta.get("grapharg"), "source", None)
    name = getattr(source, "name", "")
    return str(name() if callable(name) else name)


def is_parameter(node: fx.Node) -> bool:
    """Whether a placeholder of Dynamo's graph, or an attribute that a node reads, is an `nn.Parameter`."""
    example = node.meta.get("example_value")
    return isinstance(example, torch.nn.Parameter) or "_parameters[" in source_name(node)


def origins(graph: fx.Graph) -> dict[str, list[str]]:
    """Node name → names of the nodes that it was made of, in the graphs it went through, the earliest graph first."""
    return {node.name: _origins(node.meta.get("from_node") or ()) for node in graph.nodes if "from_node" in node.meta}


def _origins(sources: Any) -> list[str]:
    names: list[str] = []
    for source in sources:
        names += _origins(source.from_node or ())
        names.append(source.name)
    return names
