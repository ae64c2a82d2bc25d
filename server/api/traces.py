"""`GET /api/v1/runs/{id}/trace/{phase}`: torch's structured trace as a log file."""

from __future__ import annotations

from typing import Annotated, Literal

import orjson
from fastapi import APIRouter, Path, Response

from compiler.events import load_event
from compiler.text import message
from server.context import Shared
from server.errors import ApiError, ErrorBody
from server.traces import file_name, trace_hashes

router = APIRouter(tags=["runs"])


@router.get(
    "/api/v1/runs/{id}/trace/{phase}",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}, 404: {"model": ErrorBody}},
)
def trace(
    id: str,
    phase: Annotated[Literal["capture", "native"], Path(description="Which of the run's two phases.")],
    shared: Shared,
) -> Response:
    """The log that `TORCH_TRACE` would have written, for `tlparse`; only of a run with the option `trace`."""
    shared.run(id)
    events = (load_event(orjson.loads(text)) for _seq, text in shared.runs.events(id))
    digest = trace_hashes(events).get(phase)
    if digest is None:
        raise ApiError(404, message("server.no_trace", phase=phase))
    text = orjson.loads(shared.artifacts.get(digest))["text"]
    headers = {"content-disposition": f'attachment; filename="{file_name(phase)}"'}
    return Response(text, media_type="text/plain; charset=utf-8", headers=headers)
