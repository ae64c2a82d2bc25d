"""What Python, torch and a C++ compiler read. Everything else is out of a child's reach."""

from __future__ import annotations

import os
import re
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


# NVIDIA's driver, for runs on the machine's own GPU: its control node, unified memory, and each GPU.
_NVIDIA_NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")
_NVIDIA_GPU = re.compile(r"nvidia[0-9]+")
# What the driver's user half reads of the machine: its own versions, and where GPUs and memory are.
GPU_FILES = (
    "/proc/driver/nvidia", "/proc/devices", "/proc/modules", "/proc/version", "/sys/bus/pci/devices", "/sys/devices",
    "/sys/module/nvidia",
)  # fmt: skip


def gpu_devices(folder: str = "/dev") -> tuple[str, ...]:
    """The device nodes that a run on the machine's own GPU opens, of those that are there."""
    there = sorted(name for name in os.listdir(folder) if _NVIDIA_GPU.fullmatch(name))
    nodes = (*_NVIDIA_NODES, *(f"/dev/{name}" for name in there))
    return tuple(node for node in nodes if os.path.exists(os.path.join(folder, os.path.basename(node))))


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
