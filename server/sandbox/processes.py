"""The process tree under a warden: who is in it, what it uses, and its end. By /proc on Linux, by psutil elsewhere."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time

import psutil  # type: ignore[import-untyped]

LINUX = sys.platform == "linux"
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def die_with_parent(parent: int) -> None:
    """Let the kernel kill this process when its parent ends (Linux). `parent` is the pid it had when it was forked."""
    if LINUX:
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends (Linux), so that none leaves the tree."""
    if LINUX:
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants(root: int) -> list[int]:
    """Pids of all descendants of a process."""
    if not LINUX:
        try:
            return [process.pid for process in psutil.Process(root).children(recursive=True)]
        except psutil.NoSuchProcess:
            return []
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                stat = file.read()
        except OSError:
            continue
        # The command's name may hold spaces and brackets; the parent is the second field after its closing one.
        children.setdefault(int(stat[stat.rindex(b")") + 2 :].split()[1]), []).append(int(name))
    found: list[int] = []
    todo = [root]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def anonymous_bytes(pids: list[int]) -> int:
    """Memory of processes that no file backs: anonymous, shared and swapped. Pages shared since a fork count for each."""
    total = 0
    for pid in pids:
        if not LINUX:
            with contextlib.suppress(psutil.Error):
                total += psutil.Process(pid).memory_info().rss
            continue
        try:
            with open(f"/proc/{pid}/status") as file:
                for line in file:
                    if line.startswith(("RssAnon", "RssShmem", "VmSwap")):
                        total += int(line.split()[1]) * 1024
        except OSError:
            continue
    return total


def tasks_of_user(uid: int) -> int:
    """Processes and threads of a user (Linux): what RLIMIT_NPROC counts."""
    count = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                if os.stat(f"/proc/{name}").st_uid == uid:
                    count += len(os.listdir(f"/proc/{name}/task"))
    return count


def end_tree(root: int, seconds: float = 5.0) -> bool:
    """Freeze, then kill, every descendant of this process until none is left. False when some withstood."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        below = descendants(root)
        for signal_ in (signal.SIGSTOP, signal.SIGKILL):
            for pid in below:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal_)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return True
        time.sleep(0.002)
    return False
