"""Inductor's own IR before fusion: one scheduler node for each loop nest and external call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from compiler.events import Finding, Severity, StageFinished, StageName, StageStarted
from compiler.ir.schedule import SchedulePayload, SchedulerNode
from compiler.linker import Links
from compiler.session import Session, slug
from compiler.stages.provenance import Provenance
from compiler.text import message
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
                    _emit(session, compile_id, fusing)

        with compat.around_fusion(before, lambda fusing: None):
            yield


def _emit(session: Session, compile: str, fusing: compat.Fusing) -> None:
    """The bodies of higher-order operators have schedulers of their own, which run while the graph's code is generated:
    they are artifacts, and no stages."""
    place = compat.place()
    if not place.body:
        session.emit(StageStarted(), stage=_NAME, compile=compile)
    provenance = Provenance(session, compile, place.kind, place.fx)
    prefix = f"{slug(compile)}/schedule/{place.kind}{place.suffix}"
    nodes: list[SchedulerNode] = []
    links = Links()
    complex_nodes: list[SchedulerNode] = []
    for node in fusing.before:
        origins = provenance.ordered(compat.origin_nodes(node))
        names = [origin.name for origin in origins]
        nodes.append(compat.describe(node, names, provenance.line_of(origins)))
        if compat.complex_fallback(node):
            complex_nodes.append(nodes[-1])
        for origin in origins:
            entity = provenance.entity(origin)
            if entity is not None:
                links.add(entity, f"{prefix}/{node.get_name()}", "lowered", "origins")
    payload = SchedulePayload(id=prefix, nodes=nodes)
    name = f"schedule:{place.body}" if place.body else "schedule"
    session.artifact(payload, kind="schedule", name=name, stage=_NAME, compile=compile, graph=place.kind)
    session.artifact(links.payload(), kind="links", name="links", stage=_NAME, compile=compile, graph=place.kind)
    if complex_nodes:
        said = message("schedule.complex", count=len(complex_nodes), nodes=len(nodes))
        first = complex_nodes[0]
        entity = f"{prefix}/{first.name}"
        finding = Finding(severity=Severity.WARNING, message=said, line=first.line, entity=entity)
        session.emit(finding, stage=_NAME, compile=compile)
    if not place.body:
        session.emit(StageFinished(graph=place.kind, facts={"nodes": len(nodes)}), stage=_NAME, compile=compile)


STAGE = Schedule()
