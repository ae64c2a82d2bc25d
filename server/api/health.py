"""`GET /api/v1/health`: how the service is, and what is in force."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from compiler.targets import TARGETS, Kind, TargetId
from compiler.text import Frozen, Message, message
from server.context import Shared
from server.pictures.dot import dot_installed
from server.sandbox.isolation import Mode
from server.sandbox.isolation.text import outer_sentence, sentence
from server.sandbox.outer import Outer
from server.store.runs import QUEUED, RUNNING
from server.targets import served_by
from server.versions import versions

router = APIRouter(tags=["service"])

# Nothing has to run on it, so it is the fastest to show.
_DEFAULT: TargetId = "sm_90"


class OfferedTarget(Frozen):
    """A target that a living worker serves; `name` is what people call it."""

    id: TargetId
    name: str
    kind: Kind


class Health(Frozen):
    """`state`: `ready` when a worker can start a run at once, `busy` when all are at work, `warming` while the first warms up,
    `broken` when none can start children (each worker's `error` says why), `no_worker` when none lives. Runs are accepted in
    each of them, and wait. `isolation` is the weakest that is in force in a worker around each run, `outer` the
    weakest around all of its runs; each worker's own says what was tried and why it does not work. `targets` are served by a
    living worker, and `default_target` is the one of them that a page offers first. `dot`: whether Graphviz lays out the
    pictures of graphs; `pictures` is that in a sentence."""

    state: str
    workers: list[dict[str, Any]]
    queued: int
    running: int
    torch: str
    aotscope: str
    isolation: Message
    outer: Message
    targets: list[OfferedTarget]
    default_target: TargetId
    dot: bool
    pictures: Message
    limits: dict[str, int | float]


_LIMITS = (
    "capture_seconds", "run_seconds", "memory_bytes", "processes", "file_bytes", "disk_bytes", "disk_entries",
    "output_bytes", "artifact_bytes",
    "artifacts_bytes", "events", "queue", "body_bytes",
)  # fmt: skip


def _isolation(workers: list[dict[str, Any]]) -> Message:
    said = [worker["isolation"] for worker in workers if worker["isolation"]]
    if not said:
        return message("isolation.unknown")
    order = list(Mode)
    weakest = max(said, key=lambda one: order.index(Mode(one["mode"])))
    return sentence(Mode(weakest["mode"]), weakest["landlock_abi"])


def _outer(workers: list[dict[str, Any]]) -> Message:
    said = [worker["isolation"] for worker in workers if worker["isolation"]]
    if not said:
        return message("isolation.unknown")
    weakest = next((one for one in said if Outer(one["outer"]) is Outer.NONE), said[0])
    return outer_sentence(Outer(weakest["outer"]), weakest["outer_reason"])


@router.get("/api/v1/health")
def health(shared: Shared) -> Health:
    """Workers, queue, versions, isolation and limits."""
    workers = shared.executors.living()
    states = {worker["state"] for worker in workers}
    state = next((name for name in ("ready", "busy", "warming", "broken") if name in states), "no_worker")
    torch = next((worker["engine"]["torch"] for worker in workers if worker["engine"]), versions()["torch"])
    dot = dot_installed()
    theirs = served_by(workers)
    targets = [OfferedTarget(id=one.id, name=one.name, kind=one.kind) for one in TARGETS if one.id in theirs]
    return Health(
        state=state,
        workers=workers,
        queued=shared.runs.count(QUEUED),
        running=shared.runs.count(RUNNING),
        torch=torch,
        aotscope=versions()["aotscope"],
        isolation=_isolation(workers),
        outer=_outer(workers),
        targets=targets,
        default_target=_DEFAULT if _DEFAULT in theirs else "cpu",
        dot=dot,
        pictures=message("plain.dot_present") if dot else message("plain.dot_absent"),
        limits={name: getattr(shared.settings, name) for name in _LIMITS},
    )
