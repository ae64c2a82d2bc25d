"""Torch's structured trace, kept in memory: the records that `TORCH_TRACE` writes to a file, in the same form.

With a handler torch makes the text of every graph for it, so that a traced compile takes longer; without one it makes none.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from torch._logging import _internal, structured

from compiler.ir.trace import TracePayload

MOST_CHARACTERS = 16 << 20


class Trace:
    """A trace that can be continued: `recording` may be entered again."""

    def __init__(self, limit: int = MOST_CHARACTERS) -> None:
        self._handler = _Keeping(limit)
        # Strings and files that the trace has named already. They are the process' own, and another trace's, before and after.
        self._strings: dict[str, int] = {}
        self._files: set[str] = set()

    @contextmanager
    def recording(self) -> Iterator[None]:
        """While it lasts, every record of this process is kept, up to the limit."""
        strings, files = structured.INTERN_TABLE, structured.DUMPED_FILES
        structured.INTERN_TABLE, structured.DUMPED_FILES = self._strings, self._files
        _internal.trace_log.addHandler(self._handler)
        try:
            if not self._handler.records:
                _internal._log_torch_version()
            yield
        finally:
            _internal.trace_log.removeHandler(self._handler)
            structured.INTERN_TABLE, structured.DUMPED_FILES = strings, files

    def payload(self, phase: Literal["capture", "native"]) -> TracePayload:
        kept = self._handler
        return TracePayload(phase=phase, text="".join(kept.parts), records=kept.records, cut=kept.cut)


class _Keeping(logging.Handler):
    """A fork of the process is another one: its records are not kept."""

    def __init__(self, limit: int) -> None:
        super().__init__(logging.DEBUG)
        self.setFormatter(_internal.TorchLogsFormatter(trace=True))
        self.parts: list[str] = []
        self.records = 0
        self.cut = False
        self._left = limit
        self._owner = os.getpid()

    def emit(self, record: logging.LogRecord) -> None:
        if os.getpid() != self._owner or self.cut:
            return
        text = self.format(record) + "\n"
        if len(text) > self._left:
            self.cut = True
            _internal.trace_log.removeHandler(self)  # nothing more is made for it
            return
        self._left -= len(text)
        self.parts.append(text)
        self.records += 1


# A record can be made while Dynamo compiles whatever is called: as torch's own handler, this one is not compiled.
_Keeping.emit.__code__ = _Keeping.emit.__code__.replace(co_filename=_internal.__file__)
