"""`GET /api/v1/runs/{id}/events`: the event stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import StreamingResponse

from server.context import Context, Shared
from server.errors import ErrorBody

router = APIRouter(tags=["runs"])


@router.get(
    "/api/v1/runs/{id}/events",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "Server-sent events: `id` is the event's seq, `data` the event as one line of JSON.",
            "content": {
                "text/event-stream": {
                    "example": 'id: 1\ndata: {"v":1,"run":"9f…","seq":1,"t":0.0,"type":"run_started",…}\n\n'
                }
            },
        },
        204: {"description": "The run is over and everything has been read: do not connect again."},
        404: {"model": ErrorBody},
    },
)
async def events(
    id: str,
    shared: Shared,
    after: Annotated[int, Query(ge=0, le=2**31, description="Start after this seq.")] = 0,
    last_event_id: Annotated[str | None, Header(description="The same, as browsers send it; it wins.")] = None,
) -> Response:
    """All events of a run in order, without gaps, from the first (or after `Last-Event-ID`) to the terminal one, at which the
    stream ends. The bytes are the same live and replayed; silence is broken by comments."""
    run = await asyncio.to_thread(shared.run, id)
    seen = (
        int(last_event_id)
        if last_event_id is not None and last_event_id.isascii() and last_event_id.isdigit()
        else after
    )
    if run.over and seen >= run.last_seq:
        return Response(status_code=204)
    return StreamingResponse(
        _stream(shared, id, seen),
        media_type="text/event-stream",
        headers={"cache-control": "no-store", "x-accel-buffering": "no"},
    )


async def _stream(shared: Context, run: str, after: int) -> AsyncIterator[bytes]:
    # Sent at once, so that a client knows that it is connected to a run that still waits.
    yield b": connected\n\n"
    async for batch in shared.feeds.follow(run, after, shared.settings.keep_alive_seconds):
        if not batch:
            yield b": waiting\n\n"
        else:
            yield "".join(f"id: {seq}\ndata: {body}\n\n" for seq, body in batch).encode()
