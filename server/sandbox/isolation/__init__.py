"""How a child keeps itself apart from the machine before it runs a stranger's program.

    policy = enclose(policy)          in the warden, before it forks the child
    isolate(policy)                   in the child, after the fork and before anything of the snippet

Standard library only, and one direction: `policy` and `reading` say what; `namespaces`, `landlock`, `seccomp`,
`privileges` and `rlimits` do it, each alone; `probe` tries it out; `disk` is for the warden. Whatever fails raises
`IsolationError`, and the child must end: there is no second best once a mode is chosen."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from server.sandbox.isolation import landlock, namespaces, privileges, rlimits, seccomp, syscalls
from server.sandbox.isolation.policy import IsolationError, Mode, Policy
from server.sandbox.isolation.reading import DEVICES, GPU_FILES, PROC_FILES, SYSTEM_FILES, needed
from server.sandbox.isolation.rlimits import Limits

__all__ = ["IsolationError", "Limits", "Mode", "Policy", "enclose", "exit_code", "isolate", "needed"]

_HIGH = 64


@contextmanager
def _step(name: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as fault:
        raise IsolationError(name, str(fault)) from fault


def enclose(policy: Policy) -> Policy:
    """Called by the warden, once, before it forks the child, which then calls `isolate` with what this returns.

    In namespaces mode the child will be process 1 of its own PID namespace, and all in there ends with it. Raises
    IsolationError."""
    if policy.mode is Mode.NONE:
        return policy
    with _step("enclose"):
        if policy.mode is Mode.NAMESPACES:
            namespaces.enclose()
        # Above the low numbers, which a child rearranges.
        watched = os.pidfd_open(os.getpid())
        high = fcntl.fcntl(watched, fcntl.F_DUPFD_CLOEXEC, _HIGH)
        os.close(watched)
        return replace(policy, warden=high)


def exit_code(policy: Policy, status: int) -> int:
    """What a wait status says of an isolated child: its exit code, or minus the signal that ended it."""
    code = os.waitstatus_to_exitcode(status)
    return -code if policy.mode is Mode.NAMESPACES and code in namespaces.FATAL else code


def isolate(policy: Policy) -> None:
    """Shut this process in, for good. It has one thread, and nothing of a snippet has run in it. `Mode.NONE` changes
    nothing.

    Raises IsolationError when any step fails: the caller then ends the process, which is in no defined state."""
    if policy.mode is Mode.NONE:
        return
    _check(policy)
    apart = policy.mode is Mode.NAMESPACES
    there = [path for path in policy.readable if os.path.lexists(path)]
    # Where nobody else has its user, the kernel's count of the user's tasks is the child's alone.
    with _step("processes"):
        tasks = rlimits.tasks_of(os.geteuid()) if policy.user is None and not apart else 1
    if apart:
        with _step("namespaces"):
            namespaces.enter(policy)
    else:
        with _step("scratch"):
            _own_scratch(policy)
    with _step("limits"):
        rlimits.apply(policy.limits, tasks, addresses=not policy.gpu)
    with _step("privileges"):
        privileges.drop(policy.user)
        assert policy.warden is not None
        privileges.die_with(policy.warden)
    with _step("readable"):
        _check_readable(there)
    with _step("descriptors"):
        syscalls.close_others(policy.keep)
    scopes = False
    with _step("landlock"):
        # Inside namespaces it is a second wall, and an old kernel may lack it.
        if not apart or landlock.abi() >= landlock.LEAST_ABI:
            scopes = landlock.restrict(_rules(policy)) >= landlock.SCOPES_ABI
    with _step("seccomp"):
        seccomp.restrict(None if apart or scopes else os.getpid(), gpu=bool(policy.gpu))
    _verify(policy)


def _check(policy: Policy) -> None:
    with _step("start"):
        if sys.platform != "linux":
            raise OSError(errno.ENOSYS, f"no isolation on {sys.platform}")
        if policy.warden is None:
            raise ValueError("the warden did not call enclose")
        if policy.mode is Mode.NAMESPACES and os.getpid() != 1:
            raise ValueError("not the first child of an enclosed warden")
        if (policy.user is None) == (os.geteuid() == 0) or policy.user == 0:
            raise ValueError("a user to become is given exactly to root, and is not root")
        # The walls are each thread's own: another thread would stay outside.
        threads = len(os.listdir("/proc/self/task"))
        if threads != 1:
            raise ValueError(f"{threads} threads instead of one")
        for descriptor in policy.keep:
            kind = os.fstat(descriptor).st_mode
            if stat.S_ISDIR(kind) or stat.S_ISSOCK(kind) or stat.S_ISBLK(kind):
                raise ValueError(f"descriptor {descriptor} leads outside")


def _own_scratch(policy: Policy) -> None:
    """Without mounts: the scratch outside becomes the child's."""
    os.chdir(policy.scratch)
    if policy.user is not None:
        for folder, _folders, files in os.walk(policy.scratch):
            for path in (folder, *(os.path.join(folder, name) for name in files)):
                os.chown(path, policy.user, policy.user, follow_symlinks=False)


def _check_readable(paths: list[str]) -> None:
    """A Python under /root, say, is out of reach for another user: better said now than by an import that fails
    later."""
    for path in paths:
        if not os.access(path, os.R_OK):
            raise PermissionError(f"{path} cannot be read by user {os.getuid()}")


def _rules(policy: Policy) -> list[tuple[str, int]]:
    rules = [(path, landlock.READ_EXECUTE) for path in policy.readable]
    rules += [(path, landlock.DEVICE) for path in DEVICES]
    rules += [(path, landlock.DEVICE | landlock.CONTROL) for path in policy.gpu]
    rules += [(path, landlock.READ) for path in GPU_FILES if policy.gpu]
    rules += [(path, landlock.READ) for path in (*PROC_FILES, *SYSTEM_FILES)]
    return [*rules, (policy.scratch, landlock.OWN)]


def _verify(policy: Policy) -> None:
    """The walls stand: what must fail does."""
    with _step("verify"):
        try:
            socket.socket().close()
        except PermissionError:
            pass
        else:
            raise OSError("a socket could be made")
        try:
            os.close(os.open(os.path.join(os.path.dirname(policy.scratch), "outside"), os.O_CREAT | os.O_WRONLY))
        except OSError:
            return
        raise OSError("a file could be made outside the scratch")
