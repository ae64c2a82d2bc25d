"""Cache: the same snippet compiled cold and then warm, and what torch's two caches said each time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from compiler.events import StageFinished, StageName
from compiler.ir.execution import CachePayload, CacheProbe
from compiler.session import Session
from compiler.text import message
from compiler.torch_compat.caches import CacheEvent

STAGE = StageName.CACHE
_CACHES: tuple[Literal["aot_autograd", "fx_graph"], ...] = ("aot_autograd", "fx_graph")


def probes(what: Literal["cold", "warm"], events: Sequence[CacheEvent]) -> list[CacheProbe]:
    """One probe for each look-up, equal ones counted together; a cache that was not asked is "unused"."""
    found: dict[CacheEvent, int] = {}
    for event in events:
        found[event] = found.get(event, 0) + 1
    asked = [
        CacheProbe(what=what, cache=event.cache, outcome=event.outcome, count=count, reason=event.reason, key=event.key)
        for event, count in found.items()
    ]
    silent = [cache for cache in _CACHES if all(event.cache != cache for event in events)]
    return asked + [CacheProbe(what=what, cache=cache, outcome="unused", count=0) for cache in silent]


def tell(
    session: Session,
    *,
    cold: Sequence[CacheEvent],
    warm: Sequence[CacheEvent],
    cold_seconds: float,
    warm_seconds: float,
) -> None:
    """The stage's artifact and its end."""
    payload = CachePayload(
        probes=probes("cold", cold) + probes("warm", warm),
        cold_seconds=cold_seconds,
        warm_seconds=warm_seconds,
        notes=[message("cache.how")],
    )
    session.artifact(payload, kind="cache", name="cache", stage=STAGE)
    facts: dict[str, int | float | str | bool | None] = {
        f"warm_{cache}": "/".join(sorted({event.outcome for event in warm if event.cache == cache})) or "unused"
        for cache in _CACHES
    }
    facts |= {"cold_seconds": cold_seconds, "warm_seconds": warm_seconds}
    session.emit(StageFinished(facts=facts), stage=STAGE)
