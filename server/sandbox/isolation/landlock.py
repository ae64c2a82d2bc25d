"""Landlock: this process, and all that it will ever start, reaches only the paths that are listed here.

What Landlock does not mediate (stat, chmod, chown, utime, xattr, flock, O_PATH) is left to `seccomp`, except stat: a
child can learn whether a path exists.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
from collections.abc import Iterable

from server.sandbox.isolation import syscalls

# Below 3, truncate(2) of any file of the user goes through.
LEAST_ABI = 3
# From 6, signals and abstract Unix sockets stay inside.
SCOPES_ABI = 6

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION = 1
_PATH_BENEATH = 1

_EXECUTE, _WRITE, _READ, _READ_DIR = 1, 2, 4, 8
_REMOVE_DIR, _REMOVE_FILE = 1 << 4, 1 << 5
_MAKE_DIR, _MAKE_FILE, _MAKE_SYMLINK = 1 << 7, 1 << 8, 1 << 12
_REFER, _TRUNCATE, _IOCTL_DEVICE = 1 << 13, 1 << 14, 1 << 15
_FOR_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL_DEVICE

READ = _READ | _READ_DIR
READ_EXECUTE = READ | _EXECUTE
DEVICE = _READ | _WRITE
# To be asked things by number, as the driver of a GPU is.
CONTROL = _IOCTL_DEVICE
# No sockets, FIFOs or device nodes.
OWN = READ_EXECUTE | _WRITE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_FILE | _MAKE_SYMLINK | _REFER | _TRUNCATE


def abi() -> int:
    """The kernel's Landlock version, 0 when it has none or has it switched off."""
    try:
        return syscalls.syscall("landlock", _CREATE_RULESET, None, 0, _ASK_VERSION)
    except OSError:
        return 0


def _handled(version: int) -> int:
    """Every right to files that this version knows: what is handled and not granted is denied."""
    rights = (1 << 13) - 1
    rights |= _REFER if version >= 2 else 0
    rights |= _TRUNCATE if version >= 3 else 0
    rights |= _IOCTL_DEVICE if version >= 5 else 0
    return rights


def restrict(rules: Iterable[tuple[str, int]]) -> int:
    """Allow these paths (those that do not exist are left out), and nothing else: no other file, no TCP, and with
    version 6 no signal and no abstract Unix socket that leads outside. Needs no_new_privs. Returns the version.

    Raises OSError when the kernel's version is below `LEAST_ABI`, or refuses."""
    version = abi()
    if version < LEAST_ABI:
        raise OSError(errno.ENOSYS, f"Landlock version {version}, at least {LEAST_ABI} is needed")
    handled = _handled(version)
    # Files; network: bind and connect of TCP; scopes: abstract Unix sockets and signals. Older kernels take a shorter
    # one.
    attributes = struct.pack("QQQ", handled, 3, 3)[: 24 if version >= SCOPES_ABI else 16 if version >= 4 else 8]
    ruleset = syscalls.syscall("landlock_create_ruleset", _CREATE_RULESET, attributes, len(attributes), 0)
    try:
        for path, rights in rules:
            try:
                target = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            try:
                folder = stat.S_ISDIR(os.fstat(target).st_mode)
                granted = rights & handled if folder else rights & handled & _FOR_FILES
                rule = struct.pack("=Qi", granted, target)
                syscalls.syscall(f"landlock_add_rule {path}", _ADD_RULE, ruleset, _PATH_BENEATH, rule, 0)
            finally:
                os.close(target)
        syscalls.syscall("landlock_restrict_self", _RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)
    return version
