"""Putting our own function in the place of one of torch's, and torch's back."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from compiler.events import StageName
from compiler.session import Session

_ABSENT = object()


@contextmanager
def replaced(owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Iterator[None]:
    """`owner.name` is `make(original)` until the context ends. `owner` is a module, a class or an object."""
    before = vars(owner).get(name, _ABSENT)
    original = getattr(owner, name)
    ours = make(original)
    if hasattr(original, "__name__"):
        ours = functools.wraps(original)(ours)
    setattr(owner, name, staticmethod(ours) if isinstance(before, staticmethod) else ours)
    try:
        yield
    finally:
        if before is _ABSENT:
            delattr(owner, name)
        else:
            setattr(owner, name, before)


class _Own:
    seconds = 0.0
    depth = 0


class _Ours:
    def __init__(self, session: Session, stage: StageName, compile: str | None) -> None:
        self._watching = session.watching(stage, compile)
        self._start = 0.0

    def __enter__(self) -> None:
        self._start = time.perf_counter()
        _Own.depth += 1
        self._watching.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> bool:
        try:
            return bool(self._watching.__exit__(kind, fault, trace))
        finally:
            _Own.depth -= 1
            if _Own.depth == 0:
                _Own.seconds += time.perf_counter() - self._start


def ours(session: Session, stage: StageName, compile: str | None) -> _Ours:
    """Around our own code in a hook of torch's: a fault of ours is told and swallowed, and the time is kept apart."""
    return _Ours(session, stage, compile)


class Lap:
    """What torch took since the lap began, without our own work."""

    def __init__(self) -> None:
        self._start = time.perf_counter() - _Own.seconds

    def seconds(self) -> float:
        return time.perf_counter() - _Own.seconds - self._start
