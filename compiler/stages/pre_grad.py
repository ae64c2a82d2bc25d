"""What Inductor's pre-grad passes change in Dynamo's graph."""

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
from compiler.torch_compat.passes import Watch, around_pre_grad, watching_passes

_NAME = StageName.PRE_GRAD


class PreGrad:
    name = _NAME
    scope: Literal["run", "compile"] = "compile"

    @contextmanager
    def install(self, session: Session) -> Iterator[None]:
        watch = Watch()

        def handle(module: fx.GraphModule, run: Callable[[], Any]) -> Any:
            compile_id = session.compile
            if compile_id is None:
                return run()

            def lift(graph: fx.Graph) -> Graph:
                return lift_graph(graph, id=f"{slug(compile_id)}/dynamo/dynamo", sources=session.sources)

            def finish(steps: Steps, seconds: float) -> None:
                steps.emit("pre_grad")
                steps.finish(seconds)

            return run_recorded(
                lambda: Steps(session, _NAME, compile_id, "dynamo", lift, module.graph),
                (session, _NAME, compile_id),
                (watch, "pre_grad_passes", module),
                run,
                finish,
            )

        with around_pre_grad(handle, watch), watching_passes(watch):
            yield


STAGE = PreGrad()
