"""What the snippet prints, as events while it runs: `sys.stdout` and `sys.stderr` are replaced by writers that emit.

Only what goes through Python's streams is shown. The process's own descriptors 1 and 2 (torch's C++ notes, a subprocess) are
for whoever starts the process to close or to keep.
"""

from __future__ import annotations

import contextlib
import io
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Literal

from compiler.events import Body, OutputCut, Printed

OUTPUT_LIMIT = 1_000_000
_PROMPT_EVENTS = 200
_CHUNK = 8192
_INTERVAL = 0.05

Stream = Literal["stdout", "stderr"]


class Output:
    """Collects both streams in order. The first lines are told at once; a flood of them in pieces of 8 KiB or every 50 ms.

    After `limit` bytes one `OutputCut` is told and the rest is dropped. `flush` before any other event keeps the order."""

    def __init__(self, emit: Callable[[Body], None], limit: int = OUTPUT_LIMIT) -> None:
        self._emit = emit
        self._limit = limit
        self._written = 0
        self._events = 0
        self._last = 0.0
        self._pending: list[tuple[Stream, bytes]] = []
        self._size = 0
        self._lock = threading.RLock()

    def write(self, stream: Stream, data: bytes) -> None:
        with self._lock:
            if self._written >= self._limit:
                return
            kept = data[: self._limit - self._written]
            self._written += len(kept)
            self._pending.append((stream, kept))
            self._size += len(kept)
            prompt = self._events < _PROMPT_EVENTS or self._size >= _CHUNK
            if prompt or time.monotonic() - self._last >= _INTERVAL:
                self.flush()
            if self._written >= self._limit:
                self.flush()
                self._emit(OutputCut(limit_bytes=self._limit))

    def flush(self) -> None:
        with self._lock:
            pending, self._pending, self._size = self._pending, [], 0
            joined: list[tuple[Stream, bytes]] = []
            for stream, data in pending:
                if joined and joined[-1][0] == stream:
                    joined[-1] = (stream, joined[-1][1] + data)
                else:
                    joined.append((stream, data))
            for stream, data in joined:
                self._events += 1
                self._last = time.monotonic()
                self._emit(Printed(stream=stream, text=data.decode("utf-8", "replace")))


class _Raw(io.RawIOBase):
    def __init__(self, output: Output, stream: Stream) -> None:
        self._output = output
        self._stream: Stream = stream

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        taken = bytes(data)  # type: ignore[call-overload]
        self._output.write(self._stream, taken)
        return len(taken)


def _writer(output: Output, stream: Stream) -> io.TextIOWrapper:
    buffered = io.BufferedWriter(_Raw(output, stream))
    return io.TextIOWrapper(buffered, encoding="utf-8", errors="backslashreplace", newline="", line_buffering=True)


@contextlib.contextmanager
def capturing(output: Output) -> Iterator[None]:
    """While it lasts, what is printed goes to `output`."""
    before = sys.stdout, sys.stderr
    writers = _writer(output, "stdout"), _writer(output, "stderr")
    sys.stdout, sys.stderr = writers
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        for writer in writers:
            writer.flush()
        output.flush()
