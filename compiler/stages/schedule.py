"""Inductor's own IR before fusion: one scheduler node for each loop nest and external call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from compiler.events import StageFinished, StageName, StageStarted
from compiler.ir.schedule import SchedulePayload, SchedulerNode
from compiler.linker import Links
from compiler.session import Session, slug
from compiler.stages.provenance import Provenance
from compiler.torch_compat import scheduler as compat
from compiler.torch_compat.hooks import ours

_NAME = StageName.SCHEDULE


class Schedule:
    name = _NAME
    scope: Literal["run", "compile"] = "compile"

    @contextmanager
    def install(self, session: Session) -> Iterator[None]:
        def before(fusing: compat.Fusing) -> None:
            session.tally.ir_nodes_pre_fusion += int(fusing.scheduler.num_orig_nodes)
            compile_id = session.compile
            if compile_id is not None:
                with ours(session, _NAME, compile_id):
                    session.emit(StageStarted(), stage=_NAME, compile=compile_id)
                    _emit(session, compile_id, fusing)

        with compat.around_fusion(before, lambda fusing: None, with_answers=False):
            yield


def _emit(session: Session, compile: str, fusing: compat.Fusing) -> None:
    lowering = compat.current_lowering()
    kind, body = compat.graph_kind(lowering), compat.subgraph_name(lowering)
    provenance = Provenance(session, compile, kind)
    nodes = [_describe(node, provenance) for node in fusing.before]
    prefix = f"{slug(compile)}/schedule/{kind}"
    links = Links()
    for node in nodes:
        for origin in node.origins:
            entity = provenance.entity(origin)
            if entity is not None and not body:
                links.add(entity, f"{prefix}/{node.name}", "lowered", "origins")
    payload = SchedulePayload(id=prefix, nodes=nodes)
    name = f"schedule:{body}" if body else "schedule"
    session.artifact(payload, kind="schedule", name=name, stage=_NAME, compile=compile, graph=kind)
    if not body:
        session.artifact(links.payload(), kind="links", name="links", stage=_NAME, compile=compile, graph=kind)
    session.emit(StageFinished(graph=kind, facts={"nodes": len(nodes)}), stage=_NAME, compile=compile)


def _describe(node: Any, provenance: Provenance) -> SchedulerNode:
    origins = provenance.ordered(compat.origin_nodes(node))
    return compat.describe(node, [origin.name for origin in origins], provenance.line_of(origins))


STAGE = Schedule()
