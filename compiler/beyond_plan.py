"""What a dry run allocates that is in no plan of Inductor's. Torch-free."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import accumulate
from typing import Literal

from compiler.ir.memory import BeyondPlan, MemoryTimelinePayload

Owner = Literal["plan", "workspace", "outside", "bodies"]
_CALL = re.compile(r"^ *def call\(", re.MULTILINE)


def beyond_plan(dry_run: MemoryTimelinePayload, texts: Mapping[str, str]) -> BeyondPlan:
    """`texts` maps the id of a generated file (`0_0/codegen/forward`) to it: above its `call` stand the bodies of higher-order
    operators."""
    calls = {file: text[: found.start()].count("\n") for file, text in texts.items() if (found := _CALL.search(text))}
    blocks, words = dry_run.blocks, dry_run.strings
    change = [0] * (len(dry_run.points.live) + 1)
    at_peak: dict[Owner, int] = {"plan": 0, "workspace": 0, "outside": 0, "bodies": 0}
    for size, start, end, kind, entity in zip(
        blocks.bytes, blocks.start, blocks.end, blocks.kind, blocks.entity, strict=True
    ):
        owner = _owner(words[kind], words[entity], calls)
        if owner == "plan":
            change[start] += size
            change[end] -= size  # -1, to the end of the step, is the place behind the last point
        if start <= dry_run.peak_point and (end == -1 or end > dry_run.peak_point):
            at_peak[owner] += size
    return BeyondPlan(
        planned_peak=max(accumulate(change[:-1]), default=0),
        workspace=at_peak["workspace"],
        outside=at_peak["outside"],
        bodies=at_peak["bodies"],
    )


def _owner(kind: str, entity: str, calls: Mapping[str, int]) -> Owner:
    if not entity:
        return "outside"
    file, _, line = entity.partition("/@")
    if int(line) <= calls.get(file, 0):
        return "bodies"
    return "workspace" if kind == "workspace" else "plan"
