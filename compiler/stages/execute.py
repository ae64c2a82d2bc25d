"""Execute: what the natively compiled model gives and takes, against eager. Runs in the native phase."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compiler.compare import compare_printed, compare_results, compare_tensors, worst
from compiler.events import Finding, Severity, StageFinished, StageName
from compiler.ir.execution import (
    Autotuned,
    Comparison,
    CudaGraphEvent,
    Divergence,
    ExecutionPayload,
    KernelTime,
    SlopeCheck,
    Timing,
)
from compiler.paired import paired
from compiler.session import Session, slug
from compiler.snippet import CallResult
from compiler.step import Step
from compiler.text import Message, message
from compiler.torch_compat import real_gpu
from compiler.torch_compat.build import Spent
from compiler.torch_compat.wrapper import Built, code_digest, kernel_lines, mark_lines

STAGE = StageName.EXECUTE
TIMING_SECONDS = 2.0
TIMING_LIMIT_SECONDS = 20.0
_KERNEL_STEPS = 5
_GPU_WARM_UP = 3


@dataclass(frozen=True)
class Outcome:
    """What one run of the whole snippet gave: the results of its calls, what its scenario returned, what it printed, and what it
    raised. `random` is the state of torch's generator afterwards, None when nothing drew from it."""

    calls: list[CallResult] = field(default_factory=list)
    value: Any = None
    has_value: bool = False
    printed: str = ""
    error: BaseException | None = None
    random: bytes | None = None


def compare(eager: Outcome, compiled: Outcome, *, printed: bool) -> list[Comparison]:
    """Call by call: outputs, then gradients, then buffers. With `printed`, the printed lines too."""
    found: list[Comparison] = []
    for index, (one, other) in enumerate(zip(eager.calls, compiled.calls, strict=False)):
        found += compare_tensors("output", index, one.outputs, other.outputs)
        found += compare_tensors("gradient", index, one.gradients, other.gradients)
        found += compare_tensors("buffer", index, one.buffers, other.buffers)
    if len(eager.calls) != len(compiled.calls):
        text = f"{len(eager.calls)} calls in eager, {len(compiled.calls)} compiled"
        found.append(Comparison(name="calls", kind="output", agrees=False, mismatch=text))
    if eager.has_value:
        found.append(compare_results(eager.value, compiled.value))
    if printed:
        found += compare_printed(eager.printed, compiled.printed)
    return found


def judged(
    eager: Outcome, compiled: Outcome, *, declared_random: bool, same_generator: bool, printed: bool
) -> tuple[list[Comparison], Message | None]:
    """The comparisons, or why there are none. A model that draws random numbers is compared when it agrees, or when
    Inductor was told to draw them as eager does (`same_generator`)."""
    if declared_random:
        return (compare_printed(eager.printed, compiled.printed) if printed else []), message("execute.declared_random")
    if eager.error is not None:
        return [], message("execute.eager_raised", error=type(eager.error).__name__)
    found = compare(eager, compiled, printed=printed)
    drew = eager.random is not None and (not printed or eager.random != compiled.random)
    if drew and not same_generator and worst(found) is not None:
        return [one for one in found if one.kind == "printed"], message("execute.random")
    return found, None if found else message("execute.nothing_to_compare")


def finding(comparisons: Sequence[Comparison], divergence: Divergence | None = None) -> Finding | None:
    """The first tensor that does not agree, with its figures, and where that comes from."""
    bad = worst(comparisons)
    if bad is None:
        return None
    count = sum(one.agrees is False for one in comparisons)
    if bad.mismatch:
        text = message("execute.mismatch", name=bad.name, call=bad.call + 1, how=bad.mismatch, count=count)
    else:
        text = message(
            "execute.diverges",
            name=bad.name,
            kind=bad.kind,
            call=bad.call + 1,
            max_abs=_figure(bad.max_abs),
            max_rel=_figure(bad.max_rel),
            count=count,
        )
    severity = Severity.WARNING if bad.kind == "printed" else Severity.ERROR
    if divergence is None:
        return Finding(severity=severity, message=text)
    buffer = divergence.buffer
    return Finding(
        severity=Severity.NOTE if divergence.own else severity,
        message=text,
        line=buffer.line if buffer is not None else None,
        entity=buffer.entity if buffer is not None else None,
        hint=_cause(divergence),
    )


def _cause(divergence: Divergence) -> Message | None:
    buffer = divergence.buffer
    if buffer is not None:
        return message(
            "execute.first_buffer",
            buffer=buffer.buffer,
            node=buffer.entity.rsplit("/", 1)[-1],
            kernel=buffer.kernel.rsplit("/", 1)[-1],
            difference=_figure(buffer.difference),
            own=_figure(buffer.own),
        )
    if divergence.own:
        return message("execute.own_error", own=_figure(divergence.steps[0].error))
    for step in divergence.steps:
        if step.backend == divergence.first:
            return message("execute.first_stage", backend=step.backend, before=step.before)
    return None


def _figure(value: float | None) -> str:
    return "∞" if value is None else f"{value:.2g}"


def timing(eager: Step, compiled: Step, *, gpu: bool = False) -> Timing:
    """Paired samples of one step each, as the memory stage defines a step; of a GPU by its own clock."""
    for step in (eager, compiled):
        # A CUDA graph is recorded at the second call, and replayed from the third.
        for _ in range(_GPU_WARM_UP if gpu else 1):
            step.clear()
            step.once()
    return paired(
        eager.once,
        compiled.once,
        before_eager=eager.clear,
        before_compiled=compiled.clear,
        budget_seconds=TIMING_SECONDS,
        limit_seconds=TIMING_LIMIT_SECONDS,
        what=message("execute.timed_on_device") if gpu else message("execute.timed_step"),
        clock=real_gpu.device_seconds if gpu else None,
    )


class _Clock:
    """Seconds and visits of each line of a wrapper, from one line's beginning to the next's."""

    def __init__(self) -> None:
        self.seconds: Counter[tuple[int, int]] = Counter()
        self.visits: Counter[tuple[int, int]] = Counter()
        self._at: tuple[int, int] | None = None
        self._since = 0.0

    def marker(self, index: int) -> Callable[[int], None]:
        def at(line: int) -> None:
            now = time.perf_counter()
            if self._at is not None:
                self.seconds[self._at] += now - self._since  # type: ignore[assignment]
                self.visits[self._at] += 1
            self._at = (index, line) if line else None
            self._since = time.perf_counter()

        return at


def kernel_times(step: Step, built: Sequence[Built]) -> list[KernelTime]:
    """Seconds that each kernel and each external call takes in one step (mean of a few), the slowest first."""
    clock = _Clock()
    for index, wrapper in enumerate(built):
        mark_lines(wrapper, clock.marker(index))
    for _ in range(_KERNEL_STEPS):
        step.clear()
        step.once()
    found: dict[tuple[str, str], tuple[float, int]] = {}
    for index, wrapper in enumerate(built):
        for line, name in kernel_lines(wrapper.text).items():
            visits = clock.visits[index, line]
            if visits:
                key = name, f"{slug(wrapper.compile)}/codegen/{wrapper.graph}/{name}"
                seconds, calls = found.get(key, (0.0, 0))
                found[key] = seconds + float(clock.seconds[index, line]), calls + visits
    times = [
        KernelTime(name=name, entity=entity, seconds=seconds / _KERNEL_STEPS, calls=max(1, calls // _KERNEL_STEPS))
        for (name, entity), (seconds, calls) in found.items()
    ]
    return sorted(times, key=lambda kernel: -kernel.seconds)


def kernel_times_on_device(step: Step, built: Sequence[Built]) -> list[KernelTime]:
    """Seconds that the GPU spends in each kernel in one step (mean of a few), the slowest first. A kernel of Triton's has the
    name that the wrapper gives it; a library's its own."""

    def once() -> None:
        step.clear()
        step.once()

    entities = {
        name: f"{slug(wrapper.compile)}/codegen/{wrapper.graph}/{name}"
        for wrapper in built
        for name in kernel_lines(wrapper.text).values()
    }
    times = [
        KernelTime(
            name=name,
            entity=entities.get(name, ""),
            seconds=seconds / _KERNEL_STEPS,
            calls=max(1, count // _KERNEL_STEPS),
        )
        for name, (seconds, count) in real_gpu.kernels_on_device(once, _KERNEL_STEPS).items()
    ]
    return sorted(times, key=lambda kernel: -kernel.seconds)


def graphs_differ(built: Iterable[Built], expected: Sequence[str] | None) -> Message | None:
    """What is to be said when the code that was built is not the code that was captured (`expected`: its digests)."""
    if expected is None:
        return None
    ours = Counter(code_digest(wrapper.text) for wrapper in built)
    theirs = Counter(expected)
    if ours == theirs:
        return None
    return message(
        "execute.graphs_differ",
        captured=theirs.total(),
        built=ours.total(),
        different=max((theirs - ours).total(), (ours - theirs).total()),
    )


def tell(
    session: Session,
    *,
    comparisons: Sequence[Comparison],
    why_not_compared: Message | None,
    timed: Timing | None,
    why_not_timed: Message | None,
    kernels: Sequence[KernelTime],
    spent: Spent,
    differ: Message | None,
    divergence: Divergence | None = None,
    slope: SlopeCheck | Message | None = None,
    autotuned: Sequence[Autotuned] = (),
    configs: Mapping[str, str] | None = None,
    cuda_graphs: Sequence[CudaGraphEvent] = (),
) -> None:
    """The stage's artifact, its findings, its end."""
    payload = ExecutionPayload(
        comparisons=list(comparisons),
        compared=why_not_compared is None,
        why_not_compared=why_not_compared,
        timing=timed,
        why_not_timed=why_not_timed,
        kernels=list(kernels),
        compile_seconds=spent.compiling,
        native_seconds=spent.native,
        graphs_differ=differ,
        divergence=divergence,
        slope=slope if isinstance(slope, SlopeCheck) else None,
        why_no_slope=slope if isinstance(slope, Message) else None,
        autotuned=list(autotuned),
        configs=dict(configs or {}),
        cuda_graphs=list(cuda_graphs),
    )
    session.artifact(payload, kind="execution", name="execution", stage=STAGE)
    if (diverges := finding(comparisons, divergence)) is not None:
        session.emit(diverges, stage=STAGE)
    if isinstance(slope, SlopeCheck) and not slope.agrees:
        off, own = _figure(min(slope.compiled)), _figure(max(slope.eager))
        text = message("execute.masks_differ", compiled=off, eager=own)
        session.emit(Finding(severity=Severity.ERROR, message=text), stage=STAGE)
    if differ is not None:
        session.emit(Finding(severity=Severity.WARNING, message=differ), stage=STAGE)
    if timed is not None and timed.low > 1:
        slower = message(
            "execute.slower", ratio=round(timed.ratio, 2), low=round(timed.low, 2), high=round(timed.high, 2)
        )
        session.emit(Finding(severity=Severity.NOTE, message=slower), stage=STAGE)
    facts: dict[str, int | float | str | bool | None] = {
        "compared": len(comparisons),
        "disagree": sum(one.agrees is False for one in comparisons),
        "ratio": timed.ratio if timed is not None else None,
        "compile_seconds": spent.compiling,
        "native_seconds": spent.native,
    }
    session.emit(StageFinished(seconds=spent.compiling, facts=facts), stage=STAGE)
