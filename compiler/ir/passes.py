"""A pipeline of graph passes as steps with before and after."""

from __future__ import annotations

from typing import Literal

from compiler.text import Frozen


class PassStep(Frozen):
    """`before` and `after` are hashes of `graph/1` artifacts, null when the pass changed nothing or both sides are already named
    by the neighbours. `diff` is a unified diff of the two graphs' printed form."""

    name: str
    changed: bool
    seconds: float | None = None
    nodes_before: int
    nodes_after: int
    added: list[str] = []
    removed: list[str] = []
    diff: str = ""
    before: str | None = None
    after: str | None = None


class PassesPayload(Frozen):
    """`id` is `compile/stage/graph`. Steps that changed nothing are counted in `unchanged`, and listed by name."""

    format: Literal["passes/1"] = "passes/1"
    id: str
    steps: list[PassStep]
    unchanged: int = 0
