"""`GET /api/v1/runs/{id}/artifacts/{hash}/picture.svg` and `…/graph.dot`: a graph as a picture."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Path, Query, Request, Response

from compiler.text import message
from server import pictures
from server.context import Context, Shared
from server.errors import ApiError, ErrorBody
from server.pictures.dot import dot_installed
from server.versions import versions

router = APIRouter(tags=["runs"])

Hash = Annotated[str, Path(pattern="^[0-9a-f]{64}$", description="sha256 of an artifact of the kind graph.")]
Other = Annotated[
    str | None,
    Query(pattern="^[0-9a-f]{64}$", description="The backward graph's hash, for one picture of both halves."),
]
Language = Annotated[Literal["en", "zh"], Query(description="Language of the legend.")]

_REFUSALS: dict[int | str, dict[str, Any]] = {
    304: {"description": "The client has it already."},
    404: {"model": ErrorBody},
    409: {"model": ErrorBody, "description": "The artifact is not a graph."},
}


@router.get(
    "/api/v1/runs/{id}/artifacts/{hash}/picture.svg",
    response_class=Response,
    responses=_REFUSALS | {200: {"content": {"image/svg+xml": {}}}},
)
def picture(
    id: str, hash: Hash, request: Request, shared: Shared, backward: Other = None, lang: Language = "en"
) -> Response:
    """A graph as SVG; one of more than 200 nodes is folded by module."""
    return _answer(request, shared, id, hash, backward, lang, "image/svg+xml")


@router.get(
    "/api/v1/runs/{id}/artifacts/{hash}/graph.dot",
    response_class=Response,
    responses=_REFUSALS | {200: {"content": {"text/vnd.graphviz": {}}}},
)
def dot(
    id: str, hash: Hash, request: Request, shared: Shared, backward: Other = None, lang: Language = "en"
) -> Response:
    """The same picture in Graphviz's language."""
    return _answer(request, shared, id, hash, backward, lang, "text/vnd.graphviz")


def _answer(
    request: Request, shared: Context, id: str, hash: str, backward: str | None, lang: str, kind: str
) -> Response:
    known = [digest for digest in (hash, backward) if digest is not None]
    for digest in known:
        if not shared.runs.has_artifact(id, digest):
            shared.run(id)
            raise ApiError(404, message("server.artifact_absent", hash=digest))
    # What it is made from: the graphs, this version, and who lays it out.
    made_from = "|".join([*known, lang, kind, versions()["aotscope"], str(dot_installed())])
    headers = {
        "etag": f'"{hashlib.sha256(made_from.encode()).hexdigest()[:32]}"',
        "cache-control": "public, max-age=3600",
    }
    if headers["etag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    payloads = [shared.artifacts.get(digest) for digest in known]
    for digest, payload in zip(known, payloads, strict=True):
        kind_of = str(orjson.loads(payload)["format"]).split("/")[0]
        if kind_of != "graph":
            raise ApiError(409, message("plain.picture_not_graph", hash=digest, kind=kind_of))
    try:
        text = _made(payloads[0], payloads[1] if backward else None, lang, kind, dot_installed())
    except (LookupError, ValueError):
        # A graph that a run has forged: two nodes of one name, or one that reads what comes after it.
        raise ApiError(409, message("server.artifact_contradicts")) from None
    return Response(text, media_type=f"{kind}; charset=utf-8", headers=headers)


@lru_cache(maxsize=64)
def _made(payload: bytes, backward: bytes | None, lang: str, kind: str, _with_dot: bool) -> str:
    view = pictures.view_of(payload, backward)
    return pictures.svg(view, lang) if kind == "image/svg+xml" else pictures.dot_text(view, lang)
