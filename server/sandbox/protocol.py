"""What the supervisor and the fork server say to each other."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from compiler.events import Captured, Engine
from compiler.targets import TargetId
from compiler.text import Frozen, Message
from server.sandbox.isolation import Mode
from server.sandbox.outer import Outer

Phase = Literal["capture", "native", "kernel"]


class PhaseLimits(Frozen):
    wall_seconds: float
    memory_bytes: int
    processes: int
    file_bytes: int
    disk_bytes: int
    disk_entries: int


class PhaseRequest(Frozen):
    """One phase to run. A byte is sent for it, and five descriptors, in this order: a file with this as one line of JSON and
    the run's request as another, the pipe of the events, stdout, stderr, and the warden's control socket. `path` and `root`
    are the user's own file and its folder (command line); without them the child lives in its scratch. `captured` is what
    the capture phase found, for the native one."""

    phase: Phase
    path: str | None = None
    root: str | None = None
    captured: Captured | None = None
    limits: PhaseLimits


class Configuration(Frozen):
    """How a fork server starts. `target` is the one that all its children compile for. `spawn` leaves torch to a fresh
    interpreter for each phase, where a fork is not safe. `outer` is what it was put into, `outer_reason` why into nothing.
    `headers` is a folder of precompiled headers, or empty."""

    child: str
    target: TargetId = "cpu"
    warm: bool
    spawn: bool = False
    scratch: str
    isolation: str = "none"
    outer: Outer = Outer.NONE
    outer_reason: str = ""
    headers: str = ""


class Isolation(Frozen):
    """What is in force around each run (`mode`) and around the fork server (`outer`, as that saw it from inside; where there
    is nothing, `outer_reason` says why), and what came of each mode's trial: empty when it works, else the step that failed
    and why."""

    mode: Mode
    landlock_abi: int = 0
    kernel: str = ""
    namespaces: str = ""
    landlock: str = ""
    outer: Outer = Outer.NONE
    outer_reason: str = ""


class Ready(Frozen):
    """The fork server's first message. `threads` must be 1, else no fork of it is safe. `cause` says in a sentence why there are
    no children, where it has one; `error` is the exception's own text."""

    engine: Engine | None = None
    isolation: Isolation | None = None
    threads: int = 1
    seconds: float = Field(ge=0, description="Spent on imports and warm-up.")
    error: str = ""
    cause: Message | None = None


class Verdict(Frozen):
    """The warden's last message. `exit` is the child's exit code, or minus the signal that ended it. `reason` says why the warden
    ended it, null when it ended by itself."""

    reason: Literal["wall", "memory", "processes", "disk", "stopped", "orphaned"] | None = None
    exit: int
    peak_bytes: int = 0
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    strays: int = 0
    clean: bool = True
