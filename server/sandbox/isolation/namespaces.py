"""Namespaces: a child for which the rest of the machine does not exist. Its own processes, no network, and a root
file system in memory that holds what it may read, read-only, and its scratch."""

from __future__ import annotations

import ctypes
import os
import signal

from server.sandbox.isolation import syscalls
from server.sandbox.isolation.policy import Policy
from server.sandbox.isolation.reading import DEVICES, GPU_FILES, SYSTEM_FILES, outermost

# Who the child is to itself, where it is nobody in particular outside.
_INNER_ID = 1000
_ROOT_BYTES = 4 << 20
_READ_ONLY = syscalls.ATTR_RDONLY | syscalls.ATTR_NOSUID | syscalls.ATTR_NODEV
_QUIET = syscalls.MS_NOSUID | syscalls.MS_NODEV

# Signals whose default is to end a process, and which process 1 of a namespace ignores instead.
FATAL = (signal.SIGABRT, signal.SIGALRM, signal.SIGTERM, signal.SIGXCPU)


def enclose() -> None:
    """Called by the warden: its next child is process 1 of a PID namespace. An ordinary user makes a user namespace
    for it, and is in it from now on (under the same uid, to everyone outside)."""
    user, group = os.geteuid(), os.getegid()
    if user == 0:
        syscalls.unshare(syscalls.CLONE_NEWPID)
        return
    syscalls.unshare(syscalls.CLONE_NEWUSER | syscalls.CLONE_NEWPID)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{_INNER_ID} {user} 1"),
        ("gid_map", f"{_INNER_ID} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def enter(policy: Policy) -> None:
    """Called by the child: leave the machine's file system, network, IPC and names for its own. Its own capabilities
    stay for now."""
    syscalls.unshare(
        syscalls.CLONE_NEWNS
        | syscalls.CLONE_NEWNET
        | syscalls.CLONE_NEWIPC
        | syscalls.CLONE_NEWUTS
        | syscalls.CLONE_NEWCGROUP
    )
    # Else what is mounted here would appear outside.
    syscalls.mount("none", "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)
    # The empty scratch outside is where the new root is built.
    root = policy.scratch
    syscalls.mount("tmpfs", root, "tmpfs", _QUIET, f"size={_ROOT_BYTES},nr_inodes=4096,mode=755")
    for path in outermost((*policy.readable, *SYSTEM_FILES)):
        _show(root, path)
    for path in GPU_FILES if policy.gpu else ():
        if path.startswith("/sys/") and os.path.lexists(path):
            _show(root, path)
    for path in (*DEVICES, *policy.gpu):
        _bind(path, root + path, syscalls.ATTR_RDONLY | syscalls.ATTR_NOSUID | syscalls.ATTR_NOEXEC)
    os.mkdir(root + "/proc")
    syscalls.mount("proc", root + "/proc", "proc", _QUIET | syscalls.MS_NOEXEC)
    scratch = root + policy.scratch
    os.makedirs(scratch, exist_ok=True)
    limits = policy.limits
    owner = _INNER_ID if policy.user is None else policy.user
    options = f"size={limits.disk_bytes},nr_inodes={limits.disk_entries},mode=700,uid={owner},gid={owner}"
    syscalls.mount("tmpfs", scratch, "tmpfs", _QUIET, options)
    syscalls.change_root(root)
    syscalls.restrict_mount("/", _READ_ONLY)
    os.chdir(policy.scratch)
    syscalls.set_hostname("sandbox")
    _end_by_signals()


def _end_by_signals() -> None:
    """Let process 1 end by the signals that end any other: an abort would else go on, and end as a segmentation fault.

    The handler is libc's _exit, which gets the signal's number and makes it the exit code (`FATAL` are told from it).
    Children have their default back."""
    libc = ctypes.CDLL(None)
    libc.signal.argtypes = (ctypes.c_int, ctypes.c_void_p)
    libc.signal.restype = ctypes.c_void_p
    handler = ctypes.cast(libc._exit, ctypes.c_void_p)
    for number in FATAL:
        libc.signal(number, handler)
    os.register_at_fork(after_in_child=lambda: [signal.signal(number, signal.SIG_DFL) for number in FATAL])


def _show(root: str, path: str) -> None:
    """The same path inside, read-only; a link stays a link."""
    if os.path.islink(path):
        os.makedirs(os.path.dirname(root + path), exist_ok=True)
        os.symlink(os.readlink(path), root + path)
        return
    _bind(path, root + path, _READ_ONLY)


def _bind(source: str, target: str, attributes: int) -> None:
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))
    # With what is mounted below it: without, an ordinary user is refused, and a remount would miss those.
    syscalls.mount(source, target, None, syscalls.MS_BIND | syscalls.MS_REC)
    syscalls.restrict_mount(target, attributes, below=True)
