"""A runner's socket in a folder that is its user's alone: who may listen there, and who may speak."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import struct
from pathlib import Path

_CREDENTIALS = struct.Struct("3i")
_BACKLOG = 16


class StrangerError(OSError):
    """Somebody else's folder, or somebody else at the other end."""


def listen(path: str) -> socket.socket:
    """A listening socket at `path`, in place of one that a dead runner left. Raises StrangerError when others may enter the
    folder."""
    folder = Path(path).parent
    _check_folder(folder)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(path)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


def accept(listener: socket.socket) -> socket.socket | None:
    """The next caller, None when it is another user or has gone already."""
    try:
        caller, _address = listener.accept()
    except OSError:
        return None
    if _user_of(caller) != os.geteuid():
        caller.close()
        return None
    return caller


def connect(path: str) -> socket.socket:
    """A connection to the runner at `path`. Raises OSError when none listens, StrangerError when it is another user's."""
    _check_folder(Path(path).parent)
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(path)
        if _user_of(connection) != os.geteuid():
            raise StrangerError(f"{path} belongs to another user")
    except OSError:
        connection.close()
        raise
    return connection


def _check_folder(folder: Path) -> None:
    found = folder.stat()
    if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise StrangerError(f"{folder} must belong to user {os.geteuid()}, and nobody else may enter it")


def _user_of(connection: socket.socket) -> int:
    """The user at the other end, as the kernel says."""
    said = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(said)[1])
