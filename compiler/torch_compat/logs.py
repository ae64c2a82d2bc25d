"""Torch's logs, where they are the only place that says something: CUDA graphs."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence

from compiler.ir.execution import CudaGraphEvent, CudaGraphKind

# By name: the module of the first has needs that only a build with CUDA meets.
_CUDA_GRAPHS = ("torch._inductor.cudagraph_trees.__cudagraphs", "torch._inductor.cudagraph_utils.__cudagraphs")


class _Handler(logging.Handler):
    def __init__(self, said: Callable[[logging.LogRecord], None]) -> None:
        super().__init__()
        self._said = said

    def emit(self, record: logging.LogRecord) -> None:
        self._said(record)


@contextlib.contextmanager
def _heard(loggers: Sequence[logging.Logger], said: Callable[[logging.LogRecord], None]) -> Iterator[None]:
    handler = _Handler(said)
    before = [(log, log.level, log.propagate, log.handlers) for log in loggers]
    for log in loggers:
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


@contextlib.contextmanager
def cuda_graph_records(said: Callable[[CudaGraphEvent], None]) -> Iterator[None]:
    """While it lasts, `said` is given what torch logs of CUDA graphs: that one is recorded, recorded again, or not, and why."""

    def told(record: logging.LogRecord) -> None:
        text = record.getMessage()
        kind = _cuda_graph_kind(text)
        if kind is not None:
            said(CudaGraphEvent(kind=kind, text=text))

    with _heard([logging.getLogger(name) for name in _CUDA_GRAPHS], told):
        yield


def _cuda_graph_kind(text: str) -> CudaGraphKind | None:
    if "Re-recording" in text:
        return "again"
    if "Recording cudagraph tree" in text:
        return "recorded"
    return "skipped" if "skipping cudagraphs" in text or "disabling cudagraphs" in text else None
