"""The web application: the API, the pages, the static files. Never imports torch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException

from server import assets, errors
from server.access import Access, Pace
from server.api import artifacts, compare, events, examples, exports, health, kernels, pictures, plain, runs, traces
from server.context import Context
from server.engine import Queue, migrate
from server.examples import import_recordings
from server.guard import Guard
from server.pages import docs, shell
from server.settings import Settings
from server.store.artifacts import Artifacts
from server.store.executors import Executors
from server.store.feed import Feeds
from server.store.runs import Runs
from server.versions import versions


def create_app(settings: Settings) -> FastAPI:
    """The application over a data folder and a database, which are created where they are missing."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        context = await asyncio.to_thread(_open, settings)
        app.state.context = context
        yield
        await asyncio.to_thread(_close, context)

    app = FastAPI(
        title="aotscope",
        version=versions()["aotscope"],
        description="Submit a snippet, follow its events, fetch what each stage of torch.compile made.",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        responses={
            401: {"model": errors.ErrorBody, "description": "The server asks for a token."},
            403: {"model": errors.ErrorBody, "description": "Another site's request, or another host's name."},
            413: {"model": errors.ErrorBody, "description": "The request is too large."},
            422: {"model": errors.ErrorBody, "description": "The request is not valid."},
        },
    )
    if settings.token:
        app.add_middleware(Access, token=settings.token)
    app.add_middleware(Guard, body_bytes=settings.body_bytes)
    app.add_exception_handler(errors.ApiError, errors.on_api_error)
    app.add_exception_handler(RequestValidationError, errors.on_invalid)
    app.add_exception_handler(HTTPException, errors.on_http)
    app.add_exception_handler(Exception, errors.on_fault)
    for module in (runs, kernels, events, artifacts, pictures, exports, compare, examples, health, plain, traces):
        app.include_router(module.router)
    app.add_route("/static/{name}", assets.serve, include_in_schema=False)
    _add_pages(app)
    return app


def _open(settings: Settings) -> Context:
    migrate(settings.url)
    store = Runs(settings.url)
    context = Context(
        settings=settings,
        runs=store,
        artifacts=Artifacts(settings.folder / "artifacts"),
        feeds=Feeds(store, settings.follow_seconds),
        queue=Queue(store, settings.queue),
        executors=Executors(store.engine, settings.dead_seconds),
        pace=Pace(settings.runs_per_minute),
    )
    import_recordings(store, context.artifacts)
    return context


def _close(context: Context) -> None:
    context.queue.close()
    context.runs.close()


def _add_pages(app: FastAPI) -> None:
    @app.get("/", response_class=HTMLResponse, include_in_schema=False)
    def new_run() -> str:
        return shell("page", "", "aotscope")

    @app.get("/r/{id}", response_class=HTMLResponse, include_in_schema=False)
    def permalink(id: str, request: Request) -> HTMLResponse:
        return _of_run(request, "page", id)

    @app.get("/embed/{id}", response_class=HTMLResponse, include_in_schema=False)
    def embedded(id: str, request: Request) -> HTMLResponse:
        return _of_run(request, "embed", id)

    @app.get("/compare/{a}/{b}", response_class=HTMLResponse, include_in_schema=False)
    def comparison(a: str, b: str, request: Request) -> HTMLResponse:
        context: Context = request.app.state.context
        known = context.runs.state(a) and context.runs.state(b)
        return HTMLResponse(shell("compare", "", f"aotscope {a} {b}"), 200 if known else 404)

    @app.get("/api/docs", response_class=HTMLResponse, include_in_schema=False)
    def documentation() -> str:
        return docs(app.openapi())


def _of_run(request: Request, view: str, id: str) -> HTMLResponse:
    """The shell for a run; the front end says it when there is no such run."""
    context: Context = request.app.state.context
    status = 200 if context.runs.state(id) else 404
    return HTMLResponse(shell(view, id, f"aotscope {id}"), status)
