"""Giving up rights for good: the user, the capabilities, and what an exec could give back."""

from __future__ import annotations

import os
import select
import signal

from server.sandbox.isolation import syscalls

_LAST_CAPABILITY = 63


def drop(user: int | None) -> None:
    """Become `user` (a uid, and the gid of the same number) when given, and lose every capability, now and over any
    exec.

    Raises OSError when something is left."""
    for capability in range(_LAST_CAPABILITY + 1):
        try:
            syscalls.prctl(syscalls.PR_CAPBSET_DROP, capability)
        except OSError:
            # EINVAL: past the last one that the kernel has. EPERM: an ordinary user has none to drop.
            break
    if user is not None:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    syscalls.prctl(syscalls.PR_CAP_AMBIENT, syscalls.PR_CAP_AMBIENT_CLEAR_ALL)
    syscalls.clear_capabilities()
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    # A change of user makes /proc/self root's; torch and Python read it.
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 1)
    if any(syscalls.capabilities()):
        raise PermissionError("capabilities are left after dropping them")
    if len({*os.getresuid(), *os.getresgid()} & {0}):
        raise PermissionError("still root after dropping it")


def die_with(warden: int) -> None:
    """End this process when the warden ends. `warden` is a pidfd of it: in a PID namespace of its own a child has no
    number for its parent. Called after `drop`, since a change of user takes the request back."""
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    poller = select.poll()
    poller.register(warden, select.POLLIN)
    if poller.poll(0):
        os._exit(1)
