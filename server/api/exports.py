"""A run in the forms that other tools read: a trace, an allocator's snapshot, a script, the text of an issue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import orjson
from fastapi import APIRouter, Path, Query, Response

from compiler.ir.encode import decode
from compiler.ir.graph import GraphPayload
from compiler.text import message
from server.context import Context, Shared
from server.document import document, stored
from server.errors import ApiError, ErrorBody
from server.exports import Document, safe_name
from server.exports.issue import issue
from server.exports.script import CannotRunError, script
from server.exports.snapshot import series, snapshot
from server.exports.trace import trace
from server.versions import versions

router = APIRouter(tags=["runs"])
Made = TypeVar("Made")

_REFUSALS: dict[int | str, dict[str, Any]] = {404: {"model": ErrorBody}, 409: {"model": ErrorBody}}


@router.get(
    "/api/v1/runs/{id}/trace.json",
    response_class=Response,
    responses=_REFUSALS | {200: {"content": {"application/json": {}}}},
)
def as_trace(id: str, shared: Shared) -> Response:
    """Stages, passes, kernels and memory in Chrome's trace format, for Perfetto."""
    return _download(orjson.dumps(_whole(shared, id, trace)), "application/json", id, "trace.json")


@router.get(
    "/api/v1/runs/{id}/memory.pickle",
    response_class=Response,
    responses=_REFUSALS | {200: {"content": {"application/octet-stream": {}}}},
)
def as_snapshot(
    id: str,
    shared: Shared,
    name: Annotated[
        str | None, Query(max_length=100, description="The timeline: dry_run, plan, compiled, eager.")
    ] = None,
) -> Response:
    """A memory timeline as an allocator's snapshot, for pytorch.org/memory_viz and `torch.cuda._memory_viz`."""

    def made(whole: Document) -> bytes | None:
        known = series(whole)
        chosen = name or next(iter(known), "")
        return snapshot(whole, chosen) if chosen in known else None

    data = _whole(shared, id, made)
    if data is None:
        raise ApiError(404, message("server.export_no_timeline", name=name or ""))
    return _download(data, "application/octet-stream", id, f"{name or 'memory'}.pickle")


@router.get(
    "/api/v1/runs/{id}/issue.md",
    response_class=Response,
    responses=_REFUSALS | {200: {"content": {"text/markdown": {}}}},
)
def as_issue(id: str, shared: Shared) -> Response:
    """Versions, snippet, breaks, guards and findings as the text of a GitHub issue."""
    return _download(_whole(shared, id, issue).encode(), "text/markdown; charset=utf-8", id, "issue.md")


@router.get(
    "/api/v1/runs/{id}/artifacts/{hash}/graph.py",
    response_class=Response,
    responses=_REFUSALS | {200: {"content": {"text/x-python": {}}}},
)
def as_script(
    id: str,
    hash: Annotated[str, Path(pattern="^[0-9a-f]{64}$", description="sha256 of an artifact of the kind graph.")],
    shared: Shared,
) -> Response:
    """A graph as a Python file that runs on its own. 409 where the run's record does not hold all that this needs."""
    if not shared.runs.has_artifact(id, hash):
        shared.run(id)
        raise ApiError(404, message("server.artifact_absent", hash=hash))
    payload = orjson.loads(shared.artifacts.get(hash))
    kind = str(payload["format"]).split("/")[0]
    if kind != "graph":
        raise ApiError(409, message("plain.picture_not_graph", hash=hash, kind=kind))
    engine = shared.run(id).engine or {}
    try:
        graph = decode(GraphPayload.model_validate(payload))
        text = script(graph, str(engine.get("torch", "?")), versions()["aotscope"])
    except CannotRunError as fault:
        raise ApiError(409, fault.cause) from None
    except (LookupError, ValueError):
        raise ApiError(409, message("server.artifact_contradicts")) from None
    return _download(text.encode(), "text/x-python; charset=utf-8", id, f"{safe_name(graph.id)}.py")


def _whole(shared: Context, id: str, make: Callable[[Document], Made]) -> Made:
    run = shared.over(id)
    try:
        return make(document(stored(shared.runs, shared.artifacts, run)))
    except (LookupError, TypeError, ValueError, ArithmeticError):
        # What each payload says of itself was checked; what they say of each other, a run can forge.
        raise ApiError(409, message("server.artifact_contradicts")) from None


def _download(data: bytes, kind: str, id: str, name: str) -> Response:
    headers = {"content-disposition": f'attachment; filename="{safe_name("aotscope", id, name)}"'}
    return Response(data, media_type=kind, headers=headers)
