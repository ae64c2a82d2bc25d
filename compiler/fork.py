"""Work done aside, in a fork of this process: whatever it does to its copy of the world, or of itself, stays there."""

from __future__ import annotations

import ctypes
import os
import pickle
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

from compiler.errors import AotscopeError
from compiler.text import message
from compiler.torch_compat import real_gpu

Result = TypeVar("Result")
_PR_SET_PDEATHSIG = 1


class AsideError(AotscopeError):
    """The work raised, was killed, or took too long; `detail` is the exception's own text."""


def aside(work: Callable[[], Result], limit_seconds: float, *, without_gpu: bool = False) -> Result:
    """The result of `work()` (which must pickle), run in a fork that says nothing and is killed after `limit_seconds`.
    Raises AsideError, also where this process has touched CUDA, because its forks cannot; `without_gpu` is for work that does not
    want to."""
    if real_gpu.in_use() and not without_gpu:
        raise AsideError(message("aside.cuda"))
    sys.stdout.flush()
    sys.stderr.flush()
    read, write = os.pipe()
    parent = os.getpid()
    try:
        child = os.fork()
    except OSError as error:
        os.close(read)
        os.close(write)
        raise AsideError(message("aside.no_process"), detail=str(error)) from None
    if child == 0:
        os.close(read)
        _work(work, write, parent)
    os.close(write)
    try:
        data = _read(read, time.monotonic() + limit_seconds)
    finally:
        os.close(read)
        # Ours and not yet waited for, so the id cannot have been given to another process. A finished one ignores it.
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    if data is None:
        raise AsideError(message("aside.timeout", seconds=limit_seconds))
    if not data:
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        name = signal.Signals(number).name if number else f"exit {os.waitstatus_to_exitcode(status)}"
        raise AsideError(message("aside.died", how=name))
    ok, value = pickle.loads(data)
    if not ok:
        kind, text, trace = value
        raise AsideError(message("aside.raised", error=kind), detail=f"{kind}: {text}\n{trace}")
    result: Result = value
    return result


def _read(pipe: int, until: float) -> bytes | None:
    """All that is written, b"" when the writer died without a word, None when it took too long."""
    parts: list[bytes] = []
    while True:
        ready, _, _ = select.select([pipe], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            return None
        part = os.read(pipe, 1 << 16)
        if not part:
            return b"".join(parts)
        parts.append(part)


def _work(work: Callable[[], Any], pipe: int, parent: int) -> None:
    """In the fork; does not return."""
    try:
        _die_with(parent)
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the process ends
        try:
            answer = pickle.dumps((True, work()))
        except BaseException as error:  # noqa: BLE001 - a SystemExit of the user's code is an outcome too
            trace = "".join(traceback.format_exception(error)[-6:])
            answer = pickle.dumps((False, (type(error).__name__, str(error), trace)))
        view = memoryview(answer)
        while view:
            view = view[os.write(pipe, view) :]
    finally:
        os._exit(0)


def _die_with(parent: int) -> None:
    """Be killed when the parent is, so that nothing outlives a run that was ended from outside. Linux only."""
    if not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
