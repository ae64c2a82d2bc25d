"""What Inductor chose by timing on the GPU of this machine, and from what."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from compiler.ir.execution import Autotuned, TimedCandidate
from compiler.torch_compat.wrapper import Built

_MILLI = 1e-3


@contextmanager
def timed_choices() -> Iterator[list[Autotuned]]:
    """Collect, until the context ends, each operator whose kernel was chosen by timing. Torch's own hook for that."""
    from torch._inductor.select_algorithm import add_feedback_saver, clear_feedback_savers

    found: list[Autotuned] = []

    def told(timings: dict[Any, float], name: str, *_: Any) -> None:
        found.append(autotuned(name, [(described(choice), ms) for choice, ms in timings.items()]))

    add_feedback_saver(told)
    try:
        yield found
    finally:
        clear_feedback_savers()


def described(choice: Any) -> str:
    """A candidate in torch's words."""
    name, text = str(choice.name), str(getattr(choice, "description", "") or "")
    return f"{name}: {text}" if text else name


def autotuned(operator: str, timings: Sequence[tuple[str, float]]) -> Autotuned:
    """The candidates, the fastest first; one that failed has no time. `timings` are in milliseconds."""
    candidates = [
        TimedCandidate(text=text, seconds=ms * _MILLI if math.isfinite(ms) else None)
        for text, ms in sorted(timings, key=lambda pair: pair[1])
    ]
    return Autotuned(operator=operator, candidates=candidates)


def chosen_configs(built: Sequence[Built]) -> dict[str, str]:
    """Triton kernel of the wrappers → the configuration that is launched, once only one is left."""
    found: dict[str, str] = {}
    for wrapper in built:
        for name, value in vars(wrapper.module).items():
            launchers = getattr(value, "launchers", None)
            if isinstance(launchers, list) and len(launchers) == 1:
                found[name] = str(launchers[0].config)
    return found
