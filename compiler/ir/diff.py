"""A graph as text, and the difference of two graphs. Torch-free."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from compiler.ir.graph import Graph, Node, Size, TensorValue, Value

_SHORT = {
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "complex64": "c64",
    "complex128": "c128",
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "uint8": "u8",
    "bool": "b8",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a printed graph, the node that it is, and the line of the snippet that the node comes from."""

    text: str
    node: str = ""
    source_line: int | None = None


@dataclass(frozen=True, slots=True)
class GraphDiff:
    """Names of the nodes of one side only, and a unified diff of the printed forms ("" when they are equal)."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    text: str


def print_graph(graph: Graph) -> list[Line]:
    """The graph as Python: one node a line, each run of nodes under the user's line that it comes from."""
    name = graph.id.rsplit("/", 1)[-1]
    parameters = [node for node in graph.nodes if node.op == "placeholder"]
    lines = [Line(f"def {name}({'' if parameters else '):'}")]
    for node in parameters:
        comment = f"  # {node.args}" if node.args and node.args != node.name else ""
        lines.append(Line(f"    {node.name}{_annotation(node.value)},{comment}", node.name, node.line))
    if parameters:
        lines.append(Line("):"))
    above = ""
    for node in graph.nodes:
        if node.op == "placeholder":
            continue
        came_from = origin(node)
        if came_from and came_from != above:
            lines.append(Line(f"    # {came_from}", "", node.line))
        above = came_from or above
        lines.append(Line(f"    {statement(node)}", node.name, node.line))
    return lines


def diff(before: Graph, after: Graph) -> GraphDiff:
    """What changed between two graphs of the same compile. Moved nodes show in the text only."""
    old = {node.name for node in before.nodes}
    new = {node.name for node in after.nodes}
    text = "\n".join(
        difflib.unified_diff(
            [line.text for line in print_graph(before)],
            [line.text for line in print_graph(after)],
            "before",
            "after",
            lineterm="",
            n=2,
        )
    )
    return GraphDiff(
        added=tuple(node.name for node in after.nodes if node.name not in old),
        removed=tuple(node.name for node in before.nodes if node.name not in new),
        text=text,
    )


def value_text(value: Value | None) -> str:
    """A value in short: `f32[16, 32]`, `i64[]`, `(f32[2], None)`, `s0`; "" when nothing is known."""
    if value is None:
        return ""
    if isinstance(value, TensorValue):
        shape = ", ".join(_size(dim) for dim in value.shape)
        return f"{_SHORT.get(value.dtype, value.dtype)}[{shape}]"
    if value.kind == "tuple":
        return "(" + ", ".join(value_text(item) or "None" for item in value.items) + ")"
    inner = value.value
    return value.type if inner is None or isinstance(inner, (bool, str, float)) else f"{value.type} {_size(inner)}"


def _size(size: Size) -> str:
    return str(size) if isinstance(size, int) else size.expr


def _annotation(value: Value | None) -> str:
    text = value_text(value)
    return f": {text}" if text else ""


def origin(node: Node) -> str:
    """The user's innermost line that the node comes from, in words; "" where none is known."""
    for frame in reversed(node.stack):
        if frame.user:
            return f"{frame.file}:{frame.line} in {frame.function}: {frame.code}"
    return ""


def statement(node: Node) -> str:
    """The node as one statement of Python, with its value's type."""
    if node.op == "output":
        return f"return {node.args.removesuffix(',')}"
    if node.op == "get_attr":
        return f"{node.name} = self.{node.target}"
    if node.op == "call_method":
        receiver, _, rest = node.args.partition(", ")
        return f"{node.name}{_annotation(node.value)} = {receiver}.{node.target}({rest})"
    target = f"self.{node.target}" if node.op == "call_module" else node.target
    return f"{node.name}{_annotation(node.value)} = {target}({node.args})"
