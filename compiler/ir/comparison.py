"""Two runs held against each other, stage by stage."""

from __future__ import annotations

from typing import Any, Literal

from compiler.text import Frozen, Message

Scalar = int | float | str | bool | None


class Difference(Frozen):
    """A figure that is not the same in both. `measured`: it comes from a clock, and does not make two runs different."""

    name: str
    a: Scalar
    b: Scalar
    measured: bool = False


class Row(Frozen):
    """One thing of either run, such as a node, a kernel, or a guard, with its counterpart. `a` and `b` are its text, `a_id` and
    `b_id` its name or entity where it has one; `what` are the aspects that changed. `gap` rows that are the same precede it and
    are left out."""

    state: Literal["same", "added", "removed", "changed"]
    a: str = ""
    b: str = ""
    a_id: str = ""
    b_id: str = ""
    what: list[str] = []
    gap: int = 0


class Part(Frozen):
    """One payload of both runs, or of one (`state`). `graph_a` and `graph_b` differ where a training run's joint graph is held
    against an inference run's only one. `rows` are those that differ, with a little around them; `added`, `removed`, `changed`
    and `same` count all of them, `left_out` those that were too many to list. `diff` is a unified diff of text."""

    name: str
    kind: str
    graph_a: str | None
    graph_b: str | None
    state: Literal["equal", "different", "only_a", "only_b"]
    hash_a: str = ""
    hash_b: str = ""
    figures: list[Difference] = []
    rows: list[Row] = []
    added: int = 0
    removed: int = 0
    changed: int = 0
    same: int = 0
    left_out: int = 0
    diff: str = ""


class StageSide(Frozen):
    """`status` is the stage's last, null where the run has no such stage; `seconds` are torch's own in it."""

    status: str | None = None
    seconds: float | None = None


class StageComparison(Frozen):
    stage: str
    equal: bool
    a: StageSide
    b: StageSide
    facts: list[Difference] = []
    parts: list[Part] = []


class CompileName(Frozen):
    id: str
    function: str | None
    line: int | None


class CompileComparison(Frozen):
    """A compile of both, or of one. Compiles are paired in their order and by their function."""

    a: CompileName | None
    b: CompileName | None
    stages: list[StageComparison]


class ComparedFinding(Frozen):
    severity: str
    message: Message
    line: int | None = None
    stage: str | None = None
    compile: str | None = None


class ComparedRun(Frozen):
    id: str
    state: str
    options: dict[str, Any]
    engine: dict[str, Any] | None


class RunComparison(Frozen):
    """`equal`: the compiler made the same of both. What was asked (source, options), who ran it (engine), lines of the snippet,
    comments in generated code, and what a clock says may differ, and are told."""

    format: Literal["comparison/1"] = "comparison/1"
    a: ComparedRun
    b: ComparedRun
    equal: bool
    source: str
    options: list[Difference]
    engine: list[Difference]
    summary: list[Difference]
    appeared: list[ComparedFinding]
    vanished: list[ComparedFinding]
    stages: list[StageComparison]
    compiles: list[CompileComparison]
