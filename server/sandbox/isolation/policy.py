"""What a child is to be kept in."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from server.sandbox.isolation.rlimits import Limits


class Mode(StrEnum):
    """How a child is kept apart: by namespaces (and Landlock too, where the kernel has it), by Landlock, or not at
    all."""

    NAMESPACES = "namespaces"
    LANDLOCK = "landlock"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Policy:
    """All paths are absolute and without links. `scratch` exists, is empty, and belongs to the starting user; it is
    the only place where the child can write, and its working folder. `readable` are files and folders to read and
    execute from (see `reading.needed`). `user` is the uid (and gid) to become, given exactly when the starting user
    is root; no other process should have it. `gpu` are the device nodes of a
    GPU that the run may use (`reading.gpu_devices`). `keep` are the descriptors that stay open. `warden` is filled in by
    `enclose`."""

    mode: Mode
    scratch: str
    readable: tuple[str, ...]
    user: int | None = None
    limits: Limits = field(default_factory=Limits)
    gpu: tuple[str, ...] = ()
    keep: tuple[int, ...] = (0, 1, 2)
    warden: int | None = None


class IsolationError(Exception):
    """A step failed, and the child must not run. `step` names it; `reason` is the system's own word."""

    def __init__(self, step: str, reason: str) -> None:
        super().__init__(f"{step}: {reason}")
        self.step = step
        self.reason = reason
