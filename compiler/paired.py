"""Paired timing of two callables, and the interval of their ratio. Torch-free."""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Callable, Sequence

from compiler.ir.execution import Timing
from compiler.text import Message

LEAST_PAIRS = 10
MOST_PAIRS = 100
_RESAMPLES = 1000


def paired(
    eager: Callable[[], object],
    compiled: Callable[[], object],
    *,
    before_eager: Callable[[], None],
    before_compiled: Callable[[], None],
    budget_seconds: float,
    limit_seconds: float,
    what: Message,
    clock: Callable[[Callable[[], object]], float] | None = None,
) -> Timing:
    """Samples in ABBA order, so that a drift of the machine falls on both. At least 10 pairs (fewer only when those would
    take longer than `limit_seconds`), more while `budget_seconds` lasts, at most 100. `before_…` are not timed. `clock`
    runs a step and says its seconds; without one, this process's clock is read."""

    def sample(step: Callable[[], object], before: Callable[[], None]) -> float:
        before()
        if clock is not None:
            return clock(step)
        start = time.perf_counter()
        kept = step()
        seconds = time.perf_counter() - start
        del kept
        return seconds

    one: list[float] = []
    other: list[float] = []
    collecting = gc.isenabled()
    gc.collect()
    gc.disable()
    begin = time.perf_counter()
    try:
        while len(one) < MOST_PAIRS:
            spent = time.perf_counter() - begin
            if one and spent > (budget_seconds if len(one) >= LEAST_PAIRS else limit_seconds):
                break
            if len(one) % 2 == 0:
                one.append(sample(eager, before_eager))
                other.append(sample(compiled, before_compiled))
            else:
                other.append(sample(compiled, before_compiled))
                one.append(sample(eager, before_eager))
    finally:
        if collecting:
            gc.enable()
    ratio, low, high = ratio_interval(one, other)
    return Timing(eager=one, compiled=other, ratio=ratio, low=low, high=high, what=what)


def ratio_interval(eager: Sequence[float], compiled: Sequence[float]) -> tuple[float, float, float]:
    """Median of compiled/eager over the pairs, and its bootstrap 95 % interval (the same for the same samples)."""
    ratios = [b / a for a, b in zip(eager, compiled, strict=True)]
    draw = random.Random(0)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(_RESAMPLES))
    return statistics.median(ratios), medians[int(_RESAMPLES * 0.025)], medians[int(_RESAMPLES * 0.975)]
