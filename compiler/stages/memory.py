"""Memory: live bytes over one step, predicted by a dry run of Inductor's own wrapper, and measured.

The dry run needs no C++ compiler: it belongs to the capture phase. What is measured needs the native build.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

import torch

from compiler.beyond_plan import beyond_plan
from compiler.events import Finding, Mode, Severity, StageFailed, StageFinished, StageName, StageSkipped, StageStarted
from compiler.fork import AsideError, aside
from compiler.ir.code import CodePayload
from compiler.ir.graph import Node
from compiler.ir.memory import BeyondPlan, MemoryPayload, MemoryTimelinePayload, SavedForBackward, Series
from compiler.lift import lift_graph
from compiler.plan_timeline import plan_timeline
from compiler.session import Session, slug
from compiler.snippet import Loaded
from compiler.stages.kept import saved_by_partition
from compiler.step import (
    Measured,
    Recorder,
    Saved,
    Step,
    Subject,
    measure,
    saved_by_compiled,
    saved_by_eager,
    script_subject,
    subject_of,
)
from compiler.text import Message, message
from compiler.timeline import GeneratedCode, Origin, Origins, build, locate
from compiler.torch_compat.aot import around_partition
from compiler.torch_compat.compiles import current_compile
from compiler.torch_compat.cuda_allocator import record_on_device
from compiler.torch_compat.interpreter import interpreted
from compiler.torch_compat.profiler import record
from compiler.torch_compat.replay import Replay
from compiler.torch_compat.wrapper import Built, make_dry, mark_lines, marker

STAGE = StageName.MEMORY
LIMIT_SECONDS = 60.0
_WORTH_TELLING_BYTES = 1024
# How Inductor's C++ templates ask for memory of their own.
_ALLOCATES = "at::getCPUAllocator()"


@dataclass(frozen=True)
class _Dry:
    """What the fork of the dry run says. `partition` is what the partitioner said of the graphs that ran in the measured step,
    for the sizes they were called with: bytes saved, and those of activations; None where it was not asked. `codes` is what was
    generated anew in the fork; `again` whether that still happened in the measured step."""

    measured: Measured
    eager: Saved | None
    compiled: Saved | None
    partition: tuple[int, int] | None
    codes: list[tuple[str, str, str]] = field(default_factory=list)
    again: bool = False


def dry_run(session: Session, loaded: Loaded | None, mode: Mode) -> None:
    """The dry run, after the calls were captured: emits the stage's events. Of a script (`loaded` None), the step is the first
    call of something that it compiled (`session.first_call`). A fault of the dry run is the stage's failure."""
    subject = (
        subject_of(loaded, mode, session.options.mode)
        if loaded is not None
        else script_subject(session.first_call, session.sources.main)
    )
    session.emit(StageStarted(), stage=STAGE)
    if subject is None:
        session.emit(StageSkipped(reason=message("memory.no_step")), stage=STAGE)
        return
    if not session.modules:
        session.emit(StageSkipped(reason=message("memory.nothing_compiled")), stage=STAGE)
        return
    try:
        found = aside(lambda: _dry_in_fork(session, subject), LIMIT_SECONDS)
    except AsideError as fault:
        session.emit(StageFailed(cause=fault.cause, error=fault.detail), stage=STAGE)
        return
    with session.watching(STAGE):
        _tell_dry(session, subject, found)


def estimate(session: Session, memory_bytes: int, note: Message) -> None:
    """For a GPU's code, which has no dry run: Inductor's plan of the step, and the device's memory to hold it against. `note`
    says what that is worth. Emits the stage's events."""
    session.emit(StageStarted(), stage=STAGE)
    if not session.modules:
        session.emit(StageSkipped(reason=message("memory.nothing_compiled")), stage=STAGE)
        return
    with session.watching(STAGE):
        peak = _tell_plan(session, session_origins(session))
        tally = session.tally
        split = len(tally.saved_bytes) == sum(module.graph == "forward" for module in session.modules) > 0
        payload = MemoryPayload(
            peaks={} if peak is None else {"plan": peak},
            saved=SavedForBackward(
                partition_bytes=sum(tally.saved_bytes) if split else None,
                partition_activation_bytes=sum(tally.saved_activation_bytes) if split else None,
            ),
            definition=message("memory.definition"),
            limit_bytes=memory_bytes,
            notes=[note],
        )
        session.artifact(payload, kind="memory", name="memory", stage=STAGE)
        facts: dict[str, int | float | str | bool | None] = {} if peak is None else {"peak_plan": peak}
        session.emit(StageFinished(facts=facts), stage=STAGE)


def _dry_in_fork(session: Session, subject: Subject) -> _Dry:
    torch.set_num_threads(1)
    captured = len(session.modules)
    replay = Replay(session.modules)
    # A compile in here (other options than the script's) is not for the C++ compiler either.
    hooks = interpreted(current_compile, replay.add)

    def lifted(half: Literal["forward", "backward"], graph: torch.fx.Graph) -> None:
        key = (current_compile() or "", StageName.PARTITION, half)
        session.graphs[key] = lift_graph(graph, id="/".join(key), sources=session.sources, phase_of=lambda _: half)

    def partitioned(module: torch.fx.GraphModule, partitioner: str, run: Callable[[], Any]) -> Any:
        halves = run()
        lifted("forward", halves[0].graph)
        lifted("backward", halves[1].graph)
        return halves

    eager = saved_by_eager(Step(subject, subject.model)) if subject.backward else None
    with hooks, around_partition(partitioned):
        step = Step(subject, torch.compile(subject.model, **subject.compile_kwargs))
        measured = measure(step, file=subject.file, before=replay.begin)
        again, used = replay.again, replay.used
        compiled = None
        if subject.backward:
            replay.begin(False)
            step.once()
            replay.begin(True)
            compiled = saved_by_compiled(step)
    called = [(session.modules[index], given) for index, given in used]
    forwards = [(module.compile, given) for module, given in called if module.graph == "forward"]
    partition = saved_by_partition(session, forwards)
    codes = [(module.compile or "", module.graph, module.code) for module in session.modules[captured:]]
    return _Dry(measured, eager, compiled, partition, codes, again)


def _tell_dry(session: Session, subject: Subject, found: _Dry) -> None:
    caveats = [message("memory.again")] if found.again else []
    generated = [(module.compile or "", module.graph, module.code) for module in session.modules] + found.codes
    if allocating := sum(_ALLOCATES in text for _, _, text in generated):
        caveats.append(message("memory.kernel_allocates", count=allocating))
    origins = session_origins(session)
    codes = [GeneratedCode(*code, origins) for code in generated]
    timeline = timeline_of(found.measured, codes, "dry_run", message("memory.method_dry_run"), caveats)
    session.artifact(timeline, kind="timeline", name="dry_run", stage=STAGE)
    plan_peak = _tell_plan(session, origins)
    texts = {f"{slug(compile_id)}/codegen/{graph}": text for compile_id, graph, text in generated}
    beyond = None if plan_peak is None else beyond_plan(timeline, texts)
    partition = found.partition
    saved = SavedForBackward(
        partition_bytes=partition and partition[0],
        partition_activation_bytes=partition and partition[1],
        kept_tensor_bytes=found.compiled.tensor_bytes if found.compiled else None,
        kept_storages_bytes=found.compiled.storage_bytes if found.compiled else None,
        eager_storages_bytes=found.eager.storage_bytes if found.eager else None,
    )
    kept, eager = saved.kept_storages_bytes, saved.eager_storages_bytes
    if kept is not None and eager is not None and kept - eager >= _WORTH_TELLING_BYTES:
        text = message("memory.keeps_more", compiled=kept, eager=eager)
        session.emit(Finding(severity=Severity.NOTE, message=text), stage=STAGE)
    session.saved = saved
    peaks = {"dry_run": timeline.peak_bytes} | ({} if plan_peak is None else {"plan": plan_peak})
    tell(session, peaks, saved, subject, beyond=beyond)


def _tell_plan(session: Session, origins: Origins) -> int | None:
    """Inductor's plan: of the one step, whose peak it returns, where there is one training graph or nothing but one inference
    graph; else of each graph."""
    texts = {(module.compile or "", module.graph): module.code for module in session.modules}
    known = [
        (compile_id, plan, GeneratedCode(compile_id, plan.graph, text, origins), text)
        for compile_id, plan in session.plans
        if (text := texts.get((compile_id, plan.graph))) is not None
    ]
    graphs = [plan.graph for _, plan, _, _ in known]
    same = len({compile_id for compile_id, _, _, _ in known}) == 1
    if same and (graphs == ["forward", "backward"] or graphs == ["inference"]):
        timeline = plan_timeline([(plan, code, text) for _, plan, code, text in known])
        session.artifact(timeline, kind="timeline", name="plan", stage=STAGE)
        return timeline.peak_bytes
    for compile_id, plan, code, text in known:
        timeline = plan_timeline([(plan, code, text)])
        timeline = timeline.model_copy(update={"id": f"{slug(compile_id)}/memory/{plan.graph}"})
        session.artifact(timeline, kind="timeline", name="plan", stage=STAGE, compile=compile_id, graph=plan.graph)
    return None


def tell(
    session: Session,
    peaks: dict[str, int],
    saved: SavedForBackward,
    subject: Subject,
    notes: Sequence[Message] = (),
    beyond: BeyondPlan | None = None,
) -> None:
    """The stage's figures, and its end."""
    about = [subject.note] if subject.note is not None else []
    payload = MemoryPayload(
        peaks=peaks,
        saved=saved,
        beyond_plan=beyond,
        definition=message("memory.definition"),
        notes=[*about, *notes],
    )
    session.artifact(payload, kind="memory", name="memory", stage=STAGE)
    facts: dict[str, int | float | str | bool | None] = {f"peak_{name}": size for name, size in peaks.items()}
    session.emit(StageFinished(facts=facts | {"saved_bytes": saved.kept_storages_bytes}), stage=STAGE)


def timeline_of(
    measured: Measured,
    codes: Sequence[GeneratedCode],
    series: Series,
    method: Message,
    caveats: Sequence[Message] = (),
) -> MemoryTimelinePayload:
    return build(
        measured.allocations,
        locate(codes),
        series=series,
        method=method,
        outputs=measured.outputs,
        gradients=measured.gradients,
        caveats=caveats,
    )


def session_origins(session: Session) -> Origins:
    """What a line of generated code comes from, by the marks that the codegen stage gave it."""
    marks: dict[tuple[str, str], dict[int, list[str]]] = {
        key: _entities_by_line(code) for key, code in session.codes.items()
    }

    @cache
    def nodes(compile: str, graph: str) -> dict[str, Node]:
        lifted = session.graphs.get((compile, StageName.POST_GRAD, graph))
        return {node.name: node for node in lifted.nodes} if lifted is not None else {}

    def origin(compile: str, graph: str, line: int) -> Origin | None:
        entities = marks.get((compile, graph), {}).get(line, [])
        lines = [int(entity[5:]) for entity in entities if entity.startswith("line/")]
        names = [entity.rsplit("/", 1)[-1] for entity in entities if not entity.startswith("line/")]
        found = [node for name in names if (node := nodes(compile, graph).get(name)) is not None]
        lines = lines or [node.line for node in found if node.line]
        modules = [node.module for node in found if node.module]
        if not lines and not modules:
            return None
        return Origin(line=lines[-1] if lines else 0, module=modules[-1] if modules else "")

    return origin


def _entities_by_line(code: CodePayload) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for line, entity in zip(code.marks.line, code.marks.entity, strict=True):
        found.setdefault(line, []).append(code.strings[entity])
    return found


# --- the native phase: measured --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Native:
    """A compiled step that really runs: its function, on a subject of its own, and the wrappers that were built for it."""

    subject: Subject
    function: Callable[..., object]
    built: Sequence[Built]


def measured(
    session: Session, eager: Subject, compiled: Native | Message, captured: SavedForBackward | None = None
) -> None:
    """Measure the eager step and the compiled one (a message says why there is none), and put the dry run's peak beside them.
    `captured` are the figures of the capture phase, for what only the partitioner knows. Emits the stage's events."""
    session.emit(StageStarted(), stage=STAGE)
    notes = [compiled] if isinstance(compiled, Message) else []
    peaks: dict[str, int] = {}
    step = Step(eager, eager.model)
    gpu = session.options.target == "cuda"
    recorder = record_on_device if gpu else record
    found = measure(step, file=eager.file, eager=True, recorder=recorder)
    timeline = timeline_of(
        found, [], "eager", message("memory.method_device") if gpu else message("memory.method_eager")
    )
    session.artifact(timeline, kind="timeline", name="eager", stage=STAGE)
    peaks["eager"] = timeline.peak_bytes
    known = captured or SavedForBackward()
    kept: dict[str, int] = {}
    if eager.backward:
        kept["eager_storages_bytes"] = saved_by_eager(step).storage_bytes
    if isinstance(compiled, Native):
        step = Step(compiled.subject, compiled.function)
        try:
            if not gpu:  # a fork of this process could not use it
                peaks["dry_run"] = aside(lambda: _dry_peak(step, compiled), LIMIT_SECONDS)
        except AsideError as fault:
            notes.append(message("memory.dry_run_failed", error=fault.detail.partition("\n")[0] or fault.cause.key))
        timeline = timeline_of(
            measure_marked(step, compiled, recorder),
            [
                GeneratedCode(built.compile, built.graph, built.text, built_origins(built, session))
                for built in compiled.built
            ],
            "compiled",
            message("memory.method_device") if gpu else message("memory.method_compiled"),
        )
        session.artifact(timeline, kind="timeline", name="compiled", stage=STAGE)
        peaks["compiled"] = timeline.peak_bytes
        if peaks.get("dry_run", timeline.peak_bytes) != timeline.peak_bytes:
            notes.append(message("memory.dry_run_differs", dry_run=peaks["dry_run"], compiled=timeline.peak_bytes))
        if compiled.subject.backward:
            by_compiled = saved_by_compiled(step)
            kept |= {"kept_tensor_bytes": by_compiled.tensor_bytes, "kept_storages_bytes": by_compiled.storage_bytes}
    figures = known.model_copy(update=kept)
    tell(session, peaks, figures, eager, notes)


def measure_marked(step: Step, native: Native, recorder: Recorder = record) -> Measured:
    for index, built in enumerate(native.built):
        mark_lines(built, marker(str(index)))
    return measure(step, file=native.subject.file, recorder=recorder)


def _dry_peak(step: Step, native: Native) -> int:
    """In a fork: the peak of the same step with kernels that do nothing."""
    torch.set_num_threads(1)
    for built in native.built:
        make_dry(built)
    events = measure(step, file=native.subject.file).allocations
    return build(events, locate([]), series="dry_run", method=message("memory.method_dry_run")).peak_bytes


def built_origins(built: Built, session: Session) -> Origins:
    """The snippet's line of a line of generated code, by the stack trace that Inductor keeps for it."""
    frame = re.compile(rf'File "{re.escape(session.sources.main)}", line (\d+)')

    def origin(compile: str, graph: str, line: int) -> Origin | None:
        lines = frame.findall(built.stack(line))
        return Origin(line=int(lines[-1])) if lines else None

    return origin
