"""`/api/v1/runs`: submit a run, ask for it, cancel it, take it away as one document or one page."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Query, Request, Response

from compiler.events import RunRequest
from compiler.targets import BY_ID, TargetId
from compiler.text import Frozen, message, render
from server.access import client_of
from server.context import Context, Shared
from server.document import document, stored
from server.engine import QueueFullError
from server.errors import ApiError, ErrorBody
from server.pages import NotBuiltError, require_front_end
from server.report import report
from server.store.runs import Run, request_key
from server.targets import refused, served_by
from server.versions import versions

router = APIRouter(tags=["runs"])

_EXAMPLE = {
    "source": "import torch\n\nmodel = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU())\n"
    "inputs = (torch.randn(4, 8),)\n",
    "options": {"target": "cpu", "mode": "auto", "native": True, "until": None},
}


class Links(Frozen):
    """Paths of a run's resources."""

    self: str
    events: str
    document: str
    report: str
    page: str
    embed: str


class Submitted(Frozen):
    id: str
    reused: bool = False
    links: Links


class RunView(Frozen):
    """A run as it stands. `state` is queued, running, or the type of its terminal event; times are seconds since 1970."""

    id: str
    state: str
    created: float
    started: float | None
    ended: float | None
    events: int
    request: RunRequest
    request_key: str
    engine: dict[str, Any] | None
    summary: dict[str, Any] | None
    terminal: dict[str, Any] | None
    links: Links


def links(run: str) -> Links:
    base = f"/api/v1/runs/{run}"
    return Links(
        self=base,
        events=f"{base}/events",
        document=f"{base}/document",
        report=f"{base}/report.html",
        page=f"/r/{run}",
        embed=f"/embed/{run}",
    )


def view(run: Run) -> RunView:
    return RunView(
        id=run.id,
        state=run.state,
        created=run.created,
        started=run.started,
        ended=run.ended,
        events=run.last_seq,
        request=run.request,
        request_key=run.request_key,
        engine=run.engine,
        summary=run.summary,
        terminal=run.terminal,
        links=links(run.id),
    )


def in_pace(request: Request, shared: Shared) -> None:
    """Before the body is looked at: what is refused for being wrong counts too. Raises ApiError 429."""
    client = client_of(request.scope, request.headers, shared.settings.proxies)
    after = shared.pace.take(client)
    if after is not None:
        cause = message("server.too_fast", limit=shared.settings.runs_per_minute, seconds=after)
        raise ApiError(429, cause, {"retry-after": str(after)})


def _require_served(shared: Context, target: TargetId) -> None:
    """Said at once, where it is known: workers live, and none of them serves the target. Raises ApiError 409."""
    workers = [worker for worker in shared.executors.living() if "targets" in worker]
    if workers and target not in served_by(workers):
        reason = refused().get(target)
        why = "" if reason is None else render(reason)
        raise ApiError(409, message("server.target_not_served", target=BY_ID[target].name, why=why))


@router.post(
    "/api/v1/runs",
    dependencies=[Depends(in_pace)],
    status_code=202,
    responses={
        200: {"model": Submitted, "description": "`reuse`: the finished run of the same request."},
        409: {"model": ErrorBody, "description": "No worker serves the target, or a question was asked here."},
        413: {"model": ErrorBody},
        422: {"model": ErrorBody},
        429: {
            "model": ErrorBody,
            "description": "Too many runs wait, or this client asks for too many; see `Retry-After`.",
        },
    },
)
def submit(
    request: Annotated[RunRequest, Body(examples=[_EXAMPLE])],
    shared: Shared,
    response: Response,
    reuse: Annotated[
        bool, Query(description="Answer with a finished run of the same snippet, options and engine, if there is one.")
    ] = False,
) -> Submitted:
    """Queue a snippet. Its events can be read at once."""
    if request.question is not None:
        raise ApiError(409, message("server.question_here"))
    return enqueue(request, shared, response, reuse)


def enqueue(request: RunRequest, shared: Context, response: Response, reuse: bool) -> Submitted:
    """The finished run of the same request (status 200), or a new one in the queue. Raises ApiError 409 or 429."""
    _require_served(shared, request.options.target)
    key = request_key(request, versions())
    if reuse and (found := shared.runs.finished_with_key(key)):
        response.status_code = 200
        return Submitted(id=found, reused=True, links=links(found))
    try:
        run = shared.queue.submit(request, key)
    except QueueFullError:
        raise ApiError(429, message("server.queue_full", limit=shared.settings.queue), {"retry-after": "10"}) from None
    return Submitted(id=run, links=links(run))


@router.get("/api/v1/runs/{id}", responses={404: {"model": ErrorBody}})
def read(id: str, shared: Shared) -> RunView:
    """A run as it stands."""
    return view(shared.run(id))


@router.delete("/api/v1/runs/{id}", status_code=202, responses={404: {"model": ErrorBody}})
def cancel(id: str, shared: Shared) -> RunView:
    """Cancel a run: a waiting one ends at once, a running one when its processes are gone. One that is over stays as it is."""
    shared.run(id)
    shared.queue.cancel(id)
    return view(shared.run(id))


@router.get("/api/v1/runs/{id}/document", responses={404: {"model": ErrorBody}, 409: {"model": ErrorBody}})
def whole(id: str, shared: Shared) -> dict[str, Any]:
    """A run that is over, as one document with every artifact in place: what `aotscope run --json -` prints."""
    return document(stored(shared.runs, shared.artifacts, shared.over(id)))


@router.get(
    "/api/v1/runs/{id}/report.html",
    response_class=Response,
    responses={200: {"content": {"text/html": {}}}, 404: {"model": ErrorBody}, 409: {"model": ErrorBody}},
)
def one_file(id: str, shared: Shared) -> Response:
    """A run that is over, as one HTML file that needs no server."""
    run = shared.over(id)
    try:
        require_front_end()
    except NotBuiltError as fault:
        raise ApiError(503, fault.cause) from None
    text = report(stored(shared.runs, shared.artifacts, run))
    # A download: it holds its script inline, which this origin's policy forbids.
    headers = {"content-disposition": f'attachment; filename="aotscope-{id}.html"'}
    return Response(text, media_type="text/html; charset=utf-8", headers=headers)
