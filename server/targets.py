"""Which targets a worker of this machine serves, and why not the others. Torch-free: nothing is imported to know it."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from compiler.targets import TARGETS, TargetId
from compiler.text import Message, message


def _virtual_refused() -> Message | None:
    if sys.platform != "linux":
        return message("virtual.no_system")
    if importlib.util.find_spec("triton") is None:
        return message("virtual.no_triton")
    asked = shlex.split(os.environ.get("CXX", ""))[:1]
    if not any(shutil.which(name) for name in (*asked, "g++", "clang++")):
        return message("virtual.no_compiler")
    return None


def refused() -> dict[TargetId, Message]:
    """The targets that a worker here does not serve, with the reason of each."""
    virtual = _virtual_refused()
    reasons: dict[TargetId, Message] = {"cuda": message("virtual.no_gpu")}
    if virtual is not None:
        reasons |= {target.id: virtual for target in TARGETS if target.kind == "virtual"}
    return reasons


def served() -> list[TargetId]:
    """The targets that a worker here serves, in the order in which they are shown."""
    without = refused()
    return [target.id for target in TARGETS if target.id not in without]


def served_by(workers: Iterable[Mapping[str, Any]]) -> set[str]:
    """What the workers say of themselves."""
    return {target for worker in workers for target in worker.get("targets", ())}
