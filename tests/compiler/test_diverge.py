"""Why there is no float64 yardstick, where there is none."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from compiler.snippet import CallResult
from compiler.stages.diverge import diverging
from compiler.stages.execute import Outcome
from compiler.text import Message, message


@dataclass
class Runs:
    """Every backend gives the same; `exact` is what float64 gives."""

    exact: Outcome | None
    printed: bool = False

    def run_on(self, backend: str) -> Outcome:
        return outcome(1.0)

    def run_exact(self) -> Outcome | None:
        return self.exact

    def repeat(self) -> None:
        raise AssertionError("nothing was built")


def outcome(value: float) -> Outcome:
    return Outcome([CallResult(outputs={"out": torch.tensor([value])})])


@pytest.mark.parametrize(
    ("runs", "random", "note"),
    [
        (Runs(None, printed=True), b"state", message("execute.no_yardstick_form")),
        (Runs(outcome(1.0)), b"state", message("execute.no_yardstick_random")),
        (Runs(Outcome(error=KeyError("k"))), None, message("execute.no_yardstick_raised", error="KeyError")),
        (Runs(outcome(1.0)), None, None),
    ],
)
def test_without_a_yardstick_the_reason_is_told(runs: Runs, random: bytes | None, note: Message | None) -> None:
    eager = Outcome([CallResult(outputs={"out": torch.tensor([1.0])})], random=random)
    found = diverging(runs, eager, outcome(2.0), [], last="inductor", main="snippet.py")
    assert found.first == "inductor"
    assert found.notes == ([note] if note else [])
    assert (found.steps[0].error is None) == (note is not None)
