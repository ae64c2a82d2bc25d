"""One export by its name, as bytes for a file."""

from __future__ import annotations

from typing import Literal

import orjson
from pydantic_core import to_json

from compiler.ir.encode import decode
from compiler.ir.graph import GraphPayload
from compiler.text import message
from server import pictures
from server.exports import Document, payloads
from server.exports.issue import issue
from server.exports.script import CannotRunError, script
from server.exports.snapshot import series as series_of
from server.exports.snapshot import snapshot
from server.exports.trace import trace
from server.local import UnusableError
from server.versions import versions

Form = Literal["trace", "memory", "script", "issue", "svg", "dot"]


def make(document: Document, form: Form, *, graph: str = "", series: str = "") -> bytes:
    """The file's bytes. `graph` is `compile/stage/graph`, `series` a timeline's name. Raises UnusableError."""
    try:
        match form:
            case "trace":
                return orjson.dumps(trace(document))
            case "issue":
                return issue(document).encode()
            case "memory":
                return _memory(document, series)
            case "script":
                payload = GraphPayload.model_validate(_graph(document, graph))
                torch = str((document["run"]["engine"] or {}).get("torch", "?"))
                return script(decode(payload), torch, versions()["aotscope"]).encode()
            case "svg" | "dot":
                view = pictures.view_of(to_json(_graph(document, graph)))
                return (pictures.svg(view, "en") if form == "svg" else pictures.dot_text(view, "en")).encode()
    except CannotRunError as fault:
        raise UnusableError(fault.cause) from None
    except (LookupError, TypeError, ValueError, ArithmeticError):
        raise UnusableError(message("server.artifact_contradicts")) from None


def _memory(document: Document, series: str) -> bytes:
    known = series_of(document)
    chosen = series or next(iter(known), "")
    if chosen not in known:
        raise UnusableError(message("server.export_no_timeline", name=series))
    return snapshot(document, chosen)


def _graph(document: Document, wanted: str) -> Document:
    known = {made[2]["id"]: made[2] for made in payloads(document, "graph") if made[1]["name"] != "step"}
    if not wanted and len(known) == 1:
        return next(iter(known.values()))
    if wanted not in known:
        raise UnusableError(message("server.export_which_graph", known=", ".join(known)))
    return known[wanted]
