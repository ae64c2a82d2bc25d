"""How the joint graph is split: what is saved, what runs again, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch.fx as fx

from compiler.events import Finding, Severity, StageFinished, StageName, StageSkipped, StageStarted
from compiler.ir.encode import encode
from compiler.ir.graph import Graph, Node
from compiler.ir.partition import CheckpointRegion, NodeDecision, PartitionPayload, SavedTensor
from compiler.lift import lift_graph
from compiler.linker import Links, graph_code
from compiler.session import Session, slug
from compiler.stages.verdicts import Split, decide
from compiler.text import message
from compiler.torch_compat import partitioner as compat
from compiler.torch_compat.aot import Kind, around_partition, around_subgraphs, around_trace
from compiler.torch_compat.backwards import second_backwards
from compiler.torch_compat.hooks import Lap, ours
from compiler.torch_compat.passes import Watch, around_joint

_NAME = StageName.PARTITION
_MOST_EDGES = 20_000
_NAMED = 6


class Partition:
    name = _NAME
    scope: Literal["run", "compile"] = "compile"

    @contextmanager
    def install(self, session: Session) -> Iterator[None]:
        observed: list[compat.Observation] = []
        bodies = [0]
        passes: list[float] = []  # Inductor runs its joint passes inside the partitioner's call

        def around_bodies(entered: bool) -> None:
            bodies[0] += 1 if entered else -1

        def traced(kind: Kind, run: Callable[[], Any]) -> Any:
            result = run()
            compile_id = session.compile
            if kind == "inference" and compile_id is not None:
                reason = message("partition.no_backward")
                session.emit(StageSkipped(reason=reason), stage=_NAME, compile=compile_id)
            return result

        def timed_passes(module: fx.GraphModule, run: Callable[[], Any]) -> Any:
            lap = Lap()
            result = run()
            passes.append(lap.seconds())
            return result

        def handle(module: fx.GraphModule, partitioner: str, run: Callable[[], Any]) -> Any:
            compile_id = session.compile
            if compile_id is None:
                return run()
            observation = compat.Observation()
            observed.append(observation)
            traced_nodes = len(module.graph.nodes)
            given: list[Graph] = []
            marks = compat.marks(module.graph)
            with ours(session, _NAME, compile_id):
                if partitioner != "partition_fn":  # not Inductor's: no passes come between
                    given.append(_lift(session, compile_id, module.graph, "joint_passes/joint", None))
            passes.clear()
            lap = Lap()
            try:
                result = run()
            finally:
                observed.pop()
            seconds = lap.seconds() - sum(passes)
            with ours(session, _NAME, compile_id):
                session.emit(StageStarted(), stage=_NAME, compile=compile_id)
                after_passes = session.graphs.get((compile_id, StageName.JOINT_PASSES, "joint"))
                joint = given[0] if given else after_passes or session.graphs[compile_id, StageName.JOINT, "joint"]
                name = _partitioner(partitioner, observation)
                graphs = _Graphs(joint, result[0].graph, result[1].graph, marks)
                _emit(session, compile_id, graphs, observation, name, seconds)
                session.tally.joint_nodes_before_passes.append(traced_nodes)
            return result

        def shared(line: int | None) -> None:
            hint = message("partition.shared_backward_hint")
            said = message("partition.shared_backward")
            session.emit(Finding(severity=Severity.ERROR, message=said, line=line, hint=hint), stage=_NAME)

        def current() -> compat.Observation | None:
            return observed[-1] if observed and not bodies[0] else None

        with (
            around_trace(traced),
            around_partition(handle),
            around_subgraphs(around_bodies),
            around_joint(timed_passes, Watch()),
            compat.observing(current),
            second_backwards(shared, session.sources),
        ):
            try:
                yield
            finally:
                _tell_absent(session)


def _tell_absent(session: Session) -> None:
    """What a forward was to save and did not make: the run fails of it, and torch does not say of what."""
    for module in session.modules:
        if module.graph != "forward" or module.compile is None:
            continue
        graph = session.graphs.get((module.compile, _NAME, "forward"))
        lines = {node.name: node.line for node in graph.nodes} if graph is not None else {}
        for name, operator in module.absent.items():
            finding = Finding(
                severity=Severity.ERROR,
                message=message("partition.absent", node=name, operator=operator),
                line=lines.get(name),
                entity=f"{slug(module.compile)}/partition/forward/{name}",
            )
            session.emit(finding, stage=_NAME, compile=module.compile)


def _partitioner(given: str, observation: compat.Observation) -> str:
    if observation.solved:
        return "min_cut_rematerialization_partition"
    if given == "partition_fn":
        return compat.custom_partitioner() or "default_partition"
    return given


def _lift(session: Session, compile: str, graph: fx.Graph, place: str, earlier: Graph | None) -> Graph:
    half = place.rsplit("/", 1)[-1]
    return lift_graph(
        graph,
        id=f"{slug(compile)}/{place}",
        sources=session.sources,
        phase_of=None if half == "joint" else lambda node: half,
        earlier=earlier,
        dynamo=session.graphs.get((compile, StageName.DYNAMO, "dynamo")),
    )


@dataclass(frozen=True)
class _Graphs:
    """A joint graph as lifted, torch's two halves of it, and what checkpoints wrote on its nodes."""

    joint: Graph
    forward: fx.Graph
    backward: fx.Graph
    marks: dict[str, compat.Mark]


def _emit(
    session: Session,
    compile: str,
    graphs: _Graphs,
    observation: compat.Observation,
    partitioner: str,
    seconds: float,
) -> None:
    joint = graphs.joint
    kept = compat.kept(graphs.forward, graphs.backward)
    split = Split.of(
        joint,
        _lift(session, compile, graphs.forward, "partition/forward", joint),
        _lift(session, compile, graphs.backward, "partition/backward", joint),
        saved=[name for name, is_tensor, _ in kept if is_tensor],
    )
    decisions = [_checkpointed(one, graphs.marks) for one in decide(split, observation.cut, partitioner)]
    payload = _payload(compile, split, graphs, kept, decisions, observation, partitioner)
    for graph in (split.forward, split.backward):
        half = graph.id.rsplit("/", 1)[-1]
        session.graphs[compile, _NAME, half] = graph
        links = Links()
        links.lines(graph)
        links.same_names(joint, graph)
        session.artifact(encode(graph), kind="graph", name=half, stage=_NAME, compile=compile, graph=half)
        session.artifact(graph_code(graph), kind="code", name=half, stage=_NAME, compile=compile, graph=half)
        session.artifact(links.payload(), kind="links", name="links", stage=_NAME, compile=compile, graph=half)
    session.artifact(payload, kind="partition", name="partition", stage=_NAME, compile=compile, graph="joint")
    if observation.cut is not None:
        network = compat.network(observation.cut, f"{slug(compile)}/partition/network", _MOST_EDGES)
        session.artifact(network, kind="network", name="network", stage=_NAME, compile=compile, graph="joint")
    for finding in _findings(payload):
        session.emit(finding, stage=_NAME, compile=compile)
    _count(session, split, payload)
    session.emit(
        StageFinished(
            seconds=seconds,
            graph="joint",
            facts={
                "saved": len(payload.saved),
                "saved_bytes": payload.saved_bytes,
                "recomputed": len(payload.recomputed),
            },
        ),
        stage=_NAME,
        compile=compile,
    )


def _payload(
    compile: str,
    split: Split,
    graphs: _Graphs,
    kept: list[tuple[str, bool, bool]],
    decisions: list[NodeDecision],
    observation: compat.Observation,
    partitioner: str,
) -> PartitionPayload:
    in_backward = {node.name: node for node in split.backward.nodes}
    readers: dict[str, list[str]] = {}
    for node in split.backward.nodes:
        for source in node.inputs:
            readers.setdefault(source, []).append(node.name)
    in_joint = {node.name: node for node in split.joint.nodes}
    saved = [
        SavedTensor(
            node=name,
            bytes=bytes_of(in_backward[name]),
            is_input=is_input,
            readers=readers.get(name, []),
            line=in_joint[name].line if name in in_joint else None,
        )
        for name, is_tensor, is_input in kept
        if is_tensor
    ]
    cut = observation.cut
    heavy, afresh = compat.heavy(graphs.backward), compat.draws_afresh(graphs.backward)
    return PartitionPayload(
        id=f"{slug(compile)}/partition/joint",
        partitioner=partitioner,
        decisions=decisions,
        saved=saved,
        saved_bytes=sum(tensor.bytes or 0 for tensor in saved),
        saved_activation_bytes=sum(tensor.bytes or 0 for tensor in saved if not tensor.is_input),
        save_everything_bytes=_save_everything(split.joint),
        recomputed=list(split.recomputed),
        recomputed_heavy=[name for name in split.recomputed if name in heavy],
        drawn_again=[name for name in split.recomputed if name in afresh],
        regions=_regions(decisions),
        memory_budget=observation.memory_budget,
        network_nodes=cut.nodes if cut else None,
        network_edges=cut.edges if cut else None,
        cut_value=compat.finite(cut.value) if cut else None,
        options=compat.settings() | (cut.options if cut else {}),
    )


def _checkpointed(decision: NodeDecision, marks: dict[str, compat.Mark]) -> NodeDecision:
    mark = marks.get(decision.node)
    return decision if mark is None else decision.model_copy(update={"policy": mark.policy, "region": mark.region})


def _regions(decisions: list[NodeDecision]) -> list[CheckpointRegion]:
    inside: dict[int, list[NodeDecision]] = {}
    for decision in decisions:
        if decision.region is not None:
            inside.setdefault(decision.region, []).append(decision)
    return [
        CheckpointRegion(
            region=region,
            policies=dict(Counter(one.policy for one in members)),
            lines=sorted({one.line for one in members if one.line is not None}),
            nodes=len(members),
            recomputed=sum(one.verdict == "recomputed" for one in members),
        )
        for region, members in sorted(inside.items())
    ]


def _findings(payload: PartitionPayload) -> Iterator[Finding]:
    """What runs again and should be known: what draws random numbers, and what is costly."""
    lines = {decision.node: decision.line for decision in payload.decisions}
    backward = f"{payload.id.removesuffix('/joint')}/backward"

    def line(names: list[str]) -> int | None:
        return next((lines[name] for name in names if lines.get(name) is not None), None)

    if payload.drawn_again:
        again = payload.drawn_again
        yield Finding(
            severity=Severity.ERROR,
            message=message("partition.draws_again", count=len(again)),
            line=line(again),
            entity=f"{backward}/{again[0]}",
            hint=message("partition.draws_again_hint"),
        )
    if payload.recomputed_heavy:
        again = payload.recomputed_heavy
        names = ", ".join(again[:_NAMED]) + (" …" if len(again) > _NAMED else "")
        yield Finding(
            severity=Severity.NOTE,
            message=message("partition.heavy_again", count=len(again), names=names),
            line=line(again),
            entity=f"{backward}/{again[0]}",
        )


def bytes_of(node: Node) -> int | None:
    return node.value.bytes if node.value is not None and node.value.kind == "tensor" else None


def _save_everything(joint: Graph) -> int:
    """Bytes of all forward tensors that the backward reads directly: what would be kept if nothing ran twice."""
    forward = {node.name: node for node in joint.nodes if node.phase == "forward"}
    read = {
        source: None
        for node in joint.nodes
        if node.phase == "backward" and node.op != "output"
        for source in node.inputs
    }
    return sum(bytes_of(forward[name]) or 0 for name in read if name in forward)


def _count(session: Session, split: Split, payload: PartitionPayload) -> None:
    tally = session.tally
    tally.joint_nodes.append(len(split.joint.nodes))
    tally.fw_nodes.append(len(split.forward.nodes))
    tally.bw_nodes.append(len(split.backward.nodes))
    tally.saved_tensors.append(len(payload.saved))
    tally.saved_bytes.append(payload.saved_bytes)
    tally.saved_activation_bytes.append(payload.saved_activation_bytes)
    tally.recomputed_ops.append(len(split.recomputed))


STAGE = Partition()
