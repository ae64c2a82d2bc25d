"""The steps of a pipeline of passes, gathered while it runs. Shared by the three stages that have one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch.fx as fx

from compiler.events import StageFinished, StageName, StageStarted, StageStatus
from compiler.ir.diff import diff
from compiler.ir.encode import encode
from compiler.ir.graph import Graph
from compiler.ir.passes import PassesPayload, PassStep
from compiler.linker import between, graph_code
from compiler.session import Session, slug
from compiler.torch_compat.hooks import Lap, ours
from compiler.torch_compat.passes import Recorder, Watch

# Diffs longer than this are cut: the graphs of both sides are there to be looked at.
_DIFF_LINES = 400


class Steps:
    """`lift` makes the graph a value; it is called once at the start, and after each pass that changed something."""

    def __init__(
        self,
        session: Session,
        stage: StageName,
        compile: str,
        graph: str,
        lift: Callable[[fx.Graph], Graph],
        start: fx.Graph,
    ) -> None:
        self._session, self._stage, self._compile, self._graph = session, stage, compile, graph
        self._lift = lift
        self._steps: list[PassStep] = []
        self._unchanged = 0
        self._hash: str | None = None
        self.current = lift(start)

    def record(self, name: str, changed: bool, seconds: float | None, graph: fx.Graph) -> None:
        with ours(self._session, self._stage, self._compile):
            count = len(self.current.nodes)
            if not changed:
                self._unchanged += 1
                self._steps.append(
                    PassStep(name=name, changed=False, seconds=seconds, nodes_before=count, nodes_after=count)
                )
                return
            before = self._hash or self._send(self.current)
            after = self._lift(graph)
            delta = diff(self.current, after)
            self.current = after
            self._hash = self._send(after)
            self._steps.append(
                PassStep(
                    name=name,
                    changed=True,
                    seconds=seconds,
                    nodes_before=count,
                    nodes_after=len(after.nodes),
                    added=list(delta.added),
                    removed=list(delta.removed),
                    diff=shortened(delta.text),
                    before=before,
                    after=self._hash,
                )
            )

    def _send(self, graph: Graph) -> str:
        """A graph in the middle of the pipeline is an artifact of its own, called `step`."""
        return self._session.artifact(
            encode(graph), kind="graph", name="step", stage=self._stage, compile=self._compile, graph=self._graph
        ).hash

    @property
    def changed(self) -> int:
        return sum(step.changed for step in self._steps)

    @property
    def status(self) -> StageStatus:
        return StageStatus.CHANGED if self.changed else StageStatus.UNCHANGED

    def emit(self, name: str) -> None:
        self._session.artifact(
            PassesPayload(
                id=f"{slug(self._compile)}/{self._stage.value}/{self._graph}",
                steps=self._steps,
                unchanged=self._unchanged,
            ),
            kind="passes",
            name=name,
            stage=self._stage,
            compile=self._compile,
            graph=self._graph,
        )

    def finish(self, seconds: float, **facts: int) -> None:
        self._session.emit(
            StageFinished(
                status=self.status, seconds=seconds, graph=self._graph, facts={"changed": self.changed, **facts}
            ),
            stage=self._stage,
            compile=self._compile,
        )

    def finish_with_graph(self, name: str, seconds: float, earlier: Graph | None, code: bool) -> None:
        """Also what came of the graph: kept for later stages, and linked to the neighbour that it was made from."""
        session, stage, compile_id, kind, graph = self._session, self._stage, self._compile, self._graph, self.current
        session.graphs[compile_id, stage, kind] = graph
        self.emit(name)
        session.artifact(encode(graph), kind="graph", name=kind, stage=stage, compile=compile_id, graph=kind)
        if code:
            session.artifact(graph_code(graph), kind="code", name=kind, stage=stage, compile=compile_id, graph=kind)
        links = between(earlier, graph).payload()
        session.artifact(links, kind="links", name="links", stage=stage, compile=compile_id, graph=kind)
        self.finish(seconds, nodes=len(graph.nodes))


def run_recorded(
    start: Callable[[], Steps],
    where: tuple[Session, StageName, str],
    recording: tuple[Watch, str, fx.GraphModule],
    run: Callable[[], Any],
    finish: Callable[[Steps, float], None],
) -> Any:
    """What `run`, torch's own pipeline of passes, returns; told as a stage from its start to its end, `where` being session,
    stage and compile. `recording` is the watch, the name of torch's function, and the module that it works on. `finish` gets
    the steps and torch's own seconds. Where the start fails, the passes run unwatched."""
    session, stage, compile_id = where
    watch, function, module = recording
    steps: Steps | None = None
    with ours(session, stage, compile_id):
        session.emit(StageStarted(), stage=stage, compile=compile_id)
        steps = start()
    if steps is None:
        return run()
    lap = Lap()
    with watch.recording(Recorder(module, function, steps.record)):
        result = run()
    seconds = lap.seconds()
    with ours(session, stage, compile_id):
        finish(steps, seconds)
    return result


def shortened(text: str) -> str:
    """A diff, cut where it is too long to be read."""
    lines = text.split("\n")
    if len(lines) <= _DIFF_LINES:
        return text
    return "\n".join([*lines[:_DIFF_LINES], f"… {len(lines) - _DIFF_LINES}"])
