"""Inductor's generated wrapper: run without its kernels (the dry run), and told apart line by line while it runs."""

from __future__ import annotations

import ast
import bisect
import hashlib
import re
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import torch
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.codecache import PyCodeCache
from torch._inductor.graph import GraphLowering
from torch.utils._python_dispatch import _disable_current_modes

from compiler.torch_compat.compiles import current_compile
from compiler.torch_compat.hooks import replaced
from compiler.torch_compat.profiler import mark

_CONDITION = re.compile(r"\(\w+_cond_result,\) = (\w+)\(")
Call = Callable[[list[Any]], Any]
_AT = "__aotscope_at__"
_NEVER_RUN = {"get_args", "benchmark_compiled_module", "__init__", "recursively_apply_fns"}


class _Marked(ast.NodeTransformer):
    """Before each statement of a wrapper's functions, a call that says its line; after the last, that it was left."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
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


def _nothing(*arguments: Any) -> None:
    """A kernel that leaves its buffers as they are."""


def _zeros(empty: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def zeros(*arguments: Any) -> torch.Tensor:
        with _disable_current_modes():
            return empty(*arguments).zero_()

    return zeros


def _counted(condition: Callable[..., Any], name: str, turns: dict[str, list[int]]) -> Callable[..., Any]:
    """The condition of a loop, true as often as the first of its `turns` says, which it then removes."""
    done = 0

    def decide(args: Any) -> Any:
        nonlocal done
        result = condition(args)
        wanted = turns.get(name)
        if wanted and isinstance(result[0], torch.Tensor):
            done = done + 1 if done < wanted[0] else 0
            result[0].fill_(done > 0)
            if not done:
                wanted.pop(0)
        return result

    return decide


def dry(text: str, constants: dict[str, Any], tag: str, turns: dict[str, list[int]] | None = None) -> Call:
    """The wrapper's `call`, with every C++ kernel doing nothing and every buffer filled with zeros: it allocates, calls
    external kernels and releases as the real one does, and needs no C++ compiler. What is computed is not right. `turns` says
    how often each `while_loop`, by the name of its condition, turns; it is read, and used up, by each call."""
    guards = torch._C._dynamo.guards
    empty = guards._empty_strided_cpu

    def no_kernel(self: AsyncCompile, *arguments: Any, **options: Any) -> Callable[..., None]:
        return _nothing

    namespace: dict[str, Any] = {"__name__": f"aotscope_dry_{tag}", _AT: marker(tag), **constants}
    code = marked_code(text, f"<generated code {tag}>")
    kernels = AsyncCompile.cpp_pybinding, AsyncCompile.cpp
    guards._empty_strided_cpu = _zeros(empty)
    AsyncCompile.cpp_pybinding = AsyncCompile.cpp = no_kernel
    try:
        exec(code, namespace)
    finally:
        guards._empty_strided_cpu = empty
        AsyncCompile.cpp_pybinding, AsyncCompile.cpp = kernels
    if turns is not None:
        for name in set(_CONDITION.findall(text)):
            namespace[name] = _counted(namespace[name], name, turns)
    call: Call = namespace["call"]
    return call


@dataclass(frozen=True)
class Built:
    """A wrapper that was really built: its module, whose kernels are compiled, and where it belongs. `lowering` is what
    Inductor made it from."""

    compile: str
    graph: str
    text: str
    module: ModuleType
    lowering: GraphLowering | None = None

    def stack(self, line: int) -> str:
        """The stack trace, as text, of the FX node that a line of the wrapper comes from; "" when there is none."""
        lines, traces = PyCodeCache.linemaps.get(str(self.module.__file__)) or ((), ())
        place = bisect.bisect_right(lines, line) - 1
        return (traces[place] or "") if place >= 0 else ""


def failing_line(error: BaseException, wrappers: Sequence[Built]) -> tuple[Built, int] | None:
    """The wrapper, and the line of it, that an exception passed through last."""
    by_file = {str(built.module.__file__): built for built in wrappers}
    steps = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    return next(((by_file[file], line) for file, line in reversed(steps) if file in by_file), None)


@contextmanager
def built_wrappers() -> Iterator[list[Built]]:
    """Collect every wrapper that Inductor builds until the context ends, in order."""
    found: list[Built] = []

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def compile_to_module(self: GraphLowering) -> Any:
            module = original(self)
            text = Path(module.__file__).read_text(encoding="utf-8")
            graph = "backward" if self.is_backward else "inference" if self.is_inference else "forward"
            found.append(Built(current_compile() or "", graph, text, module, self))
            return module

        return compile_to_module

    with replaced(GraphLowering, "compile_to_module", make):
        yield found


def mark_lines(built: Built, at: Callable[[int], None]) -> None:
    """From now on this wrapper calls `at(line)` before each statement that it executes, and `at(0)` when it is left; its
    kernels stay as they are."""
    vars(built.module)[_AT] = at
    runner = getattr(built.module, "Runner", None)
    for code in _function_codes(marked_code(built.text, str(built.module.__file__))):
        if _AT in code.co_names:
            owner = runner if runner is not None and code.co_name == "call" else built.module
            getattr(owner, code.co_name).__code__ = code


def _function_codes(module: CodeType) -> Iterator[CodeType]:
    for constant in module.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_name == "Runner":
                yield from _function_codes(constant)
            else:
                yield constant


def make_dry(built: Built) -> None:
    """Kernels that do nothing and zeros in every buffer, as `dry` has, put into a wrapper that was built. For a fork."""
    names = vars(built.module)
    for kernel in _KERNEL.findall(built.text):
        names[kernel] = _nothing
    if "empty_strided_cpu" in names:
        names["empty_strided_cpu"] = _zeros(names["empty_strided_cpu"])


_KERNEL = re.compile(r"^(\w+) = async_compile\.(?:cpp|triton)", re.MULTILINE)
_LAUNCH = re.compile(r"^(?:\w+ = )?(extern_kernels\.\w+|torch\.ops\.[\w.]+|\w+)(?:\.run)?\(")


def kernel_lines(text: str) -> dict[int, str]:
    """Line of a wrapper → the kernel that it launches, or the external call that it makes: the n-th of `extern_kernels.mm` is
    `extern_kernels.mm#n`."""
    own = set(_KERNEL.findall(text))
    counts: dict[str, int] = {}
    found: dict[int, str] = {}
    first = text[: text.rfind("''')") + 1].count("\n")  # above are the kernels' own sources, as strings
    for number, line in list(enumerate(text.splitlines(), 1))[first:]:
        match = _LAUNCH.match(line.strip()) if line.startswith(" ") else None
        if match is None:
            continue
        name = match[1]
        if name in own:
            found[number] = name
        elif name.startswith(("extern_kernels.", "torch.ops.")):
            counts[name] = counts.get(name, 0) + 1
            found[number] = f"{name}#{counts[name]}"
    return found


def code_digest(text: str) -> str:
    """Equal for generated code that is equal but for the number that AOTAutograd gives the graph. 16 hex digits."""
    return hashlib.sha256(_AOT_ID.sub("", text).encode()).hexdigest()[:16]


_AOT_ID = re.compile(r"^# AOT ID: .*$", re.MULTILINE)
