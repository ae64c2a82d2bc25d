"""`explore(model, inputs)`: every stage of a live model as values, and as the page in a notebook."""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any

import orjson
import torch

from compiler.errors import AotscopeError
from compiler.events import Event, Mode, Options, RunRequest, StageName, dump_event
from compiler.ir.payloads import PAYLOADS, Payload
from compiler.live import capture_live, source_of
from compiler.recording import RecordedRun, Recording
from compiler.text import message

_VIEWS = "aotscope.views"


class ViewError(AotscopeError):
    """Nothing that is installed can show a recording so."""


@dataclass(frozen=True, slots=True)
class Explored:
    """What was seen of a model. A notebook shows it as the page, in a frame that can run its own script and nothing else."""

    recording: Recording
    events: list[Event] = field(repr=False)

    def payloads(self, kind: str, stage: StageName | str | None = None) -> list[Payload]:
        """The payloads of a kind (`compiler.ir.payloads.PAYLOADS`), in the order in which they were made. Raises KeyError for
        an unknown kind."""
        model = PAYLOADS[kind]
        return [
            model.model_validate(self.recording.artifacts[event.body.artifact.hash])
            for event in self.events
            if event.body.type == "artifact"
            and event.body.artifact.kind == kind
            and event.body.name != "step"
            and stage in (None, event.stage)
        ]

    @property
    def summary(self) -> dict[str, Any]:
        """The figures of the run; {} when it did not come so far."""
        return next((dict(event.body.summary) for event in self.events if event.body.type == "summary"), {})

    @property
    def outcome(self) -> Any:
        """How it ended: a `Finished` or a `Failed`."""
        return self.events[-1].body

    def document(self) -> dict[str, Any]:
        """What `aotscope run --json` writes."""
        return dict(_view("document")(self.recording))

    def html(self) -> str:
        """The whole page as one file. Raises ViewError where the page is not installed."""
        return str(_view("report")(self.recording))

    def _repr_html_(self) -> str:
        return str(_view("frame")(self.recording))


def explore(
    model: Callable[..., Any],
    inputs: tuple[Any, ...] | list[Any] | torch.Tensor,
    kwargs: Mapping[str, Any] | None = None,
    *,
    loss: Callable[[Any], Any] | None = None,
    mode: str = "auto",
    until: str | None = None,
    limit_seconds: float = 120.0,
) -> Explored:
    """Every stage of torch.compile of `model(*inputs, **kwargs)`, up to the generated code.

    It runs in a fork of this process: parameters, gradients, random state, and torch's caches here stay as they are. Nothing is
    compiled with the C++ compiler, so there are no timings. `mode` is auto (training when anything requires grad), training or
    inference; `loss` takes the output (by default the sum of all floating outputs). Raises LiveError for a model that is not on
    the CPU, and AsideError when the fork dies or takes longer than `limit_seconds`; what the model itself raises is the
    `outcome`."""
    args = (inputs,) if isinstance(inputs, torch.Tensor) else tuple(inputs)
    file, source = source_of(model, sys._getframe(1).f_code.co_filename)
    options = Options(mode=Mode(mode), native=False, until=None if until is None else StageName(until))
    request = RunRequest(source=source, options=options)
    run, created = secrets.token_hex(10), time.time()
    made = capture_live(run, model, args, kwargs or {}, loss, request, file, limit_seconds)
    recording = Recording(
        run=RecordedRun(id=run, request=request, created=created),
        events=[dump_event(event) for event in made.events],
        artifacts={digest: orjson.loads(payload) for digest, payload in made.payloads.items()},
    )
    return Explored(recording, made.events)


def _view(name: str) -> Callable[[Recording], Any]:
    """What shows a recording. The page registers itself as a plugin: the compiler does not know who shows what it found."""
    found = tuple(entry_points(group=_VIEWS, name=name))
    if not found:
        raise ViewError(message("live.no_view", view=name))
    view: Callable[[Recording], Any] = found[0].load()
    return view
