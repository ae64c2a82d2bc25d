"""What the command line shows while a run goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.status import Status
from rich.text import Text

from compiler.events import (
    CompileStarted,
    Event,
    Failed,
    Finding,
    Finished,
    Lost,
    OutputCut,
    PhaseStarted,
    Printed,
    StageFailed,
    StageFinished,
    StageSkipped,
    StageStarted,
    TimedOut,
)
from compiler.text import Message, message, render
from server.terminal import visible

_STYLES = {"error": "red", "warning": "yellow", "note": "dim"}


class Progress:
    """A line for each stage as it ends, on `console`; what the snippet prints goes to `printed` (and its stderr to stderr).
    What it says or prints is shown, and never obeyed by the terminal."""

    def __init__(self, console: Console, printed: TextIO) -> None:
        self._console = console
        self._printed = printed
        self._status: Status | None = None

    @contextmanager
    def live(self) -> Iterator[None]:
        """Around the run: on a terminal, what is going on is shown at the bottom."""
        if not self._console.is_terminal:
            yield
            return
        with self._console.status(Text("torch")) as status:
            self._status = status
            try:
                yield
            finally:
                self._status = None

    def note(self, text: Message) -> None:
        self._console.print(Text(visible(render(text)), style="dim"))

    def show(self, event: Event) -> None:
        where = f"{event.stage.value if event.stage else '':13}{event.compile or '':7}"
        match event.body:
            case PhaseStarted(phase=phase):
                self._busy(phase)
            case StageStarted():
                self._busy(where)
            case CompileStarted() as started:
                self._line("▸", "bold", f"{started.function}  {started.file}:{started.line}", started.reason or "")
            case StageFinished() as done:
                seconds = "" if done.seconds is None else f"{done.seconds:.3f} s"
                facts = " ".join(f"{name}={value}" for name, value in done.facts.items())
                self._line("✓", "green", where, f"{done.graph or '':10}{seconds:>10}  {facts}")
            case StageSkipped(reason=reason):
                self._line("–", "dim", where, render(reason))
            case StageFailed() as failed:
                self._line("✗", "red", where, _because(failed.cause, failed.error, failed.line))
            case Finding() as finding:
                at = "" if finding.line is None else f" (line {finding.line})"
                self._line("!", _STYLES[finding.severity.value], where, render(finding.message) + at)
            case Printed(stream=stream, text=text):
                target = self._printed if stream == "stdout" else self._console.file
                target.write(visible(text))
                target.flush()
            case OutputCut(limit_bytes=limit):
                self._line("!", "yellow", "", render(message("server.output_cut", limit=limit)))
            case Finished(error=error) if error is not None:
                self._line("✗", "red", "", render(error))
            case Failed() as failed:
                self._line("✗", "bold red", "", _because(failed.cause, failed.error, failed.line))
                if failed.traceback:
                    self._console.print(Text(visible(failed.traceback), style="dim"))
            case TimedOut(limit_seconds=limit):
                self._line("✗", "bold red", "", render(message("server.limit_time", seconds=round(limit, 1))))
            case Lost(cause=cause):
                self._line("✗", "bold red", "", render(cause))

    def _busy(self, text: str) -> None:
        if self._status is not None:
            self._status.update(Text(visible(text.strip())))

    def _line(self, mark: str, style: str, *parts: str) -> None:
        self._console.print(
            Text.assemble((mark, style), " ", visible("  ".join(part for part in parts if part))), soft_wrap=True
        )


def _because(cause: Message, error: str, line: int | None) -> str:
    at = "" if line is None else f" (line {line})"
    return f"{render(cause)}{at}" + (f" {error}" if error else "")
