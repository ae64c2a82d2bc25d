"""`aotscope serve`: the web server on loopback, and its worker."""

from __future__ import annotations

import errno
import socket

import uvicorn

from compiler.errors import AotscopeError
from compiler.text import message
from server.app import create_app
from server.engine import migrate
from server.guard import is_loopback
from server.settings import Settings
from server.worker.process import WorkerProcess


class CannotServeError(AotscopeError):
    """The address is refused or taken."""


def open_socket(settings: Settings) -> socket.socket:
    """A listening socket. Raises CannotServeError."""
    host, port = settings.host, settings.port
    if settings.behind != "compose" and not is_loopback(host):
        raise CannotServeError(message("server.not_loopback", host=host))
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host.strip("[]"), port))
        listener.listen(2048)
    except OSError as fault:
        listener.close()
        if fault.errno == errno.EADDRINUSE:
            raise CannotServeError(message("server.port_in_use", host=host, port=port)) from fault
        raise CannotServeError(message("server.port_refused", host=host, port=port, error=str(fault))) from fault
    return listener


def serve(settings: Settings, listener: socket.socket, *, worker: bool) -> None:
    """Serve until SIGINT or SIGTERM."""
    # Before the worker starts: two processes must not make a new database at the same moment.
    migrate(settings.url)
    process = WorkerProcess(settings) if worker else None
    config = uvicorn.Config(
        create_app(settings), log_level="warning", access_log=False, timeout_graceful_shutdown=1, server_header=False
    )
    if process is not None:
        process.start()
    try:
        uvicorn.Server(config).run(sockets=[listener])
    finally:
        listener.close()
        if process is not None:
            process.stop()
