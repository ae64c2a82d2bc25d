"""Why a snippet goes no further on a GPU that is not there, where the fault is neither the model's nor ours."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torch._inductor.exc import InductorError
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedOperatorException,
)

from compiler.text import Message, message

# As torch says it: of a layout that a fake tensor cannot have, and of a device where another one was expected.
_SPARSE = re.compile(r"\bgot Sparse\b|'Sparse\w*' backend")
_TWO_DEVICES = re.compile(r"\bdevice.*\b(cuda(:0)?\b.*\bcpu|cpu\b.*\bcuda)\b")

_HANDED = ("cpu", "numpy", "from_numpy")


def limit(error: BaseException | None, source: str) -> Message | None:
    """The limit of virtual targets that `error` comes of; None when it comes of none. `source` is the snippet's text."""
    for seen in _chain(error):
        if isinstance(seen, InductorError):  # what Inductor asks for while it compiles, it has on no target
            return None
        if isinstance(seen, (DataDependentOutputException, DynamicOutputShapeException, UnsupportedOperatorException)):
            return message("virtual.needs_values", operator=str(seen.func))
        if not isinstance(seen, RuntimeError):  # of torch's; NotImplementedError is one
            continue
        if _SPARSE.search(str(seen)):
            return message("virtual.sparse")
        lines = _on_cpu(source)
        if lines and _TWO_DEVICES.search(str(seen)):
            return message("virtual.two_devices", lines=", ".join(map(str, lines)))
    return None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _on_cpu(source: str) -> list[int]:
    """Lines that put something on the CPU by name, or hand it to NumPy or take it from there; from 1."""
    tree = list(ast.walk(ast.parse(source)))
    named = {node.lineno for node in tree if isinstance(node, ast.Constant) and node.value in ("cpu", "cpu:0")}
    handed = {node.lineno for node in tree if isinstance(node, ast.Attribute) and node.attr in _HANDED}
    return sorted(named | handed)
