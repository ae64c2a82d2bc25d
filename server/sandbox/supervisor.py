"""One run from its first event to its terminal one: drives the phases, checks what the children say, and says the rest.

Used by the worker and by the command line. Whatever the child does, exactly one terminal event comes out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from compiler.errors import ContractError
from compiler.events import (
    ArtifactFrame,
    ArtifactMade,
    ArtifactRef,
    Body,
    Cancelled,
    Captured,
    DoneFrame,
    Event,
    EventFrame,
    Failed,
    Finished,
    Lost,
    OutputCut,
    PhaseStarted,
    Printed,
    RunRequest,
    RunStarted,
    StageFailed,
    StageFinished,
    StageName,
    StageSkipped,
    StageStarted,
    TimedOut,
)
from compiler.targets import BY_ID
from compiler.text import Message, message
from server.sandbox.exits import exit_cause
from server.sandbox.frames import FrameLimits, FrameReader
from server.sandbox.launcher import ForkServerError, Launcher
from server.sandbox.listener import listen
from server.sandbox.protocol import Phase, PhaseLimits, PhaseRequest, Verdict
from server.settings import Settings

Terminal = Finished | Failed | TimedOut | Cancelled | Lost

# For a child that has said its last word and does not end.
_AFTER_DONE_SECONDS = 3.0
_MOST_COMPILES = 2000
_ORDER = tuple(StageName)
_NATIVE_STAGES = (StageName.EXECUTE, StageName.CACHE)
_CHILD_MAY_NOT_SAY = ("run_started", "phase_started", "finished", "failed", "timed_out", "cancelled", "lost")


class Recorder(Protocol):
    """Where a run is written. Both may raise `server.store.runs.FencedError`, which ends the run's child."""

    def artifact(self, ref: ArtifactRef, payload: bytes) -> None: ...

    def events(self, events: Sequence[Event]) -> None: ...


@dataclass(frozen=True, slots=True)
class Script:
    """The user's own file, run where it lies (command line only)."""

    path: str
    root: str


@dataclass(frozen=True, slots=True)
class _Ending:
    """How a phase ended: what the child said last, or why it could not."""

    outcome: Finished | Failed | None
    verdict: Verdict | None
    breach: ContractError | None
    cancelled: bool


def wants_native(request: RunRequest) -> bool:
    """Whether the native phase has anything to add to what was asked for. Nothing runs on a virtual target."""
    until = request.options.until
    if BY_ID[request.options.target].kind == "virtual":
        return False
    return request.options.native and (until is None or _ORDER.index(until) >= _ORDER.index(StageName.MEMORY))


class Supervisor:
    """Runs one request. Not reusable."""

    def __init__(
        self,
        run: str,
        request: RunRequest,
        launcher: Launcher,
        recorder: Recorder,
        settings: Settings,
        cancelled: Callable[[], bool],
        script: Script | None = None,
    ) -> None:
        self._run = run
        self._request = request
        self._launcher = launcher
        self._recorder = recorder
        self._settings = settings
        self._cancelled = cancelled
        self._script = script
        self._began = time.monotonic()
        self._seq = 0
        self._last_t = 0.0
        self._pending: list[Event] = []
        self._flushed = 0.0
        self._sent: dict[str, ArtifactRef] = {}
        self._compiles: set[str] = set()
        self._artifacts = 0
        self._artifacts_bytes = 0
        self._events_bytes = 0
        self._printed_bytes = 0
        self._cut = False
        # Stages that started and did not end, in order, and those that ended in any way.
        self._open: dict[tuple[str | None, StageName], None] = {}
        self._resolved: set[StageName] = set()
        self._captured: Captured | None = None

    def run(self) -> Terminal:
        """Do it all; returns the terminal event's body. Raises what the recorder raises (the children are ended)."""
        try:
            engine = self._launcher.ready()
        except ForkServerError as fault:
            return self._end(Cancelled() if self._cancelled() else Lost(cause=fault.cause))
        self._began = time.monotonic()
        if engine is not None:
            self._say(RunStarted(request=self._request, engine=engine))
        if self._request.question is not None:
            return self._end(self._alone("kernel"))
        terminal = self._alone("capture")
        if isinstance(terminal, Finished):
            terminal = self._after_capture(terminal)
        return self._end(terminal)

    # --- phases --------------------------------------------------------------------------------------------------

    def _alone(self, phase: Phase) -> Terminal:
        """The phase that a run stands or falls with."""
        limits = self._limits(self._settings.capture_seconds)
        try:
            ending = self._phase(phase, limits)
        except ForkServerError as fault:
            return Lost(cause=fault.cause)
        if ending.cancelled:
            return Cancelled()
        if ending.breach is not None:
            return Failed(cause=ending.breach.cause, error=ending.breach.detail)
        if ending.outcome is not None:
            return ending.outcome
        if ending.verdict is None:
            return self._broken(Lost(cause=message("server.fork_server_died")))
        cause = exit_cause(ending.verdict, limits)
        if ending.verdict.reason == "wall":
            stage = next(reversed(self._open), (None, None))[1]
            return self._broken(TimedOut(limit_seconds=limits.wall_seconds, stage=stage), cause)
        if ending.verdict.reason == "orphaned":
            return self._broken(Lost(cause=cause))
        return self._broken(Failed(cause=cause))

    def _broken(self, terminal: Failed | Lost | TimedOut, cause: Message | None = None) -> Terminal:
        """The child is gone: the stages that it was in have failed."""
        why = terminal.cause if isinstance(terminal, Failed | Lost) else cause
        assert why is not None
        self._fail_open(why)
        return terminal

    def _after_capture(self, captured: Finished) -> Terminal:
        """The native phase, if it is wanted. It never spoils what was captured."""
        target = BY_ID[self._request.options.target]
        if target.kind == "virtual":
            self._skip(message("virtual.not_run", name=target.name))
            return captured
        if not self._request.options.native:
            self._skip(message("server.native_off"))
            return captured
        if not wants_native(self._request):
            return captured
        if captured.error is not None:
            self._skip(message("server.native_after_error"))
            return captured
        self._open.clear()
        left = self._settings.run_seconds - (time.monotonic() - self._began)
        limits = self._limits(max(1.0, left))
        try:
            ending = self._phase("native", limits)
        except ForkServerError as fault:
            self._fail_native(fault.cause)
            return captured
        if ending.cancelled:
            return Cancelled()
        if ending.breach is not None:
            self._fail_native(ending.breach.cause, ending.breach.detail)
        elif isinstance(ending.outcome, Failed):
            self._fail_native(ending.outcome.cause, ending.outcome.error)
        elif ending.outcome is not None:
            self._fail_native(message("server.stage_absent"))
            return captured if ending.outcome.error is None else ending.outcome
        elif ending.verdict is None:
            self._fail_native(message("server.fork_server_died"))
        else:
            self._fail_native(exit_cause(ending.verdict, limits))
        return captured

    def _limits(self, seconds: float) -> PhaseLimits:
        settings = self._settings
        return PhaseLimits(
            wall_seconds=min(seconds, settings.run_seconds),
            memory_bytes=settings.memory_bytes,
            processes=settings.processes,
            file_bytes=settings.file_bytes,
            disk_bytes=settings.disk_bytes,
            disk_entries=settings.disk_entries,
        )

    def _phase(self, phase: Phase, limits: PhaseLimits) -> _Ending:
        script = self._script
        child = self._launcher.start(
            self._request,
            PhaseRequest(
                phase=phase,
                path=None if script is None else script.path,
                root=None if script is None else script.root,
                limits=limits,
                captured=self._captured,
            ),
        )
        self._say(PhaseStarted(phase=phase))
        settings = self._settings
        reader = FrameReader(
            FrameLimits(settings.event_bytes, settings.artifact_bytes, settings.artifacts_bytes, settings.artifacts),
            self._artifacts_bytes,
            self._artifacts,
        )
        outcome: Finished | Failed | None = None
        breach: ContractError | None = None
        cancelled = False
        verdict: Verdict | None = None
        done: float | None = None
        try:
            for heard in listen(child, every=self._flush_in):
                if heard.verdict is not None:
                    verdict = heard.verdict
                for stream, text in heard.printed:
                    self._print(stream, text)
                if breach is None and heard.data:
                    try:
                        for frame, payload in reader.feed(heard.data):
                            if outcome is not None:
                                raise ContractError(message("server.frame_after_done"))
                            if isinstance(frame, DoneFrame):
                                outcome = frame.outcome
                                self._captured = frame.captured
                            elif isinstance(frame, ArtifactFrame):
                                assert payload is not None
                                self._keep(frame.ref, payload)
                            else:
                                self._hear(frame, reader.frame_bytes)
                    except ContractError as fault:
                        breach = fault
                        child.stop()
                if not cancelled and outcome is None and self._cancelled():
                    cancelled = True
                    child.stop()
                if outcome is not None and verdict is None:
                    done = done or time.monotonic()
                    if time.monotonic() - done > _AFTER_DONE_SECONDS:
                        child.stop()
                self._flush(lazy=True)
        finally:
            child.close()
        self._artifacts, self._artifacts_bytes = reader.artifacts, reader.artifacts_bytes
        return _Ending(outcome=outcome, verdict=verdict, breach=breach, cancelled=cancelled)

    # --- what the child says -------------------------------------------------------------------------------------

    def _keep(self, ref: ArtifactRef, payload: bytes) -> None:
        if ref.hash not in self._sent:
            self._recorder.artifact(ref, payload)
            self._sent[ref.hash] = ref

    def _hear(self, frame: EventFrame, size: int) -> None:
        body = frame.body
        if body.type in _CHILD_MAY_NOT_SAY:
            raise ContractError(message("server.event_not_allowed", type=body.type))
        # The very reference: under another kind, a reader would take the payload for what it is not.
        if isinstance(body, ArtifactMade) and self._sent.get(body.artifact.hash) != body.artifact:
            raise ContractError(message("server.artifact_unknown", kind=body.artifact.kind))
        if self._seq >= self._settings.events and not isinstance(body, Printed):
            raise ContractError(message("server.too_many_events", limit=self._settings.events))
        if isinstance(body, Printed):
            self._print(body.stream, body.text, frame)
            return
        if isinstance(body, OutputCut):
            if self._cut:
                return
            self._cut = True
        self._events_bytes += size
        if self._events_bytes > self._settings.events_bytes:
            raise ContractError(message("server.events_too_large", limit=self._settings.events_bytes))
        if frame.compile is not None:
            self._compiles.add(frame.compile)
            if len(self._compiles) > _MOST_COMPILES:
                raise ContractError(message("server.too_many_compiles", limit=_MOST_COMPILES))
        if frame.stage is not None:
            key = (frame.compile, frame.stage)
            if isinstance(body, StageStarted):
                self._open[key] = None
            elif isinstance(body, StageFinished | StageFailed | StageSkipped):
                self._open.pop(key, None)
                self._resolved.add(frame.stage)
        self._say(body, frame)

    def _print(self, stream: str, text: str, frame: EventFrame | None = None) -> None:
        """Keep printed output up to the limit, and say once that there was more."""
        if self._cut or not text:
            return
        # Output in ever so small pieces is limited by the number of events, too.
        room = self._settings.output_bytes - self._printed_bytes if self._seq < self._settings.events else 0
        data = text.encode(errors="replace")
        self._printed_bytes += len(data)
        kept = text if len(data) <= room else data[:room].decode(errors="ignore")
        if kept:
            self._say(Printed(stream="stderr" if stream == "stderr" else "stdout", text=kept), frame)
        if len(data) > room:
            self._cut = True
            self._say(OutputCut(limit_bytes=self._settings.output_bytes))

    def _fail_open(self, cause: Message, error: str = "") -> None:
        for of, stage in list(self._open):
            self._say(StageFailed(cause=cause, error=error), stage=stage, compile=of)
            self._resolved.add(stage)
        self._open.clear()

    def _fail_native(self, cause: Message, error: str = "") -> None:
        """The native phase broke off: what it was doing, and what it did not come to, has failed."""
        self._fail_open(cause, error)
        for stage in self._missing():
            self._say(StageFailed(cause=cause, error=error), stage=stage)

    def _skip(self, reason: Message) -> None:
        for stage in self._missing():
            self._say(StageSkipped(reason=reason), stage=stage)

    def _missing(self) -> list[StageName]:
        until = self._request.options.until
        last = len(_ORDER) if until is None else _ORDER.index(until) + 1
        return [stage for stage in _NATIVE_STAGES if _ORDER.index(stage) < last and stage not in self._resolved]

    # --- writing -------------------------------------------------------------------------------------------------

    def _say(
        self,
        body: Body,
        frame: EventFrame | None = None,
        *,
        stage: StageName | None = None,
        compile: str | None = None,
    ) -> None:
        now = time.monotonic()
        # The child's clock is ours, but what it says about it need not be true.
        at = now if frame is None else min(max(frame.clock, self._began), now)
        self._last_t = max(self._last_t, round(at - self._began, 6))
        self._seq += 1
        self._pending.append(
            Event(
                run=self._run,
                seq=self._seq,
                t=self._last_t,
                compile=frame.compile if frame is not None else compile,
                stage=frame.stage if frame is not None else stage,
                body=body,
            )
        )

    def _end(self, terminal: Terminal) -> Terminal:
        self._say(terminal)
        self._flush()
        return terminal

    def _flush_in(self) -> float | None:
        """Seconds until the pending events must be written, None when there are none."""
        if not self._pending:
            return None
        return max(0.0, self._flushed + self._settings.batch_seconds - time.monotonic())

    def _flush(self, lazy: bool = False) -> None:
        if not self._pending or (lazy and self._flush_in()):
            return
        batch, self._pending = self._pending, []
        self._recorder.events(batch)
        self._flushed = time.monotonic()
