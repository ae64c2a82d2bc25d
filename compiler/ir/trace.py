"""Torch's own structured trace of a phase."""

from __future__ import annotations

from typing import Literal

from compiler.text import Frozen


class TracePayload(Frozen):
    """`text` is a whole log as `TORCH_TRACE` writes it: what `tlparse` reads. It has `records` records; `cut` says that more
    followed, which were not kept, or that one was longer than all that is kept."""

    format: Literal["trace/1"] = "trace/1"
    phase: Literal["capture", "native"]
    text: str
    records: int
    cut: bool = False
