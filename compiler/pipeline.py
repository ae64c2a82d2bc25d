"""The capture phase: run a snippet with every stage's hooks in place, and say what they saw.

`capture` is the one door to torch for whoever has a request and a sink. Nothing is compiled natively here: see
`torch_compat/interpreter.py`.
"""

from __future__ import annotations

import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch

from compiler import stages
from compiler.errors import SnippetError
from compiler.events import (
    MOST_DIGESTS,
    ArtifactFrame,
    Captured,
    EventFrame,
    Failed,
    Finding,
    Finished,
    Mode,
    RunRequest,
    Severity,
    StageFailed,
    StageFinished,
    StageName,
    StageSkipped,
    StageStarted,
)
from compiler.output import Output, capturing
from compiler.session import SNIPPET_FILE, Session, Sink, slug
from compiler.snippet import (
    Loaded,
    Snippet,
    load,
    resolve_mode,
    run_calls,
    run_scenario,
    run_script,
    snippet_fault,
    understand,
    user_line,
    user_traceback,
)
from compiler.stages import aot_steps
from compiler.stages import source as source_stage
from compiler.stages.memory import dry_run, estimate
from compiler.stages.traced import tell_trace
from compiler.summary import summarise
from compiler.targets import BY_ID
from compiler.text import Message, message
from compiler.torch_compat import settings
from compiler.torch_compat.build import told_line
from compiler.torch_compat.compiles import Attempt, current_compile, failed_attempt, specialised_line, tracking
from compiler.torch_compat.interpreter import failed_at, interpreted
from compiler.torch_compat.plan import planned
from compiler.torch_compat.real_gpu import NoGpuError, Present, gpu_world
from compiler.torch_compat.trace import Trace
from compiler.torch_compat.virtual_gpu.fakes import Unknown, fake_world
from compiler.torch_compat.virtual_gpu.inductor import unrecorded
from compiler.torch_compat.virtual_gpu.limits import limit
from compiler.torch_compat.wrapper import code_digest

Place = tuple[str | None, StageName]

# After one of these of a compile, another one must follow.
_WITHIN_BACKEND = stages.ORDER[stages.ORDER.index(StageName.JOINT) : stages.ORDER.index(StageName.CODEGEN)]


class Progress:
    """A sink before the sink: knows which stages are under way, so that an exception finds the guilty one."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.before_event: Callable[[], None] | None = None
        self.open: dict[Place, int] = {}
        self.touched: set[Place] = set()
        self.last: Place | None = None
        self.graphs: dict[str, None] = {}

    def event(self, frame: EventFrame) -> None:
        body = frame.body
        if self.before_event is not None and body.type not in ("printed", "output_cut"):
            self.before_event()
        if frame.stage is not None:
            self._note((frame.compile, frame.stage), body)
        self._sink.event(frame)

    def artifact(self, frame: ArtifactFrame, payload: bytes) -> None:
        self._sink.artifact(frame, payload)

    def _note(self, place: Place, body: object) -> None:
        if isinstance(body, StageStarted):
            self.open.pop(place, None)  # begun again, it is the latest
            self.open[place] = 1
        elif isinstance(body, (StageFinished, StageFailed, StageSkipped)):
            self.open.pop(place, None)
            if place[0] and place[1] is StageName.DYNAMO and isinstance(body, StageFinished):
                self.graphs[place[0]] = None
        else:
            return
        self.touched.add(place)
        self.last = place

    def guilty(self, failed: Attempt | None) -> Place:
        """The stage that an exception of the model belongs to: the latest that is under way; between two, the one that would have
        come next; with neither, the execution. `failed` is the compile that an exception left, if one did."""
        if self.open:
            return next(reversed(self.open))
        if failed is not None and failed.compile in self.graphs:
            if failed.compiled:  # its backend was done: what failed are the guards
                return (failed.compile, StageName.DYNAMO)
            done = max(stages.ORDER.index(stage) for id_, stage in self.touched if id_ == failed.compile)
            return (failed.compile, stages.ORDER[min(done + 1, stages.ORDER.index(StageName.CODEGEN))])
        if self.last is not None and self.last[1] in _WITHIN_BACKEND:  # a backward, compiled when it is first wanted
            return (self.last[0], stages.ORDER[stages.ORDER.index(self.last[1]) + 1])
        return (None, StageName.EXECUTE)


def capture(
    request: RunRequest,
    sink: Sink,
    *,
    path: Path | None = None,
    root: Path | None = None,
    found: Callable[[Captured], None] = lambda _: None,
) -> Finished | Failed:
    """Run a request's snippet and emit every stage up to generated code, what it prints, its findings and its summary.

    `path` is the user's own file, and `root` the folder whose files are the user's too (by default the file's own). Without
    `path`, the text is written to `root` (by default a fresh folder) as `snippet.py`. `found` is told what the native phase is to
    be held against. Returns how the phase ended; a fault of the snippet is never raised."""
    if path is None:
        folder = root if root is not None else Path(tempfile.mkdtemp(prefix="aotscope-"))
        path, root = folder / SNIPPET_FILE, None
        path.write_text(request.source, encoding="utf-8")
    elif root is None:
        root = path.parent
    captured = _Capture(request, Progress(sink), path, root)
    outcome = captured.run()
    found(captured.found())
    return outcome


def capture_loaded(loaded: Loaded, request: RunRequest, sink: Sink) -> Finished | Failed:
    """As `capture`, of a model that is there already. Its snippet's file is the user's, and no other."""
    return _Capture(request, Progress(sink), loaded.snippet.file, None, loaded).run()


class _Capture:
    def __init__(
        self, request: RunRequest, progress: Progress, path: Path, root: Path | None, loaded: Loaded | None = None
    ) -> None:
        self._loaded = loaded
        self._request = request
        self._progress = progress
        self._path = path
        self._root = root
        self._target = target = BY_ID[request.options.target]
        # Of a virtual target: nothing runs on it, and the snippet's tensors have no values.
        self._device = target.device if target.kind == "virtual" else None
        self._unknown = Unknown()
        self._gpu: Present | None = None
        unread = loaded.snippet if loaded else Snippet(request.source, "script", path.resolve(), {}, {}, root=root)
        self._session = Session(progress, request.options, unread.sources(), current_compile)
        self._output = Output(self._session.emit)
        self._trace = Trace() if request.options.trace else None
        progress.before_event = self._output.flush

    def run(self) -> Finished | Failed:
        session = self._session
        source_stage.STAGE.started(session)
        try:
            snippet = self._loaded.snippet if self._loaded else understand(self._request, self._path, self._root)
            with ExitStack() as stack:
                stack.enter_context(capturing(self._output))
                stack.enter_context(tracking())
                stack.enter_context(settings.no_caches())
                if self._device is not None:
                    self._unknown = stack.enter_context(fake_world())
                if self._target.kind == "gpu":
                    self._gpu = stack.enter_context(gpu_world())
                    # The native phase records them: here graphs are interpreted.
                    stack.enter_context(unrecorded(lambda _: None))
                return self._declared(snippet) if snippet.form == "declared" else self._script(snippet)
        except NoGpuError as fault:
            return self._failed(SnippetError(fault.cause))
        except SnippetError as fault:
            told = self._limit(fault.__cause__)
            return self._failed(SnippetError(told, fault.line, fault.detail) if told is not None else fault)

    def found(self) -> Captured:
        session = self._session
        digests = tuple(code_digest(module.code) for module in session.modules)
        return Captured(digests=digests if len(digests) <= MOST_DIGESTS else None, saved=session.saved)

    def _failed(self, fault: SnippetError) -> Failed:
        origin = fault.__cause__
        trace = user_traceback(origin, self._session.sources) if origin is not None else ""
        said = StageFailed(cause=fault.cause, error=fault.detail, line=fault.line, traceback=trace)
        for id_, stage in list(self._progress.open):
            self._session.emit(said, stage=stage, compile=id_)
        return Failed(cause=fault.cause, error=fault.detail, line=fault.line, traceback=trace)

    # --- the two forms

    def _declared(self, snippet: Snippet) -> Finished | Failed:
        session, options = self._session, self._request.options
        loaded = self._loaded or load(snippet, self._target.torch_device)
        mode = resolve_mode(loaded, options.mode)
        try:
            with settings.applied(loaded.config):
                source_stage.STAGE.declared(session, loaded, mode)
                if options.until is StageName.SOURCE:
                    return Finished()
                error = self._watched(lambda: _compile_and_run(loaded, options.mode))
                if error is None:
                    self._dry_run(loaded, mode)
                aot_steps.tell(session)
        except settings.UnknownSettingError as unknown:
            cause = message("snippet.unknown_setting", name=str(unknown))
            raise SnippetError(cause, snippet.lines.get("config")) from None
        return self._ended(error)

    def _script(self, snippet: Snippet) -> Finished | Failed:
        session = self._session
        if self._request.options.until is StageName.SOURCE:
            source_stage.STAGE.script_without_call(session, snippet)
            return Finished()
        work = _ScriptWork(session, snippet)
        error = self._watched(work.run)
        of_ours = self._limit(error) is not None and session.first_call is not None
        if error is not None and not of_ours and not self._of_the_model(error):
            called, graphs = session.first_call is not None, session.tally.compiled_graphs
            raise snippet_fault(error, session.sources, called=called, graphs=graphs) from error
        if session.first_call is None:
            if error is None:
                raise _never_called(snippet, work.compiled > 0)
            source_stage.STAGE.script_without_call(session, snippet)
        elif error is None:
            self._dry_run(None, Mode.AUTO)
        aot_steps.tell(session)
        return self._ended(error)

    # --- running

    def _watched(self, work: Callable[[], None]) -> BaseException | None:
        """Do it with every wanted stage's hooks in place; what the user's code raised, if it did."""
        raised: BaseException | None = None
        try:
            with self._hooks():
                work()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's model: told as its outcome
            raised = error
        if self._trace is not None:
            tell_trace(self._session, self._trace, "capture")
        return raised

    @contextmanager
    def _hooks(self) -> Iterator[None]:
        session = self._session
        with ExitStack() as stack:
            stack.enter_context(interpreted(current_compile, session.modules.append))
            stack.enter_context(planned(lambda plan: session.plans.append((current_compile() or "", plan))))
            for stage in stages.until(session.options.until):
                stack.enter_context(stage.install(session))
            if self._trace is not None:
                stack.enter_context(self._trace.recording())
            yield

    def _of_the_model(self, error: BaseException) -> bool:
        """Whether a script's exception came out of what it compiled, and not out of its own code."""
        frames = traceback.extract_tb(error.__traceback__)
        inside = any(frame.filename.endswith("torch/_dynamo/eval_frame.py") for frame in frames)
        return inside or any(stage is not StageName.SOURCE for _, stage in self._progress.open)

    def _dry_run(self, loaded: Loaded | None, mode: Mode) -> None:
        last = self._request.options.until
        if last is not None and stages.ORDER.index(last) < stages.ORDER.index(StageName.MEMORY):
            return
        if self._device is not None:
            note = message("virtual.memory_estimate", device=self._device.name)
            estimate(self._session, int(self._device.memory_bytes.value), note)
        elif self._gpu is not None:
            estimate(self._session, self._gpu.memory_bytes, message("gpu.memory_plan", device=self._gpu.name))
        else:
            dry_run(self._session, loaded, mode)

    def _ended(self, error: BaseException | None) -> Finished:
        session = self._session
        outcome = Finished()
        if self._device is not None:
            from compiler.stages import fidelity  # with it comes Triton, which need not be installed for the CPU

            fidelity.tell(session, self._target, self._device, self._unknown)
        if error is not None:
            session.tally.error = type(error).__name__
            cause = self._limit(error) or _cause(error)
            place, stage = self._progress.guilty(failed_attempt())
            main = session.sources.main
            line = user_line(error, session.sources) or _stack_line(error, session) or told_line(str(error), main)
            entity: str | None = None
            hint: Message | None = None
            at = failed_at(error)
            if at is not None:
                # Clean graphs, and then a failure: the operator's own line says more than that of the call.
                line = told_line(at.stack, main) or line
                entity = f"{slug(at.compile)}/post_grad/{at.graph}/{at.node}"
                hint = message("run.raised_at", node=at.node, graph=at.graph, compile=at.compile)
            said = StageFailed(
                cause=cause,
                error=session.sources.told(error),
                line=line,
                traceback=user_traceback(error, session.sources),
            )
            session.emit(said, stage=stage, compile=place)
            finding = Finding(severity=Severity.ERROR, message=cause, line=line, entity=entity, hint=hint)
            session.emit(finding, stage=stage, compile=place)
            outcome = Finished(error=cause)
        self._skip_untouched(error is not None)
        session.emit(summarise(session.tally))
        return outcome

    def _limit(self, error: BaseException | None) -> Message | None:
        """What a virtual target cannot do, where that is why it was raised."""
        return None if self._device is None else limit(error, self._request.source)

    def _skip_untouched(self, failed: bool) -> None:
        """A compile with another backend, or one that raised, does not come to every stage: each still ends."""
        reason = message("stage.after_failure") if failed else message("stage.other_backend")
        for id_ in self._progress.graphs:
            for stage in stages.until(self._session.options.until):
                if stage.scope == "compile" and (id_, stage.name) not in self._progress.touched:
                    self._session.emit(StageSkipped(reason=reason), stage=stage.name, compile=id_)


class _ScriptWork:
    """One run of a script, and what its first call of something compiled was."""

    def __init__(self, session: Session, snippet: Snippet) -> None:
        self._session = session
        self._snippet = snippet
        self.compiled = 0

    def run(self) -> None:
        self.compiled = run_script(self._snippet, compile_identity=False, before_call=self._called, keep=False).compiled

    def _called(self, original: Any, options: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        with self._session.watching(StageName.SOURCE):
            training = source_stage.STAGE.script(self._session, original, options, args, kwargs)
            self._session.first_call = (original, args, kwargs, training)


def _compile_and_run(loaded: Loaded, mode: Mode) -> None:
    compiled = torch.compile(loaded.model, **loaded.compile_kwargs)
    if loaded.scenario is not None:
        run_scenario(loaded, compiled)
    else:
        run_calls(loaded, compiled, mode, keep=False)


def _never_called(snippet: Snippet, compiled: bool) -> SnippetError:
    if compiled:
        return SnippetError(message("snippet.never_called"))
    if snippet.module_class:
        name = snippet.module_class
        return SnippetError(message("snippet.never_compiled", name=name), snippet.lines.get(name))
    return SnippetError(message("snippet.nothing"))


def _cause(error: BaseException) -> Message:
    text = str(error)
    if isinstance(error, MemoryError) or "can't allocate memory" in text:
        return message("run.memory")
    return message("run.raised", error=type(error).__name__)


def _stack_line(error: BaseException, session: Session) -> int | None:
    """The snippet's line that Dynamo was at, which the exception carries and its traceback does not."""
    frames = getattr(error, "real_stack", None) or getattr(error.__cause__, "real_stack", None) or ()
    lines = [frame.lineno for frame in frames if frame.filename == session.sources.main]
    return lines[-1] if lines else specialised_line(error)
