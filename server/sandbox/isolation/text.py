"""The isolation that is in force, in one sentence. (The rest of this package needs the standard library only.)"""

from __future__ import annotations

from compiler.text import Message, message
from server.sandbox.isolation.policy import Mode
from server.sandbox.outer import Outer


def sentence(mode: Mode, landlock_abi: int) -> Message:
    """What keeps a snippet from the rest of the machine. `landlock_abi`: 0 without Landlock."""
    match mode:
        case Mode.NAMESPACES if landlock_abi:
            return message("isolation.namespaces")
        case Mode.NAMESPACES:
            return message("isolation.namespaces_only")
        case Mode.LANDLOCK:
            return message("isolation.landlock", version=landlock_abi)
        case Mode.NONE:
            return message("isolation.none")


def outer_sentence(outer: Outer, reason: str) -> Message:
    """What stands around the process that runs are forked from."""
    match outer:
        case Outer.BUBBLEWRAP:
            return message("isolation.outer_bubblewrap")
        case Outer.CONTAINER:
            return message("isolation.outer_container")
        case Outer.NONE:
            return message("isolation.outer_none", reason=reason)


def refusal(wanted: str, step: str, reason: str) -> Message:
    """A mode was asked for that does not work here."""
    return message("isolation.impossible", mode=wanted, step=step, reason=reason)
