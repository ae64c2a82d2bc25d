"""Whom the children of root's fork servers become: users that no other fork server of this machine gives away."""

from __future__ import annotations

import errno
import socket

from server.sandbox.isolation.probe import FIRST_USER

_BLOCK = 500
# Below 65,534 (nobody), and within the 65,536 that a container usually has.
_BLOCKS = 11


def lease() -> tuple[socket.socket, range]:
    """A block of users, for as long as the socket (or a fork's copy of it) is open. Raises OSError when all are taken.

    The kernel keeps the books: an abstract name can be bound once in a network namespace, and is free when its last holder has
    ended, however it ended."""
    holder = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    for block in range(_BLOCKS):
        try:
            holder.bind(f"\0aotscope-users-{block}")
        except OSError as fault:
            if fault.errno != errno.EADDRINUSE:
                holder.close()
                raise
            continue
        first = FIRST_USER + block * _BLOCK
        return holder, range(first, first + _BLOCK)
    holder.close()
    raise OSError(errno.EUSERS, f"{_BLOCKS} fork servers of root's are at work on this machine already")
