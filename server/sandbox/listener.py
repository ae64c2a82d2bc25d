"""Listening to one child: its events, its output and its warden, until all of them are silent."""

from __future__ import annotations

import codecs
import os
import selectors
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from server.sandbox.launcher import Child
from server.sandbox.protocol import Verdict

_PIECE = 1 << 18
_LOOK_SECONDS = 0.1
_DRAIN_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Heard:
    """What came in one look: bytes of the events' pipe, output as (stream, text), the warden's last word."""

    data: bytes = b""
    printed: tuple[tuple[str, str], ...] = ()
    verdict: Verdict | None = None


def listen(child: Child, every: Callable[[], float | None]) -> Iterator[Heard]:
    """Yields at least every 0.1 s, sooner when `every()` (seconds) says so, until the child and all that it started are gone."""
    selector = selectors.DefaultSelector()
    for descriptor, name in ((child.events, "events"), (child.stdout, "stdout"), (child.stderr, "stderr")):
        selector.register(descriptor, selectors.EVENT_READ, name)
    selector.register(child.control, selectors.EVENT_READ, "control")
    decoders = {name: codecs.getincrementaldecoder("utf-8")("replace") for name in ("stdout", "stderr")}
    word = b""
    gone: float | None = None
    with selector:
        while selector.get_map():
            # Its tree is ended before the warden speaks; whoever still holds a pipe then is not ours to wait for.
            if gone is not None and time.monotonic() - gone > _DRAIN_SECONDS:
                return
            wait = every()
            ready = selector.select(_LOOK_SECONDS if wait is None else min(wait, _LOOK_SECONDS))
            data = b""
            printed: list[tuple[str, str]] = []
            verdict: Verdict | None = None
            for key, _mask in ready:
                piece = _read(key.fd)
                if key.data == "control":
                    word += piece
                    if not piece:
                        gone = time.monotonic()
                        verdict = Verdict.model_validate_json(word) if word.endswith(b"\n") else None
                elif key.data == "events":
                    data = piece
                else:
                    text = decoders[key.data].decode(piece, final=not piece)
                    if text:
                        printed.append((key.data, text))
                if not piece:
                    selector.unregister(key.fileobj)
            yield Heard(data, tuple(printed), verdict)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _PIECE)
    except ConnectionResetError:
        return b""
