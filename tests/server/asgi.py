"""The application asked in this process, without a socket and without a worker."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from server.app import create_app
from server.context import Context
from server.settings import load


class Client:
    """GET and POST, one at a time. No cookie is kept; `context` is the application's own."""

    def __init__(self, loop: asyncio.AbstractEventLoop, client: httpx.AsyncClient, context: Context) -> None:
        self._loop = loop
        self._client = client
        self.context = context

    def get(self, path: str, headers: dict[str, str] | None = None) -> httpx.Response:
        self._client.cookies.clear()
        return self._loop.run_until_complete(self._client.get(path, headers=headers))

    def post(self, path: str, json: object) -> httpx.Response:
        return self._loop.run_until_complete(self._client.post(path, json=json))


@contextmanager
def serving(data: Path, **settings: Any) -> Iterator[Client]:
    app = create_app(load({}, data=str(data), **settings))
    loop = asyncio.new_event_loop()
    lifespan = app.router.lifespan_context(app)
    loop.run_until_complete(lifespan.__aenter__())
    client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:8000")
    try:
        yield Client(loop, client, app.state.context)
    finally:
        loop.run_until_complete(client.aclose())
        loop.run_until_complete(lifespan.__aexit__(None, None, None))
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
