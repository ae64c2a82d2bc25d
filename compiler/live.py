"""A model that lives in this process, explored in a fork of it: model, gradients and torch's state here stay as they are."""

from __future__ import annotations

import inspect
import linecache
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from compiler.errors import AotscopeError
from compiler.events import (
    ArtifactFrame,
    Engine,
    Event,
    EventFrame,
    Failed,
    Finished,
    PhaseStarted,
    RunRequest,
    RunStarted,
)
from compiler.fork import aside
from compiler.pipeline import capture_loaded
from compiler.snippet import Loaded, Snippet, named_tensors, reachable
from compiler.text import message
from compiler.warm import engine

_LONGEST_SOURCE = 200_000


class LiveError(AotscopeError):
    """The model cannot be explored where it is."""


@dataclass(frozen=True, slots=True)
class LiveRun:
    """What was seen: the events, and payloads by hash, as JSON bytes."""

    request: RunRequest
    events: list[Event]
    payloads: dict[str, bytes]


class _Kept:
    def __init__(self) -> None:
        self.frames: list[EventFrame] = []
        self.payloads: dict[str, bytes] = {}

    def event(self, frame: EventFrame) -> None:
        self.frames.append(frame)

    def artifact(self, frame: ArtifactFrame, payload: bytes) -> None:
        self.payloads[frame.ref.hash] = payload


def capture_live(
    run: str,
    model: Callable[..., Any],
    inputs: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    loss: Callable[[Any], Any] | None,
    request: RunRequest,
    file: str,
    limit_seconds: float,
) -> LiveRun:
    """Every stage up to generated code of `model(*inputs, **kwargs)`, in a fork that ends with it. `file` is the one whose text
    the request has, and whose lines are the user's. Raises LiveError, and AsideError when the fork dies or takes too long."""
    if not hasattr(os, "fork"):
        raise LiveError(message("live.no_fork"))
    given = (tensor for _name, tensor in named_tensors((inputs, dict(kwargs)), "inputs"))
    away = next((tensor for tensor in (*reachable(model), *given) if tensor.device.type not in ("cpu", "meta")), None)
    if away is not None:
        raise LiveError(message("live.not_cpu", device=str(away.device)))
    snippet = Snippet(request.source, "declared", Path(file), {}, {})
    loaded = Loaded(snippet, model, [inputs], dict(kwargs), loss, {}, {}, None, False)
    started = time.monotonic()

    def work() -> tuple[Engine, list[EventFrame], dict[str, bytes], Finished | Failed]:
        # The pool of threads did not come along; a second thread would wait for it for ever.
        torch.set_num_threads(1)
        torch._dynamo.reset()
        kept = _Kept()
        outcome = capture_loaded(loaded, request, kept)
        return engine(), kept.frames, kept.payloads, outcome

    by, frames, payloads, outcome = aside(work, limit_seconds, without_gpu=True)
    events = [Event(run=run, seq=1, t=0.0, body=RunStarted(request=request, engine=by))]
    events.append(Event(run=run, seq=2, t=0.0, body=PhaseStarted(phase="capture")))
    for frame in frames:
        at = max(events[-1].t, frame.clock - started)
        events.append(
            Event(run=run, seq=len(events) + 1, t=at, compile=frame.compile, stage=frame.stage, body=frame.body)
        )
    events.append(Event(run=run, seq=len(events) + 1, t=events[-1].t, body=outcome))
    return LiveRun(request, events, payloads)


def source_of(model: Callable[..., Any], caller: str) -> tuple[str, str]:
    """(file, text) that a model's lines are shown in: of its outermost part that is not installed; else the caller's file."""
    parts: list[Any] = list(model.modules()) if isinstance(model, torch.nn.Module) else [model]
    for part in parts:
        function = inspect.unwrap(part.forward if isinstance(part, torch.nn.Module) else part)
        code = getattr(getattr(function, "__func__", function), "__code__", None)
        if code is not None and "site-packages" not in code.co_filename:
            return code.co_filename, _text(code.co_filename)
    return caller, _text(caller)


def _text(file: str) -> str:
    """What linecache has of a file: a notebook's cells too. "" when there is none, or more than is shown."""
    text = "".join(linecache.getlines(file))
    return text if len(text) <= _LONGEST_SOURCE else ""
