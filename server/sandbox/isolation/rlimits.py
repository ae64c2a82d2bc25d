"""Resource limits of one child. They bound each process; the warden bounds them together."""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """What a run may use. Bytes, seconds of CPU, and counts. `disk_bytes` and `disk_entries` (files and folders) bind
    in namespaces by the size of the scratch; with Landlock alone whoever watches the child compares them with
    `disk.usage`."""

    memory_bytes: int = 2048 * MIB
    processes: int = 64
    file_bytes: int = 256 * MIB
    disk_bytes: int = 512 * MIB
    disk_entries: int = 20_000
    cpu_seconds: int = 300
    open_files: int = 1024


def _lower(kind: int, value: int) -> None:
    hard = resource.getrlimit(kind)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))


def _address_space() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def tasks_of(user: int) -> int:
    """Processes and threads of a user: what RLIMIT_NPROC counts for someone without a user (namespace) of its own."""
    count = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if os.stat(f"/proc/{name}").st_uid == user:
                    count += len(os.listdir(f"/proc/{name}/task"))
            except OSError:
                continue  # it has ended
    return count


def apply(limits: Limits, tasks: int, addresses: bool = True) -> None:
    """Lower the limits of this process to these. `tasks`: those of the same user that are none of the child's. `addresses`: bound
    those too; CUDA reserves as many as the machine has memory, its GPUs' included, and more."""
    # The warmed parent's mappings are there already; what comes on top is the child's.
    if addresses:
        _lower(resource.RLIMIT_AS, _address_space() + limits.memory_bytes)
    _lower(resource.RLIMIT_NPROC, tasks + limits.processes)
    _lower(resource.RLIMIT_FSIZE, limits.file_bytes)
    _lower(resource.RLIMIT_CPU, limits.cpu_seconds)
    _lower(resource.RLIMIT_NOFILE, limits.open_files)
    # 1, not 0: where the kernel pipes core dumps to a program, 0 does not stop it, and 1 does.
    _lower(resource.RLIMIT_CORE, 1)
    for kind in (resource.RLIMIT_MEMLOCK, resource.RLIMIT_MSGQUEUE, resource.RLIMIT_RTPRIO, resource.RLIMIT_NICE):
        _lower(kind, 0)
    _lower(resource.RLIMIT_SIGPENDING, 1024)
    # The kernel's first choice when memory runs out. Raising it needs no right; lowering it again is forbidden later.
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")
