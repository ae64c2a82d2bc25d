"""What Python, torch and a C++ compiler read. Everything else is out of a child's reach."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Iterator

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/alternatives", "/etc/ld.so.cache")
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
# The number of processors: torch and OpenMP ask.
SYSTEM_FILES = ("/sys/devices/system/cpu",)
# In /proc of the machine (Landlock) or of the namespace. Nothing of other processes.
PROC_FILES = ("/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/filesystems", "/proc/sys/vm/overcommit_memory")


def needed(*more: str) -> tuple[str, ...]:
    """Files and folders that a child of this interpreter reads: the system's programs and libraries, this Python, its
    packages, the C++ compiler, and `more`. Never a source folder as a whole (an editable install puts one on
    `sys.path`): it may hold anything."""
    paths = [path for path in _SYSTEM if os.path.lexists(path)]
    paths += [sys.prefix, sys.base_prefix, sysconfig.get_path("stdlib")]
    paths += [path for path in sys.path if path.endswith(("site-packages", "dist-packages")) and os.path.isdir(path)]
    for program in (sys.executable, shutil.which(os.environ.get("CXX", "g++"))):
        if program:
            # <prefix>/bin/<program>: its libraries and headers are in the prefix.
            paths.append(os.path.dirname(os.path.dirname(os.path.realpath(program))))
    paths += more
    # Twice: as it is called, and as what it is, so that a link on the way leads somewhere.
    both = [absolute for path in paths for absolute in (os.path.abspath(path), os.path.realpath(path))]
    return tuple(path for path in dict.fromkeys(both) if path != "/")


def outermost(paths: tuple[str, ...]) -> Iterator[str]:
    """The paths that exist and are inside none of the others, shortest first."""
    taken: list[str] = []
    for path in sorted(set(paths), key=len):
        if os.path.lexists(path) and not any(path == above or path.startswith(above + "/") for above in taken):
            taken.append(path)
            yield path
