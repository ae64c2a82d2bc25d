"""The dynamo stage's tables: frames, graph breaks, guards, recompiles."""

from __future__ import annotations

import re
from typing import Literal

from compiler.ir.graph import StackFrame
from compiler.text import Frozen

_LINK = re.compile(
    r"https://(meta-pytorch\.github\.io|pytorch\.org|docs\.pytorch\.org|github\.com/pytorch)/[!-~]{0,300}"
)


def is_link(url: str) -> bool:
    """Whether an address may be shown as a link: one of PyTorch's own pages. A break's text can be the snippet's."""
    return _LINK.fullmatch(url) is not None


class GraphBreak(Frozen):
    """One cause, shown once; `count` says how often it struck.

    `stack` begins at the user's first frame and ends where it broke, inside a library too: then `library` is that place, and
    `line` the user's line that led there. `cause_type` is the break that came first, where this one is what torch made of it.

    kind: `break` (the graph was cut and compilation went on after it), `rest_of_function` (the rest of a function was
    given to eager), `whole_function` (the frame was skipped), `recompile_limit`, `backend_failure`, `skipped`."""

    id: str
    kind: Literal["break", "rest_of_function", "whole_function", "recompile_limit", "backend_failure", "skipped"]
    gb_id: str = ""
    gb_type: str = ""
    reason: str = ""
    context: str = ""
    explanation: str = ""
    hints: list[str] = []
    url: str = ""
    line: int | None = None
    library: str = ""
    cause_type: str = ""
    cause_gb_id: str = ""
    function: str = ""
    stack: list[StackFrame] = []
    count: int = 1
    text: str = ""


class BreaksPayload(Frozen):
    format: Literal["breaks/1"] = "breaks/1"
    breaks: list[GraphBreak]


class Guard(Frozen):
    """`source` is torch's expression of what is guarded, `code` the conditions checked, `value` its value when compiled,
    as text; `line` the snippet's line that made the guard, null where torch keeps only a library's."""

    type: str
    source: str
    code: list[str] = []
    value: str = ""
    line: int | None = None
    stack: list[StackFrame] = []


class GuardsPayload(Frozen):
    """`leaf_guards` counts the leaf lines of torch's guard tree; `tree` is its own text."""

    format: Literal["guards/1"] = "guards/1"
    guards: list[Guard]
    leaf_guards: int
    tree: str = ""


class Recompile(Frozen):
    """A cache entry that did not fit: `entry` is the compile that it belongs to, `compile` the new one."""

    compile: str
    entry: str
    guard: str
    source: str = ""
    old: str = ""
    new: str = ""
    line: int | None = None
    text: str = ""


class RecompilesPayload(Frozen):
    format: Literal["recompiles/1"] = "recompiles/1"
    recompiles: list[Recompile]
