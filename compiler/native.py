"""The native phase: the snippet compiled with the C++ compiler and run, for the stages that need that.

A second fork of the warmed parent; nothing of the capture phase is in it. Torch is left as the user has it: no hook changes
a graph, and the caches are on, in a folder of their own, so that the one cold compile serves execution, memory and cache.
"""

from __future__ import annotations

import io
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stderr, redirect_stdout
from pathlib import Path

import torch

from compiler.errors import SnippetError
from compiler.events import (
    Captured,
    Failed,
    Finding,
    Finished,
    RunRequest,
    Severity,
    StageFailed,
    StageName,
    StageSkipped,
    StageStarted,
)
from compiler.fork import AsideError, aside
from compiler.forms import Declared, Form, Script
from compiler.ir.execution import Autotuned, CudaGraphEvent, KernelTime, Timing
from compiler.session import SNIPPET_FILE, Session, Sink, slug
from compiler.snippet import (
    load,
    resolve_mode,
    understand,
    user_line,
    user_traceback,
)
from compiler.stages import ORDER, cache, execute, memory
from compiler.stages.diverge import diverging
from compiler.stages.execute import Outcome
from compiler.stages.slope import slope_check
from compiler.stages.traced import tell_trace
from compiler.step import Step, Subject, other_batch
from compiler.targets import BY_ID
from compiler.text import Message, message
from compiler.torch_compat import settings
from compiler.torch_compat.autotuning import chosen_configs, timed_choices
from compiler.torch_compat.build import (
    Spent,
    cpp_compiler,
    draws_as_eager,
    dynamos_line,
    is_build_failure,
    time_spent,
    told_line,
)
from compiler.torch_compat.caches import CacheEvent, cache_events, forget_compiled, private_caches
from compiler.torch_compat.compiles import current_compile, specialised_line, tracking
from compiler.torch_compat.interpreter import interpreted
from compiler.torch_compat.logs import cuda_graph_records
from compiler.torch_compat.real_gpu import NoGpuError, gpu_world
from compiler.torch_compat.trace import Trace
from compiler.torch_compat.wrapper import Built, built_wrappers, failing_line


def native(
    request: RunRequest,
    sink: Sink,
    *,
    path: Path | None = None,
    root: Path | None = None,
    captured: Captured | None = None,
) -> Finished | Failed:
    """Compile, run, time and compare a request's snippet: the stages execute, memory (measured) and cache.

    `path` and `root` as for `compiler.pipeline.capture`, and `captured` is what that one found. What the snippet prints is not
    told again. Returns how the phase ended; never raises for the snippet's faults."""
    scratch = Path(tempfile.mkdtemp(prefix="aotscope-native-"))
    try:
        if path is None:
            path = (root or scratch) / SNIPPET_FILE
            path.write_text(request.source, encoding="utf-8")
            root = None
        elif root is None:
            root = path.parent
        return _run(request, sink, path, root, scratch / "cache", captured)
    except (SnippetError, NoGpuError) as fault:
        return Failed(cause=fault.cause, error=fault.detail, line=fault.line)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _run(
    request: RunRequest, sink: Sink, path: Path, root: Path | None, folder: Path, captured: Captured | None
) -> Finished:
    snippet = understand(request, path, root)
    session = Session(sink, request.options, snippet.sources(), current_compile)
    gpu = BY_ID[request.options.target].kind == "gpu"
    with _hidden(), tracking(), private_caches(folder), gpu_world() if gpu else nullcontext():
        if snippet.form == "script":
            return _Native(session, Script(snippet), captured).run()
        device = BY_ID[request.options.target].torch_device
        eager = load(snippet, device)
        mode = resolve_mode(eager, request.options.mode)
        with settings.applied(eager.config):
            return _Native(session, Declared(snippet, eager, request.options.mode, mode, device), captured).run()


@contextmanager
def _hidden() -> Iterator[None]:
    """What the snippet prints was shown in the capture phase."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        yield


_SETTLING_STEPS = 3
_CHANGED_SECONDS = 60.0
_LONGEST_CODE = 200


class _Native:
    def __init__(self, session: Session, form: Form, captured: Captured | None) -> None:
        self._session = session
        self._form = form
        self._captured = captured
        self._gpu = BY_ID[session.options.target].kind == "gpu"
        self._cuda_graphs: list[CudaGraphEvent] = []
        self._choices: list[Autotuned] = []
        self._trace = Trace() if session.options.trace else None

    def _traced(self) -> AbstractContextManager[None]:
        """The cold compile and the warm one are the trace; what we do besides is not."""
        return self._trace.recording() if self._trace is not None else nullcontext()

    def _wanted(self, stage: StageName) -> bool:
        last = self._session.options.until
        return last is None or ORDER.index(stage) <= ORDER.index(last)

    def run(self) -> Finished:
        session, form = self._session, self._form
        if not self._wanted(StageName.MEMORY):
            return Finished()
        eager = form.run_eager()
        if not self._gpu and cpp_compiler() is None:
            reason = message("execute.no_compiler")
            self._measure([], reason)
            self._skip(reason, StageName.EXECUTE, StageName.CACHE)
            return Finished()
        if self._wanted(StageName.EXECUTE):
            session.emit(StageStarted(), stage=StageName.EXECUTE)
        with (
            cache_events() as cold,
            time_spent() as spent,
            built_wrappers() as built,
            cuda_graph_records(self._cuda_graphs.append),
            timed_choices() as self._choices,
            self._traced(),
        ):
            compiled = form.run_compiled()
        try:
            return self._shown(eager, compiled, built, cold, spent)
        finally:
            if self._trace is not None:
                tell_trace(session, self._trace, "native")

    def _shown(
        self, eager: Outcome, compiled: Outcome, built: list[Built], cold: list[CacheEvent], spent: Spent
    ) -> Finished:
        session, form = self._session, self._form
        if compiled.error is not None:
            return self._raised(compiled.error, built)
        if self._wanted(StageName.EXECUTE):
            self._guarded(StageName.EXECUTE, lambda: self._execute(eager, compiled, built, spent))
        if not built:
            self._measure([], message("memory.nothing_compiled"))
        elif form.compiled is None:
            self._measure([], message("memory.no_step"))
        else:
            self._measure(built, None)
        if self._wanted(StageName.CACHE):
            session.emit(StageStarted(), stage=StageName.CACHE)
            self._guarded(StageName.CACHE, lambda: self._cache(cold, spent.compiling))
        return Finished()

    # --- the stages

    def _execute(self, eager: Outcome, compiled: Outcome, built: list[Built], spent: Spent) -> None:
        form = self._form
        comparisons, why_not = execute.judged(
            eager,
            compiled,
            declared_random=form.declared_random,
            same_generator=draws_as_eager(),
            printed=form.printed,
        )
        # Before the timing, which may compile more.
        differ = execute.graphs_differ(built, self._captured.digests if self._captured else None)
        divergence = None
        if any(one.agrees is False and one.kind != "printed" for one in comparisons):
            main = self._session.sources.main
            divergence = diverging(form, eager, compiled, built, last=form.backend, main=main)
        slope = None
        if (
            eager.random is not None
            and form.eager is not None
            and form.compiled is not None
            and form.function is not None
        ):
            slope = slope_check(form.eager, form.compiled, form.function)
        with cuda_graph_records(self._cuda_graphs.append):
            timed, kernels, why_not_timed = self._time(eager, built)
        execute.tell(
            self._session,
            comparisons=comparisons,
            why_not_compared=why_not,
            timed=timed,
            why_not_timed=why_not_timed,
            kernels=kernels,
            spent=spent,
            differ=differ,
            divergence=divergence,
            slope=slope,
            autotuned=self._choices,
            configs=chosen_configs(built) if self._gpu else None,
            cuda_graphs=self._cuda_graphs,
        )

    def _time(self, eager: Outcome, built: list[Built]) -> tuple[Timing | None, list[KernelTime], Message | None]:
        """Paired timing and seconds by kernel, or why there are none: that must not cost the comparison."""
        form = self._form
        if eager.error is not None:
            return None, [], message("execute.eager_raised", error=type(eager.error).__name__)
        if form.eager is None or form.compiled is None or form.function is None:
            return None, [], message("memory.no_step")
        one, other = Step(form.eager, form.eager.model), Step(form.compiled, form.function)
        try:
            if not self._settled(other, built):
                return None, [], message("execute.compiled_again")
            kernels = execute.kernel_times_on_device if self._gpu else execute.kernel_times
            return execute.timing(one, other, gpu=self._gpu), kernels(other, built), None
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's model: told as the reason
            return None, [], message("execute.not_timed", error=self._session.sources.told(error))

    def _settled(self, step: Step, built: list[Built]) -> bool:
        """Whether the step comes to repeat itself without compiling. What it compiles until then is added to `built`."""
        for _ in range(_SETTLING_STEPS):
            with built_wrappers() as again:
                step.clear()
                step.once()
            if not again:
                return True
            built += again
        return False

    def _measure(self, built: Sequence[Built], why_not: Message | None) -> None:
        form = self._form
        if form.eager is None:
            return  # the capture phase has said that there is no step
        if why_not is not None or form.compiled is None or form.function is None:
            compiled: memory.Native | Message = why_not or message("memory.no_step")
        else:
            compiled = memory.Native(form.compiled, form.function, built)
        eager = form.eager
        saved = self._captured.saved if self._captured else None
        self._guarded(StageName.MEMORY, lambda: memory.measured(self._session, eager, compiled, saved))

    def _cache(self, cold: Sequence[CacheEvent], cold_seconds: float) -> None:
        forget_compiled()
        with cache_events() as warm, time_spent() as spent, self._traced():
            again = self._form.run_compiled()
        if again.error is not None:
            raise again.error
        changed = self._changed()
        cache.tell(
            self._session,
            cold=cold,
            warm=warm,
            changed=changed,
            cold_seconds=cold_seconds,
            warm_seconds=spent.compiling,
        )

    def _changed(self) -> list[CacheEvent] | Message:
        """What the caches say to another batch size, or why that was not tried. In a fork, without the C++ compiler."""
        subject = self._form.compiled
        other = other_batch(subject) if subject is not None else None
        if other is None:
            return message("cache.no_other_batch")
        try:
            return aside(lambda: _looked_up(other), _CHANGED_SECONDS)
        except AsideError as fault:
            return message("cache.changed_failed", error=fault.detail.partition("\n")[0] or fault.cause.key)

    # --- endings

    def _raised(self, error: BaseException, built: Sequence[Built]) -> Finished:
        """The compiled snippet raised: that is the outcome of execution, and what builds on it cannot be."""
        cause = _cause(error)
        if self._wanted(StageName.EXECUTE):
            line = self._blame(cause, error, built)
            self._fail(StageName.EXECUTE, cause, error, line)
        self._measure([], cause)
        self._skip(message("stage.after_failure"), StageName.CACHE)
        return Finished(error=cause)

    def _guarded(self, stage: StageName, work: Callable[[], None]) -> None:
        """The stage's work; what it raises ends this stage, and the others go on."""
        try:
            work()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - told to the user as the stage's failure
            cause = message("memory.raised", error=type(error).__name__) if stage is StageName.MEMORY else _cause(error)
            self._fail(stage, cause, error)

    def _blame(self, cause: Message, error: BaseException, built: Sequence[Built]) -> int | None:
        """When generated code raised: a finding that names its line, and the snippet's line which that comes from."""
        found = failing_line(error, built)
        if found is None:
            return None
        wrapper, number = found
        line = told_line(wrapper.stack(number), self._session.sources.main)
        text = wrapper.text.splitlines()[number - 1].strip()[:_LONGEST_CODE]
        finding = Finding(
            severity=Severity.ERROR,
            message=cause,
            line=line,
            entity=f"{slug(wrapper.compile)}/codegen/{wrapper.graph}/@{number}",
            hint=message("execute.raised_at", graph=wrapper.graph, compile=wrapper.compile, number=number, code=text),
        )
        self._session.emit(finding, stage=StageName.EXECUTE)
        return line

    def _fail(self, stage: StageName, cause: Message, error: BaseException, line: int | None = None) -> None:
        sources = self._session.sources
        line = line or user_line(error, sources) or dynamos_line(error, sources.main) or specialised_line(error)
        said = StageFailed(
            cause=cause,
            error=sources.told(error),
            line=line or told_line(str(error), sources.main),
            traceback=user_traceback(error, sources),
        )
        self._session.emit(said, stage=stage)

    def _skip(self, reason: Message, *stages: StageName) -> None:
        for stage in stages:
            if self._wanted(stage):
                self._session.emit(StageSkipped(reason=reason), stage=stage)


def _cause(error: BaseException) -> Message:
    if is_build_failure(error):
        return message("execute.build_failed")
    return message("execute.raised", error=type(error).__name__)


def _looked_up(subject: Subject) -> list[CacheEvent]:
    forget_compiled()
    # Not what is said when results are saved: an interpreter cannot be.
    with interpreted(current_compile, lambda _: None), cache_events(saving=False) as events:
        Step(subject, torch.compile(subject.model, **subject.compile_kwargs)).once()
    return events
