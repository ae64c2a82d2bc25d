"""A graph as a Python file that runs on its own: the graph as a function, inputs of the right form, and a call.

What a run says of a graph is text, and a run can forge it. So an argument is read as Python and written again only when it is
made of what an FX graph's arguments are made of: nothing else of it gets into the file.
"""

from __future__ import annotations

import ast
import keyword
import re
import string
from pathlib import Path

from compiler.errors import AotscopeError
from compiler.ir.diff import origin, value_text
from compiler.ir.graph import Graph, Node, ScalarValue, Size, TensorValue, Value
from compiler.text import message

_TEMPLATE = Path(__file__).parent.parent / "templates" / "graph.txt"
_TARGET = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_DIRECT = ("torch", "operator", "math")
_NUMBERS = ("inf", "nan")
_CONSTRUCTORS = ("device", "slice")


class CannotRunError(AotscopeError):
    """The graph holds what cannot be written down from the run's record; `cause` names the node."""


def script(graph: Graph, torch: str, version: str) -> str:
    """The file. Raises CannotRunError."""
    names = {node.name for node in graph.nodes}
    parameters = [node for node in graph.nodes if node.op == "placeholder"]
    lines = [f"def graph({', '.join(_name(node) for node in parameters)}):"]
    above = ""
    for node in graph.nodes:
        if node.op == "placeholder":
            continue
        came_from = _comment(origin(node))
        if came_from and came_from != above:
            lines.append(f"    # {came_from}")
        above = came_from or above
        lines.append(f"    {_statement(node, names)}")
    lines += ["", "", "def inputs():", "    return ["]
    lines += [
        f"        {_made(node.value, node)},  # {_comment(node.name)} {_comment(value_text(node.value))}"
        for node in parameters
    ]
    lines.append("    ]")
    title = f"The graph {_comment(graph.id)}."
    return string.Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(
        title=_quoted(title),
        version=_quoted(version),
        torch=_quoted(torch),
        imports=_imports(graph),
        body="\n".join(lines),
    )


def _comment(text: str) -> str:
    return " ".join(text.split())


def _quoted(text: str) -> str:
    """Text for inside a docstring."""
    return text.replace("\\", "/").replace('"', "'")


def _imports(graph: Graph) -> str:
    modules = set()
    for node in graph.nodes:
        if node.target.startswith("prims."):
            modules.add("torch._inductor.inductor_prims")
        elif node.target.startswith("torch._dynamo.") or node.target.startswith("torch._inductor."):
            modules.add(node.target.rsplit(".", 1)[0])
    return "".join(f"import {name}  # its operators\n" for name in sorted(modules) if _TARGET.fullmatch(name))


def _name(node: Node) -> str:
    if not node.name.isidentifier() or keyword.iskeyword(node.name):
        raise CannotRunError(message("server.export_argument", node=node.name[:100]))
    return node.name


def _statement(node: Node, names: set[str]) -> str:
    if node.op == "output":
        returned = _arguments(node, names)[0]
        if not returned:
            return "return ()"
        whole = returned[0]
        return (
            f"return {ast.unparse(whole) if isinstance(whole, (ast.Tuple, ast.List)) else f'({ast.unparse(whole)},)'}"
        )
    name = _name(node)
    if node.op == "get_attr":
        if not isinstance(node.value, TensorValue):
            raise CannotRunError(message("server.export_subgraph", node=node.name[:100]))
        return f"{name} = {_made(node.value, node)}  # a constant of the graph"
    arguments, keywords = _arguments(node, names)
    written = [ast.unparse(one) for one in arguments] + [f"{one.arg}={ast.unparse(one.value)}" for one in keywords]
    if node.op == "call_method":
        if not node.target.isidentifier() or not written:
            raise CannotRunError(message("server.export_argument", node=node.name[:100]))
        return f"{name} = {written[0]}.{node.target}({', '.join(written[1:])})"
    return f"{name} = {_function(node)}({', '.join(written)})"


def _function(node: Node) -> str:
    target = node.target
    root = target.split(".", 1)[0]
    if node.op != "call_function" or not _TARGET.fullmatch(target):
        raise CannotRunError(message("server.export_target", node=node.name[:100], target=target[:200]))
    if root in _DIRECT:
        return target
    if root == "TensorBase":
        return f"torch._C.{target}"
    if "." in target:
        return f"torch.ops.{target}"
    raise CannotRunError(message("server.export_target", node=node.name[:100], target=target[:200]))


def _arguments(node: Node, names: set[str]) -> tuple[list[ast.expr], list[ast.keyword]]:
    try:
        call = ast.parse(f"f({node.args})", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        call = None
    good = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "f"
    if not isinstance(call, ast.Call) or not good:
        raise CannotRunError(message("server.export_argument", node=node.name[:100]))
    for part in (*call.args, *(one.value for one in call.keywords)):
        if not _plain(part, names):
            raise CannotRunError(message("server.export_argument", node=node.name[:100]))
    if any(one.arg is None for one in call.keywords):
        raise CannotRunError(message("server.export_argument", node=node.name[:100]))
    return call.args, call.keywords


def _plain(part: ast.expr, names: set[str]) -> bool:
    """Whether an expression is a node, a literal, one of torch's constants, a device or a slice, or a container of such."""
    match part:
        case ast.Constant():
            return True
        case ast.Name(id=name):
            return name in names or name in _NUMBERS
        case ast.Attribute(value=ast.Name(id="torch")):
            return True
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return _plain(inner, names)
        case ast.BinOp(
            op=ast.Add() | ast.Sub(), left=ast.Constant() | ast.UnaryOp() as left, right=ast.Constant() as right
        ):
            return _plain(left, names) and _plain(right, names)
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return all(_plain(item, names) for item in items)
        case ast.Dict(keys=keys, values=values):
            return all(key is not None and _plain(key, names) for key in keys) and all(
                _plain(value, names) for value in values
            )
        case ast.Call(func=ast.Name(id=function), args=args, keywords=keywords):
            inner_parts = [*args, *(one.value for one in keywords)]
            return function in _CONSTRUCTORS and all(_plain(inner, names) for inner in inner_parts)
    return False


def _made(value: Value | None, node: Node) -> str:
    """An expression for an input of this form. Sizes that are expressions are taken by their hint."""
    if isinstance(value, TensorValue) and value.layout == "strided" and value.stride is not None:
        shape, stride = ([_size(size, node) for size in sizes] for sizes in (value.shape, value.stride))
        if value.dtype.isidentifier():
            return f"tensor({shape}, {stride}, torch.{value.dtype}, {value.device!r})"
    elif isinstance(value, ScalarValue) and value.value is not None:
        inner = value.value
        return repr(inner) if isinstance(inner, (bool, float, str, int)) else str(_size(inner, node))
    raise CannotRunError(message("server.export_input", node=node.name[:100]))


def _size(size: Size, node: Node) -> int:
    known = size if isinstance(size, int) else size.hint
    if known is None:
        raise CannotRunError(message("server.export_input", node=node.name[:100]))
    return known
