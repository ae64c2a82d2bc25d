"""Work done aside: its result comes back, its faults do no harm."""

from __future__ import annotations

import os
import signal
import sys
import time

import pytest

from compiler.fork import AsideError, aside
from compiler.text import message

# The tests' own process may have threads, which the forks here do not touch.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def test_a_large_result_comes_back_and_what_the_fork_changes_does_not(capfd: pytest.CaptureFixture[str]) -> None:
    state = [1]

    def work() -> bytes:
        state.append(2)
        print("said in the fork")
        os.write(1, b"written in the fork")
        return b"x" * 3_000_000

    assert len(aside(work, 20)) == 3_000_000
    assert state == [1]
    assert capfd.readouterr().out == ""


def test_an_exception_is_told() -> None:
    with pytest.raises(AsideError) as caught:
        aside(lambda: 1 // 0, 20)
    assert caught.value.cause == message("aside.raised", error="ZeroDivisionError")
    assert "integer division" in caught.value.detail


def test_exits_and_signals_are_told() -> None:
    with pytest.raises(AsideError) as caught:
        aside(lambda: os.kill(os.getpid(), signal.SIGTERM), 20)
    assert caught.value.cause == message("aside.died", how="SIGTERM")
    with pytest.raises(AsideError) as caught:
        aside(lambda: os._exit(3), 20)
    assert caught.value.cause == message("aside.died", how="exit 3")
    with pytest.raises(AsideError) as caught:
        aside(lambda: sys.exit(4), 20)
    assert caught.value.cause == message("aside.raised", error="SystemExit")


def test_too_long_is_ended() -> None:
    began = time.monotonic()
    with pytest.raises(AsideError) as caught:
        aside(lambda: time.sleep(60), 0.2)
    assert caught.value.cause == message("aside.timeout", seconds=0.2)
    assert time.monotonic() - began < 10


def test_no_further_process_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> int:
        raise BlockingIOError("Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", refused)
    with pytest.raises(AsideError) as caught:
        aside(lambda: 1, 20)
    assert caught.value.cause == message("aside.no_process")
