"""What Inductor's post-grad passes change in the forward, the backward or the inference graph."""

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
from compiler.torch_compat.passes import Watch, around_post_grad, watching_passes

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
            earlier = _earlier(session, compile_id, kind)
            lift = _lifter(session, compile_id, kind, earlier)
            return run_recorded(
                lambda: Steps(session, _NAME, compile_id, kind, lift, module.graph),
                (session, _NAME, compile_id),
                (watch, "post_grad_passes", module),
                run,
                lambda steps, seconds: steps.finish_with_graph("post_grad", seconds, earlier, code=True),
            )

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


STAGE = PostGrad()
