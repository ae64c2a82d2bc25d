"""Figures as text, as the page writes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def bytes_text(count: float | None) -> str:
    """`32 KiB`: three figures are enough to compare by."""
    if count is None:
        return ""
    value, unit = float(count), 0
    while abs(value) >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    digits = 0 if unit == 0 or abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    text = f"{value:.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if digits else text} {_UNITS[unit]}"


def seconds_text(value: float | None) -> str:
    if value is None:
        return ""
    if value >= 100:
        return f"{value:.0f} s"
    if value >= 1:
        return f"{value:.1f} s"
    if value >= 0.001:
        return f"{value * 1000:.{0 if value >= 0.1 else 1}f} ms"
    return f"{value * 1e6:.0f} µs"


def small_text(value: float | None) -> str:
    """An error: `5.9e-08`, `0`, or – where there is none."""
    return "–" if value is None else "0" if value == 0 else f"{value:.1e}"


def count_text(value: int) -> str:
    return f"{value:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def shape_text(dtype: str, shape: Sequence[Any]) -> str:
    """`float32[8, s0]` of a payload's dtype and sizes, a number or {expr, hint} each."""
    sizes = ", ".join(str(size["expr"]) if isinstance(size, dict) else str(size) for size in shape)
    return f"{dtype}[{sizes}]" if dtype else ""


def tally_text(names: Sequence[str]) -> str:
    """`aten.mul ×3, aten.add`: each once, in the order of their first."""
    return ", ".join(name if count == 1 else f"{name} ×{count}" for name, count in Counter(names).items())


def fact_text(name: str, value: object) -> str:
    """A stage's fact as the rail shows it: `nodes 31`, `saved_bytes 1.5 KiB`."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return f"{name} {value}"
    if name.endswith("_bytes") or name.startswith("peak_"):
        return f"{name} {bytes_text(value)}"  # type: ignore[arg-type]
    if name.endswith("_seconds"):
        return f"{name} {seconds_text(value)}"  # type: ignore[arg-type]
    return f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}"
