"""Paired timing: the order of the samples, and the interval."""

from __future__ import annotations

from compiler.paired import paired, ratio_interval
from compiler.text import message


def test_samples_alternate_and_are_as_many() -> None:
    order: list[str] = []
    found = paired(
        lambda: order.append("A"),
        lambda: order.append("B"),
        before_eager=lambda: order.append("a"),
        before_compiled=lambda: order.append("b"),
        budget_seconds=0.0,
        limit_seconds=10.0,
        what=message("execute.timed_step"),
    )
    assert len(found.eager) == len(found.compiled) == 10
    assert "".join(order) == "aAbBbBaA" * 5


def test_the_interval_holds_the_ratio_and_repeats_itself() -> None:
    eager = [1.0, 1.1, 0.9, 1.0, 1.2, 1.0, 0.8, 1.0, 1.0, 1.1]
    compiled = [0.5 * seconds * (1 + 0.01 * index) for index, seconds in enumerate(eager)]
    ratio, low, high = ratio_interval(eager, compiled)
    assert 0.5 <= low <= ratio <= high <= 0.55
    assert ratio_interval(eager, compiled) == (ratio, low, high)
