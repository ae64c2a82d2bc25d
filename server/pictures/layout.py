"""Where boxes and wires of a picture lie. Lengths are in pixels, y grows downwards."""

from __future__ import annotations

from dataclasses import dataclass

Sizes = tuple[tuple[float, float], ...]
Edges = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Place:
    """A box by its middle and its size."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Line:
    x1: float
    y1: float
    x2: float
    y2: float


@dataclass(frozen=True, slots=True)
class Layout:
    """`boxes` in the order of the sizes, `lines` in that of the edges."""

    width: float
    height: float
    boxes: tuple[Place, ...]
    lines: tuple[Line, ...]
