"""Cache: the same snippet compiled cold, then warm, then for another batch size, and what torch's two caches said each time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

from compiler.events import StageFinished, StageName
from compiler.ir.execution import CachePayload, CacheProbe, KeyChange, KeyPart
from compiler.session import Session
from compiler.text import Message, message
from compiler.torch_compat.caches import CacheEvent

STAGE = StageName.CACHE
What = Literal["cold", "warm", "changed"]
_CACHES: tuple[Literal["aot_autograd", "fx_graph"], ...] = ("aot_autograd", "fx_graph")
# What one look-up may take of the payload.
_MOST_PARTS = 80
_MOST_CHANGES = 12
_MOST_CHARACTERS = 160
_PART = re.compile(r"\[(\w+)\] ([^:\s]+): (.*)", re.DOTALL)


def probes(what: What, events: Sequence[CacheEvent], cold: Sequence[CacheEvent] = ()) -> list[CacheProbe]:
    """One probe for each look-up, equal ones counted together; a cache that was not asked is "unused". Keys are compared with
    those of `cold`, in order."""
    found: dict[CacheEvent, int] = {}
    places: dict[CacheEvent, int] = {}
    seen: Counter[str] = Counter()
    for event in events:
        found[event] = found.get(event, 0) + 1
        places.setdefault(event, seen[event.cache])
        seen[event.cache] += 1
    asked = [
        CacheProbe(
            what=what,
            cache=event.cache,
            outcome=event.outcome,
            count=count,
            reason=event.reason,
            key=event.key,
            parts=list(_parts(event)) if what == "cold" else [],
            changes=_changes(event, [one for one in cold if one.cache == event.cache], places[event]),
        )
        for event, count in found.items()
    ]
    silent = [cache for cache in _CACHES if all(event.cache != cache for event in events)]
    return asked + [CacheProbe(what=what, cache=cache, outcome="unused", count=0) for cache in silent]


def _read(event: CacheEvent) -> dict[str, tuple[str, str]]:
    """Name of each part → its hash and its text."""
    matches = (_PART.fullmatch(line) for line in event.parts)
    return {match[2]: (match[1], match[3]) for match in matches if match is not None}


def _parts(event: CacheEvent) -> Iterator[KeyPart]:
    for name, (digest, text) in list(_read(event).items())[:_MOST_PARTS]:
        yield KeyPart(name=name, digest=digest[:8], text=_cut(text, 0))


def _changes(event: CacheEvent, cold: Sequence[CacheEvent], place: int) -> list[KeyChange]:
    if place >= len(cold) or cold[place].key == event.key:
        return []
    before, after = _read(cold[place]), _read(event)
    nothing = ("", "")
    names = [name for name in dict.fromkeys((*before, *after)) if before.get(name) != after.get(name)]
    changes = []
    for name in names[:_MOST_CHANGES]:
        one, other = before.get(name, nothing)[1], after.get(name, nothing)[1]
        start = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
        changes.append(KeyChange(name=name, before=_cut(one, start), after=_cut(other, start)))
    return changes


def _cut(text: str, around: int) -> str:
    start = max(0, around - _MOST_CHARACTERS // 3)
    cut = text[start : start + _MOST_CHARACTERS]
    return f"{'…' if start else ''}{cut}{'…' if start + _MOST_CHARACTERS < len(text) else ''}"


def tell(
    session: Session,
    *,
    cold: Sequence[CacheEvent],
    warm: Sequence[CacheEvent],
    changed: Sequence[CacheEvent] | Message,
    cold_seconds: float,
    warm_seconds: float,
) -> None:
    """The stage's artifact and its end. `changed` may be why there was no third compile."""
    found = probes("cold", cold) + probes("warm", warm, cold)
    notes = [message("cache.how")]
    if isinstance(changed, Message):
        notes.append(changed)
    else:
        found += probes("changed", changed, cold)
        notes.append(message("cache.changed_how"))
    payload = CachePayload(probes=found, cold_seconds=cold_seconds, warm_seconds=warm_seconds, notes=notes)
    session.artifact(payload, kind="cache", name="cache", stage=STAGE)
    facts: dict[str, int | float | str | bool | None] = {
        f"warm_{cache}": "/".join(sorted({event.outcome for event in warm if event.cache == cache})) or "unused"
        for cache in _CACHES
    }
    facts |= {"cold_seconds": cold_seconds, "warm_seconds": warm_seconds}
    session.emit(StageFinished(facts=facts), stage=STAGE)
