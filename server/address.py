"""Where the server may listen: on loopback. Imports nothing heavy, so that a wrong address or a taken port is told at once."""

from __future__ import annotations

import errno
import ipaddress
import socket

from compiler.errors import AotscopeError
from compiler.text import message
from server.settings import Settings


def is_loopback(host: str) -> bool:
    """Whether a host name or address, without port, can only mean this machine."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class CannotServeError(AotscopeError):
    """The address is refused or taken."""


def open_socket(settings: Settings) -> socket.socket:
    """A listening socket. Raises CannotServeError."""
    host, port = settings.host, settings.port
    if settings.behind != "compose" and not is_loopback(host):
        raise CannotServeError(message("server.not_loopback", host=host))
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol by name: asyncio turns Nagle's delay off only where it sees TCP, and each answer would wait 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
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
