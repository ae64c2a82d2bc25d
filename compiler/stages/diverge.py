"""Where results that differ come from: the snippet run with each of torch's backends in turn, from eager to Inductor.

Each is compared with the one before. Eager in float64 is the yardstick: what differs by no more than eager's own distance from
it is rounding. Runs only when something disagrees, in a fork, so that nothing else of the phase sees its compiles.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from compiler.compare import worst
from compiler.fork import AsideError, aside
from compiler.ir.execution import Comparison, Divergence, StageStep, WrongBuffer
from compiler.session import slug
from compiler.stages.execute import Outcome, compare
from compiler.text import Message, message
from compiler.torch_compat.buffers import watch_buffers
from compiler.torch_compat.wrapper import Built

LIMIT_SECONDS = 90.0
EAGER, LAST = "eager (no compile)", "inductor"
LADDER = ("eager", "aot_eager", "aot_eager_decomp_partition")
# A difference is more than rounding when it is this many times eager's own error.
_OWN_TIMES = 4.0

Key = tuple[str, int, str]


class Runs(Protocol):
    """A snippet that can be run whole, again and again."""

    printed: bool

    def run_on(self, backend: str) -> Outcome:
        """All of it anew, compiled with this backend of torch's."""

    def run_exact(self) -> Outcome | None:
        """All of it anew, eagerly in float64; None where that cannot be."""

    def repeat(self) -> None:
        """Once more what is compiled already."""


@dataclass(frozen=True)
class _Yardstick:
    exact: dict[Key, torch.Tensor]
    own: dict[Key, float]

    def error(self, outcome: Outcome) -> dict[Key, float]:
        return {key: _error(tensor, self.exact[key]) for key, tensor in _tensors(outcome).items() if key in self.exact}


def diverging(
    runs: Runs, eager: Outcome, compiled: Outcome, built: Sequence[Built], *, last: str, main: str
) -> Divergence:
    """The first stage that differs, and inside Inductor the first buffer. `last` is the backend of `compiled`, `main` the
    snippet's file. What cannot be found out is said in the notes."""
    try:
        found = aside(lambda: _climb(runs, eager, compiled, last), LIMIT_SECONDS)
    except AsideError as fault:
        return Divergence(steps=[], notes=[message("execute.no_ladder", error=_first_line(fault))])
    if found.first != LAST or not built:
        return found
    try:
        buffer, compared = aside(lambda: _buffers(runs, built, main), LIMIT_SECONDS)
    except AsideError as fault:
        note = message("execute.no_buffers", error=_first_line(fault))
        return found.model_copy(update={"notes": [*found.notes, note]})
    return found.model_copy(update={"buffer": buffer, "buffers_compared": compared})


def _first_line(fault: AsideError) -> str:
    return fault.detail.partition("\n")[0] or fault.cause.key


def _climb(runs: Runs, eager: Outcome, compiled: Outcome, last: str) -> Divergence:
    found = _yardstick(runs, eager)
    yardstick = found if isinstance(found, _Yardstick) else None
    notes = [found] if isinstance(found, Message) else []
    steps = [StageStep(backend=EAGER, error=_largest(yardstick.own) if yardstick else None)]
    ladder = LADDER[: LADDER.index(last)] if last in LADDER else LADDER
    outcomes: list[tuple[str, Callable[[], Outcome]]] = [
        (backend, lambda backend=backend: runs.run_on(backend))  # type: ignore[misc]
        for backend in ladder
    ]
    before, before_name = eager, EAGER
    first: str | None = None
    rounding = yardstick is not None
    for backend, run in [*outcomes, (last, lambda: compiled)]:
        torch._dynamo.reset()
        outcome = run()
        if outcome.error is not None:
            steps.append(StageStep(backend=backend, before=before_name, failed=_failure(outcome.error)))
            continue
        comparisons = [one for one in compare(before, outcome, printed=runs.printed) if one.kind != "printed"]
        errors = yardstick.error(outcome) if yardstick else {}
        real = [one for one in comparisons if one.agrees is False and _beyond(one, errors, yardstick)]
        steps.append(
            StageStep(
                backend=backend,
                before=before_name,
                compared=len(comparisons),
                disagree=sum(one.agrees is False for one in comparisons),
                worst=real[0] if real else worst(comparisons),
                error=_largest(errors) if yardstick else None,
            )
        )
        if real and first is None:
            first = backend
        rounding = rounding and not real
        before, before_name = outcome, backend
    return Divergence(steps=steps, first=first, own=rounding and first is None, notes=notes)


def _failure(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:500]


def _yardstick(runs: Runs, eager: Outcome) -> _Yardstick | Message:
    """Or why there is none. A script's state of the generator is known, and not whether anything drew from it."""
    if eager.random is not None and not runs.printed:
        return message("execute.no_yardstick_random")
    outcome = runs.run_exact()
    if outcome is None:
        return message("execute.no_yardstick_form")
    if outcome.error is not None:
        return message("execute.no_yardstick_raised", error=type(outcome.error).__name__)
    exact = _tensors(outcome)
    own = {key: _error(tensor, exact[key]) for key, tensor in _tensors(eager).items() if key in exact}
    return _Yardstick(exact, own)


def _beyond(one: Comparison, errors: dict[Key, float], yardstick: _Yardstick | None) -> bool:
    """Whether the tensor is farther from float64 than eager's own rounding explains."""
    key = (one.kind, one.call, one.name)
    if one.mismatch or yardstick is None or key not in errors or key not in yardstick.own:
        return True
    return not errors[key] <= _OWN_TIMES * yardstick.own[key]


def _tensors(outcome: Outcome) -> dict[Key, torch.Tensor]:
    found: dict[Key, torch.Tensor] = {}
    for index, call in enumerate(outcome.calls):
        for kind, named in (("output", call.outputs), ("gradient", call.gradients), ("buffer", call.buffers)):
            found |= {(kind, index, name): tensor for name, tensor in named.items()}
    return found


def _error(tensor: torch.Tensor, exact: torch.Tensor) -> float:
    """The largest distance, as a share of the largest exact value; infinite where shapes differ or only one is NaN."""
    if tensor.shape != exact.shape:
        return math.inf
    if not tensor.numel():
        return 0.0
    wide = torch.complex128 if tensor.is_complex() or exact.is_complex() else torch.float64
    one, other = tensor.detach().to(wide), exact.detach().to(wide)
    same = (one == other) | (one.isnan() & other.isnan())
    distance = float(torch.where(same, torch.zeros_like(one), one - other).abs().nan_to_num(math.inf).max())
    if distance == 0:
        return 0.0
    largest = float(other.abs().max())
    return distance / largest if largest > 0 and math.isfinite(largest) else math.inf


def _largest(errors: dict[Key, float]) -> float | None:
    found = max(errors.values(), default=0.0)
    return found if math.isfinite(found) else None


def _buffers(runs: Runs, built: Sequence[Built], main: str) -> tuple[WrongBuffer | None, int]:
    """In a fork, whose wrappers stay marked."""
    watched = watch_buffers(built)
    runs.repeat()
    first = watched.first
    if first is None:
        return None, watched.compared
    wrapper = built[first.built]
    found = re.findall(rf'File "{re.escape(main)}", line (\d+)', first.stack or wrapper.stack(first.line))
    buffer = WrongBuffer(
        buffer=first.buffer,
        entity=f"{slug(wrapper.compile)}/post_grad/{wrapper.graph}/{first.node}",
        kernel=f"{slug(wrapper.compile)}/codegen/{wrapper.graph}/{first.kernel}",
        line=int(found[-1]) if found else None,
        difference=first.difference if math.isfinite(first.difference) else None,
        own=first.own if math.isfinite(first.own) else None,
        scale=first.scale,
    )
    return buffer, watched.compared
