"""A layout as SVG, in the page's colours, with a legend. Everything from the user is escaped."""

from __future__ import annotations

import unicodedata
from html import escape

from compiler.text import message, render
from server.pictures.layout import Layout, Sizes
from server.pictures.view import Box, View, WireKind

# Ink and ground of each kind, as on the page: frontend/src/main.css.
LIGHT = {
    "forward": ("#0072b2", "#e3f0f8"),
    "backward": ("#b45f06", "#fdf0dc"),
    "saved": ("#00795a", "#dff3ec"),
    "recomputed": ("#8a4fbe", "#f1e8fa"),
    "crossing": ("#6d727a", "#fbfbf9"),
    "ink": ("#1d1f23", "#fff"),
    "dim": ("#565b63", "#fff"),
}
DARK = {
    "forward": ("#5db4ea", "#12293a"),
    "backward": ("#f0a94a", "#36260f"),
    "saved": ("#3ecf9f", "#0f2f25"),
    "recomputed": ("#bb8cf0", "#2a1d3a"),
    "crossing": ("#8b919a", "#101215"),
    "ink": ("#e6e7ea", "#16191d"),
    "dim": ("#a8aeb6", "#16191d"),
}
LEGEND = ("forward", "backward", "saved", "recomputed", "crossing")
MONO = "ui-monospace,SF Mono,Menlo,DejaVu Sans Mono,monospace"
UI = "system-ui,-apple-system,Segoe UI,Noto Sans,Noto Sans CJK SC,DejaVu Sans,sans-serif"

_LONGEST = 34
_CHAR = 6.7
_SMALL = 5.7
_MARGIN = 14.0


def wide(text: str) -> int:
    """Columns of a monospaced font; Chinese characters take two."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def short(text: str, longest: int = _LONGEST) -> str:
    """At most `longest` columns, the rest as an ellipsis."""
    text = clean(text).replace("\n", " ")
    if wide(text) <= longest:
        return text
    kept, columns = [], 0
    for char in text:
        columns += wide(char)
        if columns > longest - 1:
            break
        kept.append(char)
    return "".join(kept) + "…"


def clean(text: str) -> str:
    """Without the characters that XML cannot hold, each made visible."""
    return "".join(char if _allowed(ord(char)) else "\N{REPLACEMENT CHARACTER}" for char in text)


def _allowed(code: int) -> bool:
    return code in (9, 10, 13) or 0x20 <= code < 0xD800 or 0xE000 <= code < 0xFFFE or code >= 0x10000


def xml(text: str) -> str:
    return escape(clean(text), quote=True)


def group_words(box: Box, language: str) -> str:
    if 0 < box.again < box.count:
        return render(message("plain.nodes_again", count=box.count, again=box.again), language)
    return render(message("plain.nodes", count=box.count), language)


def _texts(box: Box, language: str) -> tuple[str, str]:
    if box.count == 1:
        return short(box.name), short(box.detail, _LONGEST + 4)
    name = box.name or render(message("plain.picture_inputs" if box.edge else "plain.picture_root"), language)
    return short(name), group_words(box, language)


def sizes(view: View, language: str) -> Sizes:
    """Width and height of each box, in whole pixels: dot rounds them."""
    made = []
    for box in view.boxes:
        name, detail = _texts(box, language)
        width = max(wide(name) * _CHAR, wide(detail) * _SMALL, 34) + 16
        made.append((float(round(width)), 34.0 if detail else 22.0))
    return tuple(made)


def legend_words(view: View, language: str) -> list[tuple[str, str]]:
    """What the colours of this view mean: kind and words."""
    saved = len({wire.tail for wire in view.wires if wire.kind == "saved"})
    said = {
        "forward": message("plain.legend_forward", count=view.counts.get("forward", 0)),
        "backward": message("plain.legend_backward", count=view.counts.get("backward", 0)),
        "saved": message("plain.legend_saved"),
        "recomputed": message("plain.legend_recomputed", count=view.counts.get("recomputed", 0)),
        "crossing": message("plain.legend_crossing"),
    }
    shown = {
        "forward": view.counts.get("forward", 0) > 0,
        "backward": view.counts.get("backward", 0) > 0,
        "saved": saved > 0,
        "recomputed": view.counts.get("recomputed", 0) > 0,
        "crossing": any(wire.kind == "crossing" for wire in view.wires),
    }
    return [(kind, render(said[kind], language)) for kind in LEGEND if shown[kind]]


def draw(view: View, layout: Layout, language: str) -> str:
    """The whole picture as one SVG document. It follows the reader's colour scheme and fetches nothing."""
    legend, legend_width = _legend(view, language)
    width = max(layout.width, legend_width) + 2 * _MARGIN
    height = layout.height + 2 * _MARGIN + 30
    left = _MARGIN + max(0.0, (legend_width - layout.width) / 2)
    label = render(message("plain.picture_alt", id=view.id, nodes=view.nodes), language)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{xml(label)}">',
        f"<title>{xml(label)}</title>",
        f"<style>{_style()}</style>",
        "<defs>",
        *(
            f'<marker id="a-{kind}" viewBox="0 0 6 6" refX="5.4" refY="3" markerWidth="6" markerHeight="6" '
            f'markerUnits="userSpaceOnUse" orient="auto"><path class="f-{kind}" d="M0 0.4L6 3L0 5.6z"/></marker>'
            for kind in LEGEND
        ),
        "</defs>",
        '<rect class="ground" width="100%" height="100%"/>',
        f'<g transform="translate({_MARGIN:g} {_MARGIN:g})">{legend}</g>',
        f'<g transform="translate({left:.1f} {_MARGIN + 30:.1f})">',
        *_lines(view, layout),
        *(_drawn(box, layout, i, language) for i, box in enumerate(view.boxes)),
        "</g></svg>",
    ]
    return "\n".join(parts) + "\n"


def _lines(view: View, layout: Layout) -> list[str]:
    order: dict[WireKind, int] = {"crossing": 0, "forward": 1, "backward": 1, "recomputed": 2, "saved": 3}
    drawn = sorted(zip(view.wires, layout.lines, strict=True), key=lambda pair: order[pair[0].kind])
    return [
        f'<path class="w w-{wire.kind}" marker-end="url(#a-{wire.kind})" '
        f'd="M{line.x1:.1f} {line.y1:.1f}L{line.x2:.1f} {line.y2:.1f}"/>'
        for wire, line in drawn
    ]


def _drawn(box: Box, layout: Layout, i: int, language: str) -> str:
    place = layout.boxes[i]
    name, detail = _texts(box, language)
    x, y = place.x - place.width / 2, place.y - place.height / 2
    classes = f"b b-{box.kind}" + (" edge" if box.edge else "") + (" kept" if box.saved else "")
    stacked = (
        f'<rect class="{classes} under" x="{x + 3:.1f}" y="{y + 3:.1f}" width="{place.width:.1f}" '
        f'height="{place.height:.1f}" rx="5"/>'
        if box.count > 1
        else ""
    )
    rows = (
        f'<text x="{place.x:.1f}" y="{place.y + 3.6:.1f}">{xml(name)}</text>'
        if not detail
        else f'<text x="{place.x:.1f}" y="{place.y - 2.6:.1f}">{xml(name)}</text>'
        f'<text class="d" x="{place.x:.1f}" y="{place.y + 10.4:.1f}">{xml(detail)}</text>'
    )
    return (
        f'<g>{stacked}<rect class="{classes}" x="{x:.1f}" y="{y:.1f}" width="{place.width:.1f}" '
        f'height="{place.height:.1f}" rx="{1.5 if box.edge else 5}"/>{rows}<title>{xml(box.hover)}</title></g>'
    )


def _legend(view: View, language: str) -> tuple[str, float]:
    """The legend's elements and its width."""
    parts, x = [], 0.0
    for kind, words in legend_words(view, language):
        if kind in ("saved", "crossing"):
            parts.append(f'<path class="w w-{kind}" d="M{x:.1f} 8L{x + 18:.1f} 8"/>')
            x += 23
        else:
            parts.append(f'<rect class="b b-{kind}" x="{x:.1f}" y="2" width="12" height="12" rx="3"/>')
            x += 17
        parts.append(f'<text class="l" x="{x:.1f}" y="12">{xml(words)}</text>')
        x += wide(words) * 6.6 + 14
    if view.folded:
        words = render(message("plain.picture_folded", nodes=view.nodes, boxes=len(view.boxes)), language)
        parts.append(f'<text class="l" x="{x:.1f}" y="12">{xml(words)}</text>')
        x += wide(words) * 6.6
    return "".join(parts), x


def _style() -> str:
    return (
        f"text{{font:11px {MONO};text-anchor:middle}}.d{{font-size:9.5px}}.l{{font:12px {UI};text-anchor:start}}"
        ".w{fill:none;stroke-width:1}.w-saved{stroke-width:2.6}.w-crossing,.w-recomputed{stroke-dasharray:4 3}"
        ".b{stroke-width:1.1}.b-recomputed{stroke-dasharray:4 2.5}.edge{stroke-opacity:.55}.under{opacity:.5}"
        ".kept{stroke-width:2.4;stroke-opacity:1}"
        + _colours(LIGHT)
        + "@media(prefers-color-scheme:dark){"
        + _colours(DARK)
        + "}"
    )


def _colours(palette: dict[str, tuple[str, str]]) -> str:
    ink, panel = palette["ink"]
    rules = [f"text{{fill:{ink}}}.d,.l{{fill:{palette['dim'][0]}}}.ground{{fill:{panel}}}"]
    for kind in LEGEND:
        line, ground = palette[kind]
        rules.append(f".w-{kind}{{stroke:{line}}}.f-{kind}{{fill:{line}}}.b-{kind}{{stroke:{line};fill:{ground}}}")
    return "".join(rules) + f".kept{{stroke:{palette['saved'][0]}}}"
