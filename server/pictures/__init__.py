"""Pictures of graphs without a browser: DOT text and SVG. Never imports torch."""

from __future__ import annotations

from functools import lru_cache
from threading import BoundedSemaphore

from compiler.ir.encode import decode
from compiler.ir.graph import Graph, GraphPayload
from server.pictures.dot import dot_layout, dot_text
from server.pictures.draw import draw, sizes
from server.pictures.halves import join
from server.pictures.layered import layered
from server.pictures.view import View, fold

# A page asks for all of its pictures at once; more than this many layouts at a time would only slow each other.
_AT_ONCE = BoundedSemaphore(2)


def view_of(payload: bytes, backward: bytes | None = None) -> View:
    """The view of a `graph/1`; with `backward`, of a forward and a backward graph as one."""
    graph = _graph(payload)
    return fold(graph if backward is None else join(graph, _graph(backward)))


def svg(view: View, language: str) -> str:
    """The picture, laid out by dot, or, where it is missing or takes too long, by our own layout."""
    boxes = sizes(view, language)
    edges = tuple((wire.tail, wire.head) for wire in view.wires)
    with _AT_ONCE:
        layout = dot_layout(boxes, edges) or layered(boxes, edges)
    return draw(view, layout, language)


@lru_cache(maxsize=8)
def _graph(payload: bytes) -> Graph:
    return decode(GraphPayload.model_validate_json(payload))


__all__ = ["dot_text", "svg", "view_of"]
