"""What Inductor's post-grad passes change in the forward, the backward or the inference graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch.fx as fx

from compiler.events import StageFinished, StageName, StageStarted
from compiler.ir.encode import encode
from compiler.ir.graph import Graph
from compiler.lift import lift_graph
from compiler.linker import between, graph_code
from compiler.session import Session, slug
from compiler.stages.pass_steps import Steps
from compiler.torch_compat.hooks import Lap, ours
from compiler.torch_compat.passes import Recorder, Watch, around_post_grad, watching_passes

_NAME = StageName.POST_GRAD


class PostGrad:
    name = _NAME
    scope: Literal["run", "compile"] = "compile"

    @contextmanager
    def install(self, session: Session) -> Iterator[None]:
        watch = Watch()

        def handle(module: fx.GraphModule, kind: str, run: Callable[[], Any]) -> Any:
            compile_id = session.compile
            if compile_id is None:
                return run()
            steps: Steps | None = None
            earlier = _earlier(session, compile_id, kind)
            with ours(session, _NAME, compile_id):
                session.emit(StageStarted(), stage=_NAME, compile=compile_id)
                steps = Steps(
                    session, _NAME, compile_id, kind, _lifter(session, compile_id, kind, earlier), module.graph
                )
            if steps is None:
                return run()
            lap = Lap()
            with watch.recording(Recorder(module, "post_grad_passes", steps.record)):
                result = run()
            seconds = lap.seconds()
            with ours(session, _NAME, compile_id):
                _emit(session, compile_id, kind, earlier, steps, seconds)
            return result

        with around_post_grad(handle, watch), watching_passes(watch):
            yield


def _earlier(session: Session, compile: str, kind: str) -> Graph | None:
    """The neighbour: a half of the partition, or what the joint passes left of an inference graph."""
    stage = StageName.JOINT_PASSES if kind == "inference" else StageName.PARTITION
    return session.graphs.get((compile, stage, kind))


def _lifter(session: Session, compile: str, kind: str, earlier: Graph | None) -> Callable[[fx.Graph], Graph]:
    phase = "backward" if kind == "backward" else "forward"
    return lambda graph: lift_graph(
        graph,
        id=f"{slug(compile)}/post_grad/{kind}",
        sources=session.sources,
        phase_of=lambda node: phase,
        earlier=earlier,
        dynamo=session.graphs.get((compile, StageName.DYNAMO, "dynamo")),
    )


def _emit(session: Session, compile: str, kind: str, earlier: Graph | None, steps: Steps, seconds: float) -> None:
    graph = steps.current
    session.graphs[compile, _NAME, kind] = graph
    steps.emit("post_grad")
    links = between(earlier, graph)
    session.artifact(encode(graph), kind="graph", name=kind, stage=_NAME, compile=compile, graph=kind)
    session.artifact(graph_code(graph), kind="code", name=kind, stage=_NAME, compile=compile, graph=kind)
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


STAGE = PostGrad()
