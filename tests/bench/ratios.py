"""Ratios of paired samples, and how they are shown."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from compiler.paired import ratio_interval


@dataclass(frozen=True)
class Ratio:
    """Median of `new/base` over pairs with its bootstrap 95 % interval; `goal` is an upper bound, None where there is none."""

    name: str
    median: float
    low: float
    high: float
    pairs: int
    goal: float | None = None

    def row(self) -> str:
        goal = "" if self.goal is None else f"≤ {self.goal:g}"
        return f"| {self.name} | {self.median:.3f} | {self.low:.3f} – {self.high:.3f} | {self.pairs} | {goal} |"


HEADER = "| ratio | median | 95 % interval | pairs | goal |\n|---|---|---|---|---|"


def ratio(name: str, base: Sequence[float], new: Sequence[float], goal: float | None = None) -> Ratio:
    """Pairs are `base[i]`, `new[i]`, measured one after the other."""
    median, low, high = ratio_interval(base, new)
    return Ratio(name, median, low, high, len(base), goal)


def abba(base: Callable[[], float], new: Callable[[], float], pairs: int) -> tuple[list[float], list[float]]:
    """Samples of two arms in ABBA order, so that a drift of the machine falls on both."""
    bases: list[float] = []
    news: list[float] = []
    for pair in range(pairs):
        if pair % 2 == 0:
            bases.append(base())
            news.append(new())
        else:
            news.append(new())
            bases.append(base())
    return bases, news


def spread(values: Sequence[float]) -> str:
    """Median, and from the least to the greatest."""
    return f"{statistics.median(values):.3f} ({min(values):.3f} – {max(values):.3f})"
