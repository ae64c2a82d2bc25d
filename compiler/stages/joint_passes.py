"""What each of Inductor's joint passes changes, and the graph as the partitioner gets it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch.fx as fx

from compiler.events import StageName
from compiler.ir.graph import Graph
from compiler.lift import lift_graph
from compiler.session import Session, slug
from compiler.stages.pass_steps import Steps, run_recorded
from compiler.torch_compat import fx as read
from compiler.torch_compat.aot import around_subgraphs
from compiler.torch_compat.passes import Watch, around_joint, watching_passes

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
            return run_recorded(
                lambda: Steps(session, _NAME, compile_id, kind, _lifter(session, compile_id, kind), module.graph),
                (session, _NAME, compile_id),
                (watch, "joint_graph_passes", module),
                run,
                lambda steps, seconds: steps.finish_with_graph(
                    "joint_passes", seconds, _earlier(session, compile_id, kind), code=False
                ),
            )

        with around_joint(handle, watch), watching_passes(watch), around_subgraphs(_pushing(bodies)):
            yield


def _pushing(stack: list[bool]) -> Callable[[bool], None]:
    return lambda entered: stack.append(True) if entered else stack.__delitem__(-1)


def _earlier(session: Session, compile: str, kind: str) -> Graph | None:
    return session.graphs.get((compile, StageName.JOINT, kind))


def _lifter(session: Session, compile: str, kind: str) -> Callable[[fx.Graph], Graph]:
    earlier = _earlier(session, compile, kind)
    phase_of = (lambda node: "forward") if kind == "inference" else None
    return lambda graph: lift_graph(
        graph,
        id=f"{slug(compile)}/joint_passes/{kind}",
        sources=session.sources,
        phase_of=phase_of,
        earlier=earlier,
        dynamo=session.graphs.get((compile, StageName.DYNAMO, "dynamo")),
    )


STAGE = JointPasses()
