"""Torch's log of graph breaks, as a count: the only place that has them all, whoever found them."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator

from torch._dynamo import convert_frame, exc, symbolic_convert

_LOGGERS: tuple[logging.Logger, ...] = (
    symbolic_convert.graph_break_log,
    convert_frame.graph_break_log,
    exc.graph_breaks_log,
)


class _Handler(logging.Handler):
    def __init__(self, said: Callable[[], None]) -> None:
        super().__init__()
        self._said = said

    def emit(self, record: logging.LogRecord) -> None:
        self._said()


@contextlib.contextmanager
def graph_break_records(said: Callable[[], None]) -> Iterator[None]:
    """While it lasts, `said` is called once for each record of the `graph_breaks` log, which prints nothing."""
    handler = _Handler(said)
    before = [(log, log.level, log.propagate, log.handlers) for log in _LOGGERS]
    for log in _LOGGERS:
        log.setLevel(logging.DEBUG)
        log.propagate = False
        log.handlers = [handler]
    try:
        yield
    finally:
        for log, level, propagate, handlers in before:
            log.setLevel(level)
            log.propagate = propagate
            log.handlers = handlers
