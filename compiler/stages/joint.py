"""The graph that AOTAutograd traces: forward and backward together, or the forward alone when nothing needs a gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

from compiler.events import StageFinished, StageName, StageStarted
from compiler.ir.encode import encode
from compiler.lift import lift_graph
from compiler.linker import from_dynamo, graph_code
from compiler.session import Session, slug
from compiler.stages import aot_steps
from compiler.torch_compat import fx as read
from compiler.torch_compat.aot import Kind, around_trace, grad_fn_names
from compiler.torch_compat.hooks import Lap, ours

_NAME = StageName.JOINT


class Joint:
    name = _NAME
    scope: Literal["run", "compile"] = "compile"

    @contextmanager
    def install(self, session: Session) -> Iterator[None]:
        grad_fns: dict[int, str] = {}

        def handle(kind: Kind, run: Callable[[], Any]) -> Any:
            compile_id = session.compile
            if compile_id is None:
                return run()
            with ours(session, _NAME, compile_id):
                grad_fns.clear()
                for other in ("joint", "inference"):
                    session.graphs.pop((compile_id, _NAME, other), None)
                session.emit(StageStarted(), stage=_NAME, compile=compile_id)
            lap = Lap()
            result = run()
            seconds = lap.seconds()
            with ours(session, _NAME, compile_id):
                _emit(session, compile_id, kind, result[0].graph, dict(grad_fns), seconds)
            return result

        with around_trace(handle), grad_fn_names(grad_fns), aot_steps.keeping(session):
            yield


def _emit(session: Session, compile: str, kind: Kind, graph: Any, grad_fns: dict[int, str], seconds: float) -> None:
    dynamo = session.graphs.get((compile, StageName.DYNAMO, "dynamo"))
    phase_of = (lambda node: "forward") if kind == "inference" else None
    lifted = lift_graph(
        graph,
        id=f"{slug(compile)}/joint/{kind}",
        sources=session.sources,
        phase_of=phase_of,
        dynamo=dynamo,
        grad_fns=grad_fns,
    )
    session.graphs[compile, _NAME, kind] = lifted
    origins = read.origins(graph)
    placeholders = [node.name for node in dynamo.nodes if node.op == "placeholder"] if dynamo is not None else []
    for name, index in read.input_indices(graph).items():
        if index < len(placeholders):
            origins[name] = [placeholders[index]]
    for payload, artifact in (
        (encode(lifted), "graph"),
        (graph_code(lifted), "code"),
        (from_dynamo(dynamo, lifted, origins).payload(), "links"),
    ):
        name = "links" if artifact == "links" else kind
        session.artifact(payload, kind=artifact, name=name, stage=_NAME, compile=compile, graph=kind)
    backward = sum(node.phase == "backward" for node in lifted.nodes)
    session.emit(
        StageFinished(
            seconds=seconds,
            graph=kind,
            facts={"nodes": len(lifted.nodes), "forward": len(lifted.nodes) - backward, "backward": backward},
        ),
        stage=_NAME,
        compile=compile,
    )


STAGE = Joint()
