"""Which targets a worker of this machine serves, and why not the others. Torch-free: nothing is imported to know it."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from compiler.targets import TARGETS, TargetId, canonical
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


_NVIDIA = "/dev/nvidiactl"
_BUILT_FOR = re.compile(r"^cuda(?:: [^=]*)? = '", re.M)


def _gpu_refused() -> Message | None:
    if not os.path.exists(_NVIDIA):
        return message("gpu.no_device")
    if importlib.util.find_spec("triton") is None:
        return message("virtual.no_triton")
    torch = importlib.util.find_spec("torch")
    version = Path(str(torch.origin)).with_name("version.py") if torch is not None else None
    # What `torch.version.cuda` is, without importing torch.
    if version is None or not _BUILT_FOR.search(version.read_text(encoding="utf-8")):
        return message("gpu.not_built")
    return None


def refused() -> dict[TargetId, Message]:
    """The targets that a worker here does not serve, with the reason of each."""
    virtual = _virtual_refused()
    gpu = _gpu_refused()
    reasons: dict[TargetId, Message] = {} if gpu is None else {"cuda": gpu}
    if virtual is not None:
        reasons |= {target.id: virtual for target in TARGETS if target.kind == "virtual"}
    return reasons


def served() -> list[TargetId]:
    """The targets that a worker here serves, in the order in which they are shown."""
    without = refused()
    return [target.id for target in TARGETS if target.id not in without]


def wanted(names: str) -> list[TargetId]:
    """The targets of a setting like `cuda,h100`, in the order in which they are shown; all where it is empty. Raises ValueError
    for a name that is none."""
    asked = [canonical(name) for name in names.split(",") if name.strip()]
    known = [target.id for target in TARGETS]
    if strange := [str(name) for name in asked if name not in known]:
        raise ValueError(f"no target is called {', '.join(strange)}")
    return [id_ for id_ in known if not asked or id_ in asked]


def served_by(workers: Iterable[Mapping[str, Any]]) -> set[str]:
    """What the workers say of themselves."""
    return {target for worker in workers for target in worker.get("targets", ())}
