"""Graphviz: the graph as DOT text for the user, and dot's layout for our own drawing."""

from __future__ import annotations

import shutil
import subprocess
from html import escape as html

import graphviz

from compiler.text import message, render
from server.pictures.draw import LEGEND, LIGHT, clean, group_words, legend_words
from server.pictures.layout import Edges, Layout, Line, Place, Sizes
from server.pictures.view import View

_SECONDS = 5.0
_POINTS = 72.0
# Limits without which network simplex takes minutes for some graphs of a few hundred nodes.
_LIMITS = {"splines": "line", "nslimit": "0.5", "nslimit1": "0.5", "mclimit": "0.2"}
_LOOK = {
    "rankdir": "TB",
    "nodesep": "0.2",
    "ranksep": "0.35",
    "labelloc": "t",
    "fontname": "sans-serif",
    "fontsize": "11",
}


def dot_installed() -> bool:
    return shutil.which("dot") is not None


def dot_text(view: View, language: str = "en") -> str:
    """The view in Graphviz's language, with the page's colours and a legend."""
    digraph = graphviz.Digraph(
        name=graphviz.nohtml(_quoted(view.id)),
        graph_attr=_LIMITS | _LOOK | {"label": _legend(view, language)},
        node_attr={"shape": "box", "style": "filled,rounded", "fontname": "monospace", "fontsize": "10"},
        edge_attr={"arrowsize": "0.5"},
    )
    for i, box in enumerate(view.boxes):
        ink, ground = LIGHT[box.kind]
        lines = [box.name, group_words(box, language) if box.count > 1 else box.detail]
        style = "filled,rounded,dashed" if box.kind == "recomputed" else "filled" if box.edge else "filled,rounded"
        digraph.node(
            f"n{i}",
            graphviz.nohtml("\\n".join(_quoted(line) for line in lines if line)),
            color=ink,
            fillcolor=ground,
            fontcolor=LIGHT["ink"][0],
            style=style,
            penwidth="2" if box.saved else "1",
        )
    for wire in view.wires:
        look = {"color": LIGHT[wire.kind][0], "penwidth": "2.4" if wire.kind == "saved" else "0.9"}
        if wire.kind in ("recomputed", "crossing"):
            look["style"] = "dashed"
        digraph.edge(f"n{wire.tail}", f"n{wire.head}", **look)
    return str(digraph.source)


def _quoted(text: str) -> str:
    """For inside of a DOT string, where the package escapes quotes: backslashes are doubled, `<…>` is no HTML, and there is no
    line break, which a backslash before it would swallow."""
    return str(graphviz.escape("".join(char if char >= " " else " " for char in clean(text))))


def _legend(view: View, language: str) -> str:
    cells = "".join(
        f'<td bgcolor="{LIGHT[kind][1]}"><font color="{LIGHT[kind][0]}">{html(words)}</font></td>'
        for kind, words in legend_words(view, language)
        if kind in LEGEND
    )
    note = html(render(message("plain.picture_folded", nodes=view.nodes, boxes=len(view.boxes)), language))
    folded = f"<td>{note}</td>" if view.folded else ""
    return f'<<table border="0" cellborder="0" cellspacing="6"><tr>{cells}{folded}</tr></table>>'


def dot_layout(sizes: Sizes, edges: Edges) -> Layout | None:
    """dot's layout of boxes of these sizes; None where dot is missing or does not come to an end in 5 s. It is told numbers
    only, never a name."""
    if not sizes or not dot_installed():
        return None
    digraph = graphviz.Digraph(
        graph_attr=_LIMITS | {"nodesep": "0.2", "ranksep": "0.42"},
        node_attr={"shape": "box", "fixedsize": "true", "label": ""},
        # With an arrow, its line would end before the box.
        edge_attr={"dir": "none"},
    )
    for i, (width, height) in enumerate(sizes):
        digraph.node(f"n{i}", width=f"{width / _POINTS:.4f}", height=f"{height / _POINTS:.4f}")
    for tail, head in edges:
        digraph.edge(f"n{tail}", f"n{head}")
    try:
        done = subprocess.run(
            ["dot", "-Tplain"],
            input=digraph.source.encode(),
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (subprocess.TimeoutExpired, OSError):
        return None
    return _parse(done.stdout.decode(), sizes, edges) if done.returncode == 0 else None


def _parse(plain: str, sizes: Sizes, edges: Edges) -> Layout | None:
    """The `plain` format: `graph scale width height`, `node name x y …`, `edge tail head n x1 y1 … xn yn …`, in inches, y up."""
    width = height = 0.0
    boxes: dict[str, Place] = {}
    lines: dict[tuple[str, str], Line] = {}
    for row in plain.splitlines():
        word = row.split()
        match word[0]:
            case "graph":
                width, height = float(word[2]) * _POINTS, float(word[3]) * _POINTS
            case "node":
                size = sizes[int(word[1][1:])]
                boxes[word[1]] = Place(float(word[2]) * _POINTS, height - float(word[3]) * _POINTS, *size)
            case "edge":
                last = 4 + 2 * (int(word[3]) - 1)
                x1, y1, x2, y2 = (float(word[at]) * _POINTS for at in (4, 5, last, last + 1))
                lines[word[1], word[2]] = Line(x1, height - y1, x2, height - y2)
    names = [(f"n{tail}", f"n{head}") for tail, head in edges]
    if len(boxes) != len(sizes) or any(name not in lines for name in names):
        return None
    return Layout(width, height, tuple(boxes[f"n{i}"] for i in range(len(sizes))), tuple(lines[name] for name in names))
