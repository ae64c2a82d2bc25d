"""A text of code whose lines are linked to entities."""

from __future__ import annotations

from typing import Literal

from compiler.text import Frozen


class LineMarks(Frozen):
    """Parallel columns: line `line[i]` (1-based) of the text comes from entity `strings[entity[i]]`."""

    line: list[int] = []
    entity: list[int] = []


class CodePayload(Frozen):
    """`id` is the prefix of the lines' ids: line 412 is `<id>/@412`. Entities in `marks` are FX nodes of the neighbouring
    earlier stage, and `line/18` where the snippet's line is known."""

    format: Literal["code/1"] = "code/1"
    id: str
    language: Literal["python", "cpp", "text", "diff"]
    text: str
    strings: list[str] = []
    marks: LineMarks = LineMarks()
