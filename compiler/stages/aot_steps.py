"""AOTAutograd one transform at a time, told when the run is over: autograd traced, functionalized, decomposed, and the joint
graph that was really made, with which the last of them must be equal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from compiler.events import StageName
from compiler.ir.aot import AotStep, AotStepsPayload, OpCount
from compiler.ir.diff import diff
from compiler.ir.encode import encode
from compiler.ir.graph import Graph
from compiler.lift import lift_graph
from compiler.session import Session, slug
from compiler.stages.aot_ledger import ledger
from compiler.stages.pass_steps import shortened
from compiler.text import Message, message
from compiler.torch_compat.aot import Kind
from compiler.torch_compat.aot_replay import (
    REPLAYS,
    Held,
    Replay,
    Traced,
    first_difference,
    holding,
    normal_form,
    replay,
)
from compiler.torch_compat.hooks import ours

_NAME = StageName.JOINT
_SHOWN: tuple[Replay, ...] = ("traced", "functionalized", "decomposed")

# Three more traces cost about as much as the compile's own stages up to here, for each node; more would be waited for.
GRAPH_LIMIT = 3000
RUN_LIMIT = 9000


@contextmanager
def keeping(session: Session) -> Iterator[None]:
    """While compiles run: keep what each trace of AOTAutograd's was given, for `tell`."""

    def keep(compile: str, kind: Kind, nodes: int, held: Held | None) -> None:
        session.traces[compile] = (kind, nodes, held)

    with holding(lambda: session.compile, lambda id_: ours(session, _NAME, id_), keep, GRAPH_LIMIT):
        yield


def tell(session: Session) -> None:
    """After the calls: trace the graphs of the run again, and emit `aot_steps` and `ledger` of each. Lets go of what was kept."""
    left = RUN_LIMIT
    for compile_id, (kind, nodes, held) in session.traces.items():
        with session.watching(_NAME, compile_id):
            if held is None:
                _skipped(session, compile_id, kind, message("aot.too_big", nodes=nodes, limit=GRAPH_LIMIT))
            elif nodes > left:
                _skipped(session, compile_id, kind, message("aot.too_many", limit=RUN_LIMIT))
            else:
                left -= nodes
                _tell(session, held)
    session.traces.clear()


def _skipped(session: Session, compile: str, kind: Kind, reason: Message) -> None:
    payload = AotStepsPayload(id=f"{slug(compile)}/joint/{kind}", steps=[], skipped=reason)
    session.artifact(payload, kind="aot_steps", name="aot_steps", stage=_NAME, compile=compile, graph=kind)


def _tell(session: Session, held: Held) -> None:
    real = session.graphs.get((held.compile, _NAME, held.kind))
    if real is None:  # its lifting failed, which was told then
        return
    found: dict[Replay, Traced | Message] = {which: _again(held, which) for which in REPLAYS}
    decomposed = found["decomposed"]
    difference = ""
    if isinstance(decomposed, Traced):
        difference = first_difference(held.real, normal_form(decomposed.module.graph))
    steps: list[AotStep] = []
    before: Graph | None = None
    for which in _SHOWN:
        traced = found[which]
        if not isinstance(traced, Traced):
            steps.append(AotStep(name=which, unknown=traced))
            before = None
            continue
        graph = _lifted(session, held, which, traced)
        step = _step(session, held, which, graph, before, traced.seconds)
        if which == "decomposed":
            step = step.model_copy(update={"equal_to_real": not difference, "difference": difference})
        steps.append(step)
        before = graph
    same = isinstance(decomposed, Traced) and not difference
    steps.append(_step(session, held, "joint", real, None if same else before, None))
    place: dict[str, Any] = {"stage": _NAME, "compile": held.compile, "graph": held.kind}
    session.artifact(AotStepsPayload(id=real.id, steps=steps), kind="aot_steps", name="aot_steps", **place)
    session.artifact(ledger(session, held, real, found, same), kind="ledger", name="ledger", **place)


def _again(held: Held, which: Replay) -> Traced | Message:
    try:
        return replay(held, which)
    except Exception as fault:  # noqa: BLE001 - torch could not: said at the step
        return message("aot.replay_raised", error=f"{type(fault).__name__}: {str(fault)[:300]}")


def _lifted(session: Session, held: Held, which: Replay, traced: Traced) -> Graph:
    return lift_graph(
        traced.module.graph,
        id=f"{slug(held.compile)}/joint/{which}",
        sources=session.sources,
        phase_of=(lambda node: "forward") if held.kind == "inference" else None,
        dynamo=session.graphs.get((held.compile, StageName.DYNAMO, "dynamo")),
        grad_fns=traced.grad_fns,
    )


def _step(
    session: Session,
    held: Held,
    name: Literal["traced", "functionalized", "decomposed", "joint"],
    graph: Graph,
    before: Graph | None,
    seconds: float | None,
) -> AotStep:
    sent = session.artifact(
        encode(graph), kind="graph", name="step", stage=_NAME, compile=held.compile, graph=held.kind
    )
    backward = sum(node.phase == "backward" for node in graph.nodes)
    now, then = _operators(graph), _operators(before) if before is not None else Counter[str]()
    return AotStep(
        name=name,
        graph=sent.hash,
        nodes=len(graph.nodes),
        forward=len(graph.nodes) - backward,
        backward=backward,
        gained=_counts(now - then) if before is not None else [],
        lost=_counts(then - now) if before is not None else [],
        diff=shortened(diff(before, graph).text) if before is not None else "",
        seconds=seconds,
    )


def _operators(graph: Graph) -> Counter[str]:
    return Counter(node.target for node in graph.nodes if node.op.startswith("call"))


def _counts(counter: Counter[str]) -> list[OpCount]:
    return [OpCount(op=op, count=count) for op, count in sorted(counter.items())]
