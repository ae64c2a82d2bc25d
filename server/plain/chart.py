"""Live bytes over one step as a step chart in SVG. Its colours are classes of the page's stylesheet."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compiler.text import message, render
from server.pictures.draw import xml
from server.plain.figures import bytes_text

WIDTH, HEIGHT = 860, 150
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 8, 18, 18
# More steps than this cannot be told apart; each column then shows the highest of its points.
_COLUMNS = 1200

Scale = Callable[[float], float]


def chart(live: Sequence[int], forward_end: int | None, peak_point: int, most: int, language: str) -> str:
    """`live[i]` is the bytes alive after point i; `most` the top of the scale, so that several charts can be compared."""
    count = len(live)
    end = count if forward_end is None else forward_end
    top = max(most, 1)
    inner = WIDTH - _LEFT - _RIGHT
    floor = HEIGHT - _BOTTOM

    def x(point: float) -> float:
        return _LEFT + inner * point / max(count, 1)

    def y(bytes_: float) -> float:
        return floor - (floor - _TOP) * bytes_ / top

    peak_x, peak_y = x(peak_point + 0.5), y(live[peak_point] if peak_point < count else 0)
    peak = f"{render(message('plain.peak_label'), language)} {bytes_text(live[peak_point])}" if count else ""
    anchor = "end" if peak_x > WIDTH * 0.8 else "start"
    label = render(message("plain.live_bytes"), language)
    parts = [
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{xml(label)}">',
        *(
            f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y(top * part):.1f}" y2="{y(top * part):.1f}"/>'
            f'<text class="axis" x="{_LEFT - 8}" y="{y(top * part) + 4:.1f}">{xml(bytes_text(top * part))}</text>'
            for part in (0, 0.5, 1)
        ),
        f'<path class="area fw" d="{_steps(live, 0, end, x, y, floor)}"/>' if end else "",
        f'<path class="area bw" d="{_steps(live, end, count, x, y, floor)}"/>' if end < count else "",
    ]
    if 0 < end < count:
        parts += [
            f'<line class="turn" x1="{x(end):.1f}" x2="{x(end):.1f}" y1="4" y2="{floor}"/>',
            f'<text class="side fw" x="{x(end) - 6:.1f}" y="12">{xml(render(message("plain.forward"), language))}</text>',
            f'<text class="side bw" x="{x(end) + 6:.1f}" y="12">{xml(render(message("plain.backward"), language))}</text>',
        ]
    if count:
        shift = -6 if anchor == "end" else 6
        parts += [
            f'<line class="peak" x1="{peak_x:.1f}" x2="{peak_x:.1f}" y1="{peak_y:.1f}" y2="{floor}"/>',
            f'<circle class="peak" cx="{peak_x:.1f}" cy="{peak_y:.1f}" r="3"/>',
            f'<text class="peak {anchor}" x="{peak_x + shift:.1f}" y="{floor - 6}">{xml(peak)}</text>',
        ]
    parts.append(f'<text class="below" x="{_LEFT}" y="{HEIGHT - 4}">{xml(label)}</text></svg>')
    return "".join(parts)


def _steps(live: Sequence[int], first: int, last: int, x: Scale, y: Scale, floor: float) -> str:
    """The outline of the points `first` up to `last`, closed at the floor."""
    wide = max(1, (last - first + _COLUMNS - 1) // _COLUMNS)
    path = [f"M{x(first):.1f} {floor}"]
    for start in range(first, last, wide):
        path.append(f"V{y(max(live[start : min(start + wide, last)])):.1f}H{x(min(start + wide, last)):.1f}")
    return "".join(path) + f"V{floor}Z"
