"""What a forked child does to itself before it runs the snippet."""

from __future__ import annotations

import os
import resource
import signal
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

from server.sandbox.isolation import Mode, Policy, isolate
from server.sandbox.processes import LINUX, die_with_parent, tasks_of_user
from server.sandbox.protocol import PhaseRequest

EVENTS_FD = 3
_PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ", "HOME", "VIRTUAL_ENV", "PYTHONPATH")
_ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
}


# Torch keeps precompiled headers in a folder that all runs would write to, outside every scratch. Where there are some to
# read, the fork server takes care that none are written.
_HEADERS = "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS"


def with_headers() -> dict[str, str]:
    """What a fork server's environment says when there are precompiled headers for its children to read."""
    return {_HEADERS: "1"}


# Which GPUs, where the driver's libraries are; and torch asks the driver's management library whether there is a GPU, which does
# not touch it: the process that children are forked from must not.
_GPU_PASSED_ON = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "LD_LIBRARY_PATH")
_GPU = {"PYTORCH_NVML_BASED_CUDA_CHECK": "1"}


def parent_environment(whole: bool, apart: bool = False, gpu: bool = False) -> dict[str, str]:
    """The fork server's environment: nothing that a snippet should not read, unless the snippet is the user's own.
    `apart`: its children are isolated. `gpu`: they run on the machine's GPU."""
    names = (*_PASSED_ON, *_GPU_PASSED_ON) if gpu else _PASSED_ON
    kept = dict(os.environ) if whole else {name: os.environ[name] for name in names if name in os.environ}
    kept |= _GPU if gpu else {}
    # One thread: a pool of OpenMP threads does not survive a fork, and its child would hang.
    return kept | _ONE_THREAD | ({_HEADERS: "0"} if apart else {})


def places(scratch: str) -> dict[str, str]:
    """Variables of a fork server that can write nowhere else, and whose user has no name there."""
    return {
        "HOME": scratch,
        "TMPDIR": scratch,
        "TORCHINDUCTOR_CACHE_DIR": f"{scratch}/warm-up",
        "USER": "runner",
        "LOGNAME": "runner",
    }


def _environment(scratch: Path, own: bool) -> Mapping[str, str]:
    places = {
        "TMPDIR": str(scratch),
        "TORCHINDUCTOR_CACHE_DIR": str(scratch / "inductor"),
        "TRITON_CACHE_DIR": str(scratch / "triton"),
    }
    return places if own else places | {"HOME": str(scratch), "USER": "snippet", "LOGNAME": "snippet"}


def _limit(name: str, value: int) -> None:
    """Lower a limit, never above the one in force."""
    kind = getattr(resource, name)
    hard = resource.getrlimit(kind)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))


def _address_space() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def _stream(descriptor: int) -> TextIO:
    return open(descriptor, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)


def confine(request: PhaseRequest, policy: Policy, parent: int, events: int, stdout: int, stderr: int) -> None:
    """Make this process the child of one phase: its own session, its pipes and no other descriptor, its scratch, its limits,
    and the isolation that the policy says. The events' pipe becomes `EVENTS_FD`.

    Raises IsolationError, and then the snippet must not run."""
    scratch = Path(policy.scratch)
    os.setsid()
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    os.dup2(events, EVENTS_FD)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(name, signal.SIG_DFL)
    os.environ.update(_environment(scratch, own=request.root is not None))
    tempfile.tempdir = None
    os.chdir(request.root or scratch)
    # The parent's streams may be of a file, and hold what a pipe has not.
    sys.stdout, sys.stderr = _stream(1), _stream(2)
    if policy.mode is not Mode.NONE:
        isolate(policy)
        return
    die_with_parent(parent)
    os.closerange(EVENTS_FD + 1, 65536)
    limits = request.limits
    _limit("RLIMIT_CORE", 0)
    _limit("RLIMIT_FSIZE", limits.file_bytes)
    _limit("RLIMIT_CPU", int(limits.wall_seconds) + 5)
    if LINUX:
        if not policy.gpu:  # CUDA reserves more addresses than any limit of memory
            _limit("RLIMIT_AS", _address_space() + limits.memory_bytes)
        # It counts everything of the user, and does not bind root; the warden counts the tree.
        _limit("RLIMIT_NPROC", tasks_of_user(os.geteuid()) + limits.processes)
