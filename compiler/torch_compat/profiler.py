"""What torch's profiler saw of the allocator during one step, in order, each event with what was running.

Kineto's event tree (`experimental_event_tree`) is the one source that has allocations inside operators. What Python was
doing is told to it by marks: instantaneous events of our own, whose names come back in the same tree on the same clock.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Literal

import torch
from torch._C._profiler import _RecordFunctionFast
from torch.profiler import ProfilerActivity, profile

from compiler.timeline import Allocation

# wrapper: line of generated code; user: line of the snippet; module: path of the nn.Module; phase: part of the step.
Channel = Literal["wrapper", "user", "module", "phase"]
_PREFIX = "aotscope:"
_ENGINE = "autograd::engine::evaluate_function: "


_hearers: list[Callable[[Channel, str], None]] = []


@contextmanager
def hearing(heard: Callable[[Channel, str], None]) -> Iterator[None]:
    """While it lasts, `heard` is told of each mark."""
    _hearers.append(heard)
    try:
        yield
    finally:
        _hearers.remove(heard)


def mark(channel: Channel, value: str) -> None:
    """From here on `channel` has this value, in the profile that is being recorded and for whoever hears, if there is any."""
    for heard in _hearers:
        heard(channel, value)
    with _RecordFunctionFast(f"{_PREFIX}{channel}={value}"):
        pass


def record(step: Callable[[], Any]) -> tuple[Any, list[Allocation]]:
    """Run `step` under the profiler: its result, and the allocator's events between its beginning and its end."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, record_shapes=False) as profiler:
        mark("phase", "forward")
        result = step()
        mark("phase", "end")
    return result, _allocations(profiler.profiler.kineto_results.experimental_event_tree())


def _allocations(tree: list[Any]) -> list[Allocation]:
    flat: list[tuple[int, Any, tuple[Any, ...]]] = []

    def walk(events: list[Any], parents: tuple[Any, ...]) -> None:
        for event in events:
            flat.append((event.start_time_ns, event, parents))
            if event.children:
                walk(event.children, (*parents, event))

    walk(tree, ())
    flat.sort(key=lambda item: item[0])  # stable: parents stay before their children
    marks: dict[str, str] = {}
    forward_of: dict[int, dict[str, str]] = {}
    moments = 0
    found: list[Allocation] = []
    for _, event, parents in flat:
        name = event.name
        if name.startswith(_PREFIX):
            channel, _, value = name[len(_PREFIX) :].partition("=")
            marks = marks | {channel: value}
            moments += channel == "wrapper"
            continue
        phase = marks.get("phase")
        if phase is None or phase == "end":
            continue
        fields = event.extra_fields
        size = getattr(fields, "alloc_size", None)
        if size is None:
            number = getattr(fields, "sequence_number", -1)
            if phase == "forward" and number is not None and number >= 0:
                forward_of.setdefault(number, marks)
        elif size:
            found.append(
                Allocation(
                    bytes=size,
                    ptr=fields.ptr,
                    marks=marks,
                    scope=-moments if marks.get("wrapper") else _scope(parents),
                    operators=tuple(parent.name for parent in parents if not parent.name.startswith(_PREFIX)),
                    forward=_forward(parents, forward_of),
                )
            )
    return found


def _scope(parents: tuple[Any, ...]) -> int:
    """The outermost operator that does work, by its event's id; 0 when none runs."""
    for event in parents:
        if "::" in event.name and not event.name.startswith(_ENGINE):
            return int(event.id)
    return 0


def _forward(parents: tuple[Any, ...], forward_of: dict[int, dict[str, str]]) -> dict[str, str]:
    for event in reversed(parents):
        if event.name.startswith(_ENGINE):
            return forward_of.get(event.extra_fields.sequence_number, {})
    return {}


@contextmanager
def user_lines(file: str) -> Iterator[None]:
    """Mark the line of `file` that Python executes, as it changes, in this thread (where the CPU's backward runs too)."""

    def enclosing(frame: FrameType | None) -> str:
        while frame is not None and frame.f_code.co_filename != file:
            frame = frame.f_back
        return str(frame.f_lineno) if frame is not None else ""

    def local(frame: FrameType, event: str, argument: object) -> Any:
        if event == "line":
            mark("user", str(frame.f_lineno))
        elif event == "return":
            mark("user", enclosing(frame.f_back))
        return local

    def called(frame: FrameType, event: str, argument: object) -> Any:
        return local if frame.f_code.co_filename == file else None

    before = sys.gettrace()
    sys.settrace(called)
    try:
        yield
    finally:
        sys.settrace(before)


@contextmanager
def module_paths(model: torch.nn.Module) -> Iterator[None]:
    """Mark the path of the module whose `forward` is running. For eager execution only: a hook is an input of Dynamo."""
    names = {id(module): name for name, module in model.named_modules()}
    inside: list[str] = []

    def enter(module: torch.nn.Module, arguments: Any) -> None:
        inside.append(names.get(id(module), inside[-1] if inside else ""))
        mark("module", inside[-1])

    def leave(module: torch.nn.Module, arguments: Any, result: Any) -> None:
        inside.pop()
        mark("module", inside[-1] if inside else "")

    handles = (
        torch.nn.modules.module.register_module_forward_pre_hook(enter),
        torch.nn.modules.module.register_module_forward_hook(leave, always_call=True),
    )
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
