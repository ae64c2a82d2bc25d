"""The registry of stages: one row each, in the order in which they are shown."""

from __future__ import annotations

from compiler.events import StageName
from compiler.session import Stage
from compiler.stages import (
    codegen,
    dynamo,
    fusion,
    joint,
    joint_passes,
    partition,
    post_grad,
    pre_grad,
    schedule,
    source,
)

# Memory, execution and cache have no hooks in a compile: the phases call them when the calls are done.
STAGES: tuple[Stage, ...] = (
    source.STAGE,
    dynamo.STAGE,
    pre_grad.STAGE,
    joint.STAGE,
    joint_passes.STAGE,
    partition.STAGE,
    post_grad.STAGE,
    schedule.STAGE,
    fusion.STAGE,
    codegen.STAGE,
)
ORDER = tuple(StageName)


def until(last: StageName | None) -> tuple[Stage, ...]:
    """The stages up to and with `last`; all of them for None."""
    return STAGES if last is None else tuple(stage for stage in STAGES if ORDER.index(stage.name) <= ORDER.index(last))
