"""Inductor's generated wrapper: run without its kernels (the dry run), and told apart line by line while it runs."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, ModuleType
from typing import Any

import torch
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.graph import GraphLowering
from torch.utils._python_dispatch import _disable_current_modes

from compiler.torch_compat.profiler import mark

Call = Callable[[list[Any]], Any]
_AT = "__aotscope_at__"
_NEVER_RUN = {"get_args", "benchmark_compiled_module", "__init__", "recursively_apply_fns"}


class _Marked(ast.NodeTransformer):
    """Before each statement of a wrapper's functions, a call that says its line; after the last, that it was left."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:  # noqa: N802 - ast's name
        if node.name in _NEVER_RUN:
            return node
        node.body = [ast.Try(body=self._body(node.body), handlers=[], orelse=[], finalbody=[_at(node, 0)])]
        return node

    def _body(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        marked: list[ast.stmt] = []
        for statement in statements:
            if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
                marked.append(self.visit(statement))
                continue
            for name in ("body", "orelse", "finalbody"):
                inner = getattr(statement, name, None)
                if inner:
                    setattr(statement, name, self._body(inner))
            marked += [_at(statement, statement.lineno), statement]
        return marked


def _at(where: ast.stmt, line: int) -> ast.stmt:
    call = ast.Call(ast.Name(_AT, ast.Load()), [ast.Constant(line)], [])
    return ast.copy_location(ast.Expr(call), where)


def marked_code(text: str, file: str) -> CodeType:
    """The wrapper's module, compiled so that it calls `__aotscope_at__(line)` before each statement that it executes."""
    tree = ast.fix_missing_locations(_Marked().visit(ast.parse(text, file)))
    return compile(tree, file, "exec")


def marker(tag: str) -> Callable[[int], None]:
    """What `__aotscope_at__` is: the mark `<tag>:<line>`, or the empty one when the wrapper is left."""

    def at(line: int) -> None:
        mark("wrapper", f"{tag}:{line}" if line else "")

    return at


def dry(text: str, constants: dict[str, Any], tag: str) -> Call:
    """The wrapper's `call`, with every C++ kernel doing nothing and every buffer filled with zeros: it allocates, calls
    external kernels and releases as the real one does, and needs no C++ compiler. What is computed is not right."""
    guards = torch._C._dynamo.guards
    empty = guards._empty_strided_cpu

    def zeros(*arguments: Any) -> torch.Tensor:
        with _disable_current_modes():
            made: torch.Tensor = empty(*arguments).zero_()
        return made

    def nothing(*arguments: Any) -> None:
        return None

    def no_kernel(self: AsyncCompile, *arguments: Any, **options: Any) -> Callable[..., None]:
        return nothing

    namespace: dict[str, Any] = {"__name__": f"aotscope_dry_{tag}", _AT: marker(tag), **constants}
    code = marked_code(text, f"<generated code {tag}>")
    kernels = AsyncCompile.cpp_pybinding, AsyncCompile.cpp
    guards._empty_strided_cpu = zeros
    AsyncCompile.cpp_pybinding = AsyncCompile.cpp = no_kernel
    try:
        exec(code, namespace)
    finally:
        guards._empty_strided_cpu = empty
        AsyncCompile.cpp_pybinding, AsyncCompile.cpp = kernels
    call: Call = namespace["call"]
    return call


@dataclass(frozen=True)
class Built:
    """A wrapper that was really built: its module, whose kernels are compiled, and where it belongs."""

    compile: str
    graph: str
    text: str
    module: ModuleType


@contextmanager
def built_wrappers() -> Iterator[list[Built]]:
    """Collect every wrapper that Inductor builds until the context ends, in order."""
    original = GraphLowering.compile_to_module
    found: list[Built] = []

    def compile_to_module(self: GraphLowering) -> Any:
        module = original(self)
        text = "".join(linecache.getlines(module.__file__))
        found.append(Built(_compile_id(), graph_name(self), text, module))
        return module

    GraphLowering.compile_to_module = compile_to_module
    try:
        yield found
    finally:
        GraphLowering.compile_to_module = original


def graph_name(graph: GraphLowering) -> str:
    """forward, backward, or inference when there is no backward."""
    if graph.is_backward:
        return "backward"
    return "inference" if graph.is_inference else "forward"


def _compile_id() -> str:
    current = torch._guards.CompileContext.current_compile_id()
    return f"{current.frame_id}/{current.frame_compile_id}" if current is not None else ""


def mark_lines(built: Built, tag: str) -> None:
    """From now on this wrapper marks its lines, as the dry one does; its kernels stay as they are."""
    marked = marked_code(built.text, str(built.module.__file__))
    functions = {code.co_name: code for code in _function_codes(marked)}
    vars(built.module)[_AT] = marker(tag)
    runner = getattr(built.module, "Runner", None)
    for name, code in functions.items():
        target = getattr(runner, name, None) if name == "call" and runner else getattr(built.module, name, None)
        if target is not None and name not in _NEVER_RUN:
            target.__code__ = code


def _function_codes(module: CodeType) -> Iterator[CodeType]:
    for constant in module.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_name == "Runner":
                yield from _function_codes(constant)
            else:
                yield constant
