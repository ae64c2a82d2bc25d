"""`aotscope serve`: the web server on loopback, and its worker."""

from __future__ import annotations

import signal
import socket

import uvicorn

from server.app import create_app
from server.engine import migrate
from server.settings import Settings
from server.worker.process import WorkerProcess


def serve(settings: Settings, listener: socket.socket, *, worker: bool) -> None:
    """Serve until SIGINT or SIGTERM."""
    # Before the worker starts: two processes must not make a new database at the same moment.
    migrate(settings.url)
    process = WorkerProcess(settings) if worker else None
    config = uvicorn.Config(
        create_app(settings),
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=1,
        server_header=False,
        proxy_headers=False,
    )
    # uvicorn stops at these and then raises them once more: they must not end us before the worker has been stopped.
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda _number, _frame: None)
    if process is not None:
        process.start()
    try:
        uvicorn.Server(config).run(sockets=[listener])
    finally:
        listener.close()
        if process is not None:
            process.stop()
