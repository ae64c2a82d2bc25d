"""The few system calls that Python does not have, through ctypes. Each raises OSError with the call's name."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys

MACHINE = platform.machine()

CLONE_NEWTIME = 0x80
CLONE_NEWNS = 0x20000
CLONE_NEWCGROUP = 0x2000000
CLONE_NEWUTS = 0x4000000
CLONE_NEWIPC = 0x8000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18

ATTR_RDONLY = 1
ATTR_NOSUID = 2
ATTR_NODEV = 4
ATTR_NOEXEC = 8

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4

_MNT_DETACH = 2
_AT_RECURSIVE = 0x8000
# Numbers above 423 are the same on every architecture.
_MOUNT_SETATTR = 442
_CLOSE_RANGE = 436
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def _call(name: str, *arguments: object) -> int:
    if _libc is None:
        raise OSError(f"{name}: only on Linux")
    result: int = getattr(_libc, name)(*arguments)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def syscall(name: str, number: int, *arguments: object) -> int:
    """A raw system call; `name` is for the error. Integers are passed as 64 bit."""
    if _libc is None:
        raise OSError(f"{name}: only on Linux")
    wide = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    result: int = _libc.syscall(ctypes.c_long(number), *wide)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return result


def unshare(flags: int) -> None:
    _call("unshare", flags)


def mount(source: str | None, target: str, kind: str | None = None, flags: int = 0, options: str | None = None) -> None:
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind, options)]
    try:
        _call("mount", *encoded[:3], ctypes.c_ulong(flags), encoded[3])
    except OSError as fault:
        raise OSError(fault.errno, f"{fault.strerror} ({kind or source} on {target})") from None


def restrict_mount(path: str, attributes: int, *, below: bool = False) -> None:
    """Set attributes of a mount, and with `below` of every mount under it, which a remount would leave as they are."""
    attr = struct.pack("QQQQ", attributes, 0, 0, 0)
    flags = _AT_RECURSIVE if below else 0
    syscall("mount_setattr", _MOUNT_SETATTR, -100, os.fsencode(path), flags, attr, len(attr))


def change_root(new_root: str) -> None:
    """Make a mount the root of this mount namespace, and detach the old one with all that is on it."""
    os.chdir(new_root)
    # Both arguments the same: the old root lands on top of the new one, and needs no folder there.
    syscall("pivot_root", _PIVOT_ROOT[MACHINE], b".", b".")
    detach(".")
    os.chdir("/")


def detach(path: str) -> None:
    _call("umount2", os.fsencode(path), _MNT_DETACH)


def set_hostname(name: str) -> None:
    _call("sethostname", name.encode(), ctypes.c_size_t(len(name)))


def prctl(option: int, *arguments: object) -> int:
    wide = [ctypes.c_ulong(value) if isinstance(value, int) else value for value in arguments]
    return _call("prctl", option, *wide, *[ctypes.c_ulong(0)] * (4 - len(wide)))


def clear_capabilities() -> None:
    """Empty this thread's effective, permitted and inheritable sets."""
    _call("capset", struct.pack("Ii", _CAPABILITY_VERSION_3, 0), bytes(24))


def capabilities() -> tuple[int, int, int]:
    """Effective, permitted and inheritable sets of this thread, as bit masks."""
    data = ctypes.create_string_buffer(24)
    _call("capget", struct.pack("Ii", _CAPABILITY_VERSION_3, 0), data)
    low_e, low_p, low_i, high_e, high_p, high_i = struct.unpack("6I", data.raw)
    return low_e | high_e << 32, low_p | high_p << 32, low_i | high_i << 32


def close_others(keep: tuple[int, ...]) -> None:
    """Close every descriptor but these."""
    first = 0
    for descriptor in [*sorted(set(keep)), 1 << 31]:
        if first < descriptor:
            syscall("close_range", _CLOSE_RANGE, first, descriptor - 1, 0)
        first = descriptor + 1
