"""`GET /api/v1/runs/{id}/artifacts/{hash}`: one payload."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from compiler.text import message
from server.caching import FOR_EVER, tagged
from server.context import Shared
from server.errors import ApiError, ErrorBody

router = APIRouter(tags=["runs"])


@router.get(
    "/api/v1/runs/{id}/artifacts/{hash}",
    responses={
        200: {"description": "The payload, cacheable for ever.", "content": {"application/json": {"example": {}}}},
        304: {"description": "The client has it already."},
        404: {"model": ErrorBody},
    },
)
def artifact(
    id: str,
    hash: Annotated[str, Path(pattern="^[0-9a-f]{64}$", description="sha256, as events name it.")],
    request: Request,
    shared: Shared,
) -> Response:
    """A payload that one of the run's events names. Its model is that of its `format` field."""
    if not shared.runs.has_artifact(id, hash):
        shared.run(id)
        raise ApiError(404, message("server.artifact_absent", hash=hash))
    # Private: what a run shows is for who may ask, and no shared cache asks. Under gzip it is sent as it lies on the disk.
    return tagged(
        request,
        hash,
        f"private, {FOR_EVER}",
        "application/json",
        lambda: shared.artifacts.get(hash),
        shared.artifacts.path(hash).read_bytes,
    )
