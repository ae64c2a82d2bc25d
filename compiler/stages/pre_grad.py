"""What Inductor's pre-grad passes change in Dynamo's graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch.fx as fx

from compiler.events import StageFinished, StageName, StageStarted
from compiler.lift import lift_graph
from compiler.session import Session, slug
from compiler.stages.pass_steps import Steps
from compiler.torch_compat.hooks import Lap, ours
from compiler.torch_compat.passes import Recorder, Watch, around_pre_grad, watching_passes

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
            steps: Steps | None = None
            with ours(session, _NAME, compile_id):
                session.emit(StageStarted(), stage=_NAME, compile=compile_id)
                steps = Steps(
                    session,
                    _NAME,
                    compile_id,
                    "dynamo",
                    lambda graph: lift_graph(graph, id=f"{slug(compile_id)}/dynamo/dynamo", sources=session.sources),
                    module.graph,
                )
            if steps is None:
                return run()
            lap = Lap()
            with watch.recording(Recorder(module, "pre_grad_passes", steps.record)):
                result = run()
            with ours(session, _NAME, compile_id):
                steps.emit("pre_grad")
                session.emit(
                    StageFinished(
                        status=steps.status, seconds=lap.seconds(), graph="dynamo", facts={"changed": steps.changed}
                    ),
                    stage=_NAME,
                    compile=compile_id,
                )
            return result

        with around_pre_grad(handle, watch), watching_passes(watch):
            yield


STAGE = PreGrad()
