"""The process over one child: it watches clock, memory and processes from outside, and ends the whole tree."""

from __future__ import annotations

import os
import resource
import select
import signal
import socket
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NoReturn

from server.sandbox.isolation import Limits, Mode, Policy, disk, enclose, exit_code
from server.sandbox.limits import EVENTS_FD, confine
from server.sandbox.processes import adopt_orphans, anonymous_bytes, descendants, end_tree
from server.sandbox.protocol import PhaseRequest, Verdict

_LOOK_SECONDS = 0.1
_OPEN_FILES = 1024
Reason = Literal["wall", "memory", "processes", "disk", "stopped", "orphaned"]


@dataclass(frozen=True, slots=True)
class Walls:
    """How the fork server keeps its children apart. `user`: who a child becomes, for a fork server of root's. `gpu`: the
    device nodes that its children may open."""

    mode: Mode
    readable: tuple[str, ...]
    user: int | None
    gpu: tuple[str, ...] = ()


def _policy(request: PhaseRequest, walls: Walls, scratch: str) -> Policy:
    limits = request.limits
    return Policy(
        mode=walls.mode,
        scratch=scratch,
        readable=walls.readable,
        user=walls.user,
        gpu=walls.gpu,
        limits=Limits(
            memory_bytes=limits.memory_bytes,
            processes=limits.processes,
            file_bytes=limits.file_bytes,
            disk_bytes=limits.disk_bytes,
            disk_entries=limits.disk_entries,
            cpu_seconds=int(limits.wall_seconds) + 5,
            open_files=_OPEN_FILES,
        ),
        keep=(0, 1, 2, EVENTS_FD),
    )


def watch(
    request: PhaseRequest,
    walls: Walls,
    scratch_base: str,
    descriptors: tuple[int, int, int],
    control: socket.socket,
    run: Callable[[PhaseRequest], None],
) -> NoReturn:
    """Fork the child, watch it, tell the verdict on `control`, and exit. `descriptors` are those of events, stdout and
    stderr; `run` is what the child does once it is confined."""
    began = time.monotonic()
    parent = os.getppid()
    os.setsid()
    adopt_orphans()
    scratch = os.path.realpath(tempfile.mkdtemp(prefix="run-", dir=scratch_base))
    me = os.getpid()
    policy = enclose(_policy(request, walls, scratch))
    child = os.fork()
    if child == 0:
        control.close()
        _be_child(request, policy, me, descriptors, run)
    for descriptor in descriptors:
        os.close(descriptor)
    reason, status, peak = _wait(request, policy, child, parent, control, began)
    strays = len(descendants(me))
    clean = end_tree(me)
    if clean:
        disk.remove(scratch)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    verdict = Verdict(
        reason=reason,
        exit=exit_code(policy, status),
        peak_bytes=peak,
        cpu_seconds=round(usage.ru_utime + usage.ru_stime, 3),
        wall_seconds=round(time.monotonic() - began, 3),
        strays=strays,
        clean=clean,
    )
    try:
        control.sendall(verdict.model_dump_json().encode() + b"\n")
    except OSError:
        os._exit(0)  # nobody is left to tell
    os._exit(0)


def _be_child(
    request: PhaseRequest,
    policy: Policy,
    parent: int,
    descriptors: tuple[int, int, int],
    run: Callable[[PhaseRequest], None],
) -> NoReturn:
    events, stdout, stderr = descriptors
    code = 70
    try:
        confine(request, policy, parent, events, stdout, stderr)
        run(request)
        code = 0
    except BaseException:  # noqa: BLE001 - nothing may return into the fork server's loop; the exit code tells
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)


def _wait(
    request: PhaseRequest, policy: Policy, child: int, parent: int, control: socket.socket, began: float
) -> tuple[Reason | None, int, int]:
    """Until the child ends or has to be ended: why, its wait status, the peak of the tree's memory in bytes."""
    limits = request.limits
    own = anonymous_bytes([os.getpid()])
    peak = 0
    poller = select.poll()
    poller.register(control, select.POLLIN | select.POLLHUP)
    if hasattr(os, "pidfd_open"):
        poller.register(os.pidfd_open(child), select.POLLIN)
    while True:
        ready = {descriptor for descriptor, _event in poller.poll(_LOOK_SECONDS * 1000)}
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return None, status, peak
        tree = descendants(os.getpid())
        # The warmed parent's pages are everybody's; only what came on top is the child's.
        peak = max(peak, use := max(0, anonymous_bytes(tree) - own))
        reason: Reason | None = None
        if control.fileno() in ready:
            reason = "stopped"
        elif os.getppid() != parent:
            reason = "orphaned"
        elif time.monotonic() - began > limits.wall_seconds:
            reason = "wall"
        elif use > limits.memory_bytes:
            reason = "memory"
        elif len(tree) > limits.processes:
            reason = "processes"
        elif policy.mode is Mode.LANDLOCK:
            # Without a file system of its own, what it writes is on the machine's.
            size, entries = disk.usage(policy.scratch, tree, limits.disk_entries)
            if size > limits.disk_bytes or entries > limits.disk_entries:
                reason = "disk"
        if reason is not None:
            os.kill(child, signal.SIGKILL)
            _pid, status = os.waitpid(child, 0)
            return reason, status, peak
