"""Live bytes over the program points of one step.

Definition: allocator bytes over one step, from the call to the end of the backward, above what was there before.
Parameters, buffers, inputs and tangents count as nothing; outputs, saved tensors, temporaries, workspaces and `.grad` count.
"""

from __future__ import annotations

from typing import Literal

from compiler.text import Frozen, Message

Series = Literal["dry_run", "compiled", "eager", "plan"]


class PointColumns(Frozen):
    """A point is the state after one allocation or release. `label` and `entity` are indices into `strings`: the wrapper's
    line or operator that was running, and its entity ("" if unknown); `line` is the snippet's line, 0 if unknown; `phase` 0
    forward, 1 backward."""

    label: list[int]
    entity: list[int]
    line: list[int]
    phase: list[int]
    live: list[int]


class BlockColumns(Frozen):
    """A block lives from point `start` up to, not including, point `end` (-1: to the end of the step).
    `kind` is an index into `strings`: output, saved, temporary, workspace, gradient."""

    name: list[int]
    bytes: list[int]
    start: list[int]
    end: list[int]
    kind: list[int]
    entity: list[int]
    line: list[int]
    module: list[int]


class OwnerColumns(Frozen):
    """From `point` on, block number `block` belongs to the buffer `name` (an index into `strings`). `how`: 0 it was allocated for
    it, 1 Inductor reuses what another buffer had, 2 a kernel writes in place over its input."""

    block: list[int]
    name: list[int]
    point: list[int]
    how: list[int]


class MemoryTimelinePayload(Frozen):
    """`series` says how it was obtained: `plan` (Inductor's memory plan, as planned), `dry_run` (Inductor's own wrapper run with
    empty kernels), `compiled` and `eager` (measured by the profiler). `method` is that in a sentence. `forward_end` is the
    first point of the backward. A plan has `owners`."""

    format: Literal["timeline/1"] = "timeline/1"
    id: str
    series: Series
    method: Message
    strings: list[str]
    points: PointColumns
    blocks: BlockColumns
    peak_bytes: int
    peak_point: int
    forward_end: int | None = None
    end_bytes: int
    caveats: list[Message] = []
    owners: OwnerColumns | None = None


class SavedForBackward(Frozen):
    """Bytes kept from forward to backward, by how they were obtained; null where unknown. `kept_tensor_bytes` sums the
    tensors that the compiled graphs' autograd nodes really hold, and should be `partition_bytes`. The storages are distinct
    ones that are no parameter, buffer or input."""

    partition_bytes: int | None = None
    partition_activation_bytes: int | None = None
    kept_tensor_bytes: int | None = None
    kept_storages_bytes: int | None = None
    eager_storages_bytes: int | None = None


class BeyondPlan(Frozen):
    """What the dry run has besides Inductor's plan, in bytes. `planned_peak` is its peak without it: without what an operator
    allocates for itself and releases (its workspace), what runs outside of the compiled graphs (autograd, eager code between
    them), and the buffers of the bodies of higher-order operators, which are planned apart. The others are those bytes at the
    peak of the dry run."""

    planned_peak: int
    workspace: int = 0
    outside: int = 0
    bodies: int = 0


class MemoryPayload(Frozen):
    """The stage's figures side by side; the timelines are artifacts of their own. `limit_bytes` is the memory of the device that
    the code was compiled for, parameters and inputs having their part of it too; null for the CPU. `beyond_plan` is there where
    a plan is."""

    format: Literal["memory/1"] = "memory/1"
    peaks: dict[str, int]
    saved: SavedForBackward
    beyond_plan: BeyondPlan | None = None
    definition: Message
    limit_bytes: int | None = None
    notes: list[Message] = []
