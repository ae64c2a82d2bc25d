"""How a child's end is put into one sentence."""

from __future__ import annotations

import signal

from compiler.text import Message, message
from server.sandbox.protocol import PhaseLimits, Verdict

_MIB = 1 << 20


def exit_cause(verdict: Verdict, limits: PhaseLimits) -> Message:
    """Why a child that did not say how its phase ended is gone."""
    match verdict.reason:
        case "wall":
            return message("server.limit_time", seconds=round(limits.wall_seconds, 1))
        case "memory":
            return message("server.limit_memory", mib=limits.memory_bytes // _MIB)
        case "processes":
            return message("server.limit_processes", limit=limits.processes)
        case "disk":
            return message("isolation.limit_disk", mib=limits.disk_bytes // _MIB, entries=limits.disk_entries)
        case "orphaned":
            return message("server.fork_server_died")
    if verdict.exit >= 0:
        return message("server.exited", code=verdict.exit)
    match -verdict.exit:
        case signal.SIGSEGV:
            return message("server.died_segv")
        case signal.SIGKILL:
            return message("server.died_kill")
        case signal.SIGABRT:
            return message("server.died_abort")
        case signal.SIGXCPU:
            return message("server.died_cpu", seconds=round(limits.wall_seconds, 1))
        case signal.SIGXFSZ:
            return message("server.died_file", mib=limits.file_bytes // _MIB)
    return message("server.died_signal", signal=_name(-verdict.exit))


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
