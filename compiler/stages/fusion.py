"""Which scheduler nodes became one kernel, what that saves, and why others did not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from compiler.events import StageFinished, StageName, StageStarted
from compiler.ir.schedule import FusionDecision, FusionGroup, FusionPayload
from compiler.linker import Links
from compiler.session import Session, slug
from compiler.text import Message, message
from compiler.torch_compat import scheduler as compat
from compiler.torch_compat.hooks import Lap, ours

_NAME = StageName.FUSION
# Asking about all pairs is quadratic: up to this many nodes it takes some ten milliseconds.
_ASK_UP_TO = 60


class Fusion:
    name = _NAME
    scope: Literal["run", "compile"] = "compile"

    @contextmanager
    def install(self, session: Session) -> Iterator[None]:
        laps: list[Lap] = []

        def started() -> None:
            compile_id = session.compile
            if compile_id is not None and not compat.place().body:
                session.emit(StageStarted(), stage=_NAME, compile=compile_id)
            laps.append(Lap())

        def after(fusing: compat.Fusing) -> None:
            seconds = laps.pop().seconds()
            session.tally.scheduler_nodes_after_fusion += len(fusing.after)
            compile_id = session.compile
            if compile_id is not None:
                with ours(session, _NAME, compile_id):
                    _emit(session, compile_id, fusing, seconds)

        with compat.around_fusion(lambda fusing: None, after, started):
            yield


def _emit(session: Session, compile: str, fusing: compat.Fusing, seconds: float) -> None:
    place = compat.place()
    where = f"{place.kind}{place.suffix}"
    groups = [_group(node, fusing) for node in fusing.after]
    payload = FusionPayload(
        id=f"{slug(compile)}/fusion/{where}",
        groups=groups,
        decisions=[*_decisions(fusing, groups), *_asked_again(fusing)],
        nodes_before=len(fusing.before),
        nodes_after=len(fusing.after),
    )
    links = Links()
    for group in groups:
        for member in group.members:
            links.add(f"{slug(compile)}/schedule/{where}/{member}", f"{payload.id}/{group.name}", "lowered", "fused")
    name = f"fusion:{place.body}" if place.body else "fusion"
    session.artifact(payload, kind="fusion", name=name, stage=_NAME, compile=compile, graph=place.kind)
    session.artifact(links.payload(), kind="links", name="links", stage=_NAME, compile=compile, graph=place.kind)
    if not place.body:
        facts: dict[str, int | float | str | bool | None] = {
            "before": len(fusing.before),
            "after": len(fusing.after),
        }
        session.emit(StageFinished(seconds=seconds, graph=place.kind, facts=facts), stage=_NAME, compile=compile)


def _group(node: Any, fusing: compat.Fusing) -> FusionGroup:
    before = {member.get_name(): member for member in fusing.before}
    names = compat.members(node)
    alone = [before.get(name) for name in names]
    return FusionGroup(
        name=node.get_name(),
        kind=compat.kind(node),
        members=names,
        bytes_before=sum(_bytes(member) for member in alone if member is not None),
        bytes_after=_bytes(node),
    )


def _bytes(node: Any) -> int:
    """What a node reads and writes: each buffer once."""
    return sum(compat.accesses(node, reads=True, writes=True).values())


def _decisions(fusing: compat.Fusing, groups: list[FusionGroup]) -> list[FusionDecision]:
    group_of = {member: group.name for group in groups for member in group.members}

    def together(first: str, second: str) -> bool:
        members = [*compat.members(fusing.nodes[first]), *compat.members(fusing.nodes[second])]
        return len({group_of.get(name) for name in members}) == 1

    decisions: list[FusionDecision] = []
    for answer in fusing.answers.values():
        fused = answer.fused and together(answer.first, answer.second)
        explanation: Message | None = None
        if answer.fused and not fused:
            explanation = message("fusion.elsewhere")
        elif not fused and not answer.reason:
            first, second = fusing.nodes[answer.first], fusing.nodes[answer.second]
            explanation = compat.backend_refusal(fusing.scheduler, first, second)
        decisions.append(
            FusionDecision(
                first=answer.first, second=answer.second, fused=fused, reason=answer.reason, explanation=explanation
            )
        )
    return decisions


def _asked_again(fusing: compat.Fusing) -> list[FusionDecision]:
    return [
        FusionDecision(
            first=answer.first,
            second=answer.second,
            fused=False,
            reason=answer.reason,
            explanation=answer.explanation,
            asked="again",
        )
        for answer in compat.ask_again(fusing, _ASK_UP_TO)
    ]


STAGE = Fusion()
