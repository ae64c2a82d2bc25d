"""What CUDA's caching allocator did in one step, from its own history, each event with what Python was doing.

The history has no marks of ours. The allocator's counters say how many allocations and releases there were at each mark, and the
history has them in order: so each event finds the marks before it, whichever thread it came from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from compiler.timeline import Allocation
from compiler.torch_compat.profiler import Channel, hearing

# Blocks as they are handed out and taken back; the rest of the history is about segments.
_ALLOCATED, _RELEASED = "alloc", "free_completed"
_MOST_EVENTS = 1_000_000

Mark = tuple[int, Channel, str]


def record_on_device(step: Callable[[], Any]) -> tuple[Any, list[Allocation]]:
    """Run `step` with the allocator's history on: its result, and the allocator's events between its beginning and its end."""
    torch.cuda.synchronize()
    memory = torch.cuda.memory
    memory._record_memory_history(enabled="all", context=None, max_entries=_MOST_EVENTS)
    try:
        marks: list[Mark] = [(0, "phase", "forward")]
        begin = _events()
        with hearing(lambda channel, value: marks.append((_events() - begin, channel, value))):
            result = step()
        torch.cuda.synchronize()
        count = _events() - begin
        trace = memory._snapshot()["device_traces"][torch.cuda.current_device()]
    finally:
        memory._record_memory_history(enabled=None)
    return result, allocations(trace, marks, count)


def _events() -> int:
    """How many blocks this process was given and gave back so far."""
    stats = torch.cuda.memory_stats()
    return int(stats["allocation.all.allocated"] + stats["allocation.all.freed"])


def allocations(trace: list[dict[str, Any]], marks: list[Mark], count: int) -> list[Allocation]:
    """The first `count` events of blocks in a history, each with the marks that were made before it: a mark is (events so far,
    channel, value), in order."""
    blocks = [entry for entry in trace if entry["action"] in (_ALLOCATED, _RELEASED)][:count]
    current: dict[str, str] = {}
    found: list[Allocation] = []
    at = moments = 0
    for index, entry in enumerate(blocks):
        while at < len(marks) and marks[at][0] <= index:
            _, channel, value = marks[at]
            current = current | {channel: value}
            moments += channel == "wrapper"
            at += 1
        size = int(entry["size"])
        found.append(
            Allocation(
                bytes=size if entry["action"] == _ALLOCATED else -size,
                ptr=int(entry["addr"]),
                marks=current,
                scope=-moments if current.get("wrapper") else 0,
                operators=(),
            )
        )
    return found
