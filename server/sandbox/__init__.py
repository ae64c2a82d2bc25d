"""How a snippet is run: a warmed fork server, a warden over each child, and the supervisor that listens to it.

    supervisor (worker, command line) --socket: request + fds--> fork server (torch imported, warmed, one thread)
        fork server --fork--> warden (one a phase: clock, memory, processes; ends the whole tree)
            warden --fork--> child (limits itself, then runs the snippet and says what happens on its pipe)

The limits are not isolation: a child reads and writes what its user can. `isolation()` says so to whoever asks.
"""

from __future__ import annotations

from compiler.text import Message, message


def isolation() -> Message:
    """What keeps a snippet from the rest of the machine, in one sentence."""
    return message("server.isolation_none")
