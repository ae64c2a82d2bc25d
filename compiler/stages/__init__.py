"""The registry of stages: one row each, in the order in which they are shown."""

from __future__ import annotations

import importlib
import importlib.util

from compiler.events import StageName
from compiler.session import Stage

_MODULES = (
    "source", "dynamo", "pre_grad", "joint", "joint_passes", "partition", "post_grad", "schedule", "fusion", "codegen",
)  # fmt: skip
STAGES: tuple[Stage, ...] = tuple(
    importlib.import_module(f"compiler.stages.{name}").STAGE
    for name in _MODULES
    if importlib.util.find_spec(f"compiler.stages.{name}")
)
ORDER = tuple(StageName)


def until(last: StageName | None) -> tuple[Stage, ...]:
    """The stages up to and with `last`; all of them for None."""
    return STAGES if last is None else tuple(stage for stage in STAGES if ORDER.index(stage.name) <= ORDER.index(last))
