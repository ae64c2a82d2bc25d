"""What each of Inductor's joint passes changes, and the graph as the partitioner gets it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch.fx as fx

from compiler.events import StageFinished, StageName, StageStarted
from compiler.ir.encode import encode
from compiler.lift import lift_graph
from compiler.linker import between
from compiler.session import Session, slug
from compiler.stages.pass_steps import Steps
from compiler.torch_compat import fx as read
from compiler.torch_compat.aot import around_subgraphs
from compiler.torch_compat.hooks import Lap, ours
from compiler.torch_compat.passes import Recorder, Watch, around_joint, watching_passes

_NAME = StageName.JOINT_PASSES


class JointPasses:
    name = _NAME
    scope: Literal["run", "compile"] = "compile"

    @contextmanager
    def install(self, session: Session) -> Iterator[None]:
        watch = Watch()
        bodies = [False]

        def handle(module: fx.GraphModule, run: Callable[[], Any]) -> Any:
            compile_id = session.compile
            if compile_id is None or bodies[-1]:
                return run()
            kind = "joint" if read.has_backward(module.graph) else "inference"
            steps: Steps | None = None
            with ours(session, _NAME, compile_id):
                session.emit(StageStarted(), stage=_NAME, compile=compile_id)
                steps = Steps(session, _NAME, compile_id, kind, _lifter(session, compile_id, kind), module.graph)
            if steps is None:
                return run()
            lap = Lap()
            with watch.recording(Recorder(module, "joint_graph_passes", steps.record)):
                result = run()
            seconds = lap.seconds()
            with ours(session, _NAME, compile_id):
                _emit(session, compile_id, kind, steps, seconds)
            return result

        with around_joint(handle, watch), watching_passes(watch), around_subgraphs(_pushing(bodies)):
            yield


def _pushing(stack: list[bool]) -> Callable[[bool], None]:
    return lambda entered: stack.append(True) if entered else stack.__delitem__(-1)


def _lifter(session: Session, compile: str, kind: str) -> Callable[[fx.Graph], Any]:
    earlier = session.graphs.get((compile, StageName.JOINT, kind))
    phase_of = (lambda node: "forward") if kind == "inference" else None
    return lambda graph: lift_graph(
        graph,
        id=f"{slug(compile)}/joint_passes/{kind}",
        sources=session.sources,
        phase_of=phase_of,
        earlier=earlier,
        dynamo=session.graphs.get((compile, StageName.DYNAMO, "dynamo")),
    )


def _emit(session: Session, compile: str, kind: str, steps: Steps, seconds: float) -> None:
    graph = steps.current
    session.graphs[compile, _NAME, kind] = graph
    steps.emit("joint_passes")
    links = between(session.graphs.get((compile, StageName.JOINT, kind)), graph)
    session.artifact(encode(graph), kind="graph", name=kind, stage=_NAME, compile=compile, graph=kind)
    session.artifact(links.payload(), kind="links", name="links", stage=_NAME, compile=compile, graph=kind)
    session.emit(
        StageFinished(
            status=steps.status,
            seconds=seconds,
            graph=kind,
            facts={"changed": steps.changed, "nodes": len(graph.nodes)},
        ),
        stage=_NAME,
        compile=compile,
    )


STAGE = JointPasses()
