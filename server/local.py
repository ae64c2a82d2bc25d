"""A run without a server: the user's own file, in a limited child, with live progress."""

from __future__ import annotations

import gzip
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import orjson
from rich.console import Console

from compiler.errors import AotscopeError
from compiler.events import ArtifactRef, Event, Finished, Options, RunRequest, dump_event
from compiler.ir.trace import TracePayload
from compiler.recording import RecordedRun, Recording
from compiler.targets import BY_ID, TargetId
from compiler.text import message, render
from server.document import document
from server.examples import parse
from server.pages import NotBuiltError, require_front_end
from server.progress import Progress
from server.report import report
from server.sandbox.launcher import Launcher
from server.sandbox.supervisor import Script, Supervisor, Terminal
from server.settings import Settings
from server.store.runs import new_id
from server.targets import refused
from server.traces import file_name, trace_hashes

EXIT_CODES = {"finished": 0, "failed": 1, "timed_out": 1, "lost": 1, "cancelled": 130}
_LONGEST_SOURCE = 200_000


class UnusableError(AotscopeError):
    """The file or a destination cannot be used: wrong usage."""


class Memory:
    """Keeps a run in memory, and passes its events on."""

    def __init__(self, show: Callable[[Event], None]) -> None:
        self._show = show
        self.log: list[Event] = []
        self.payloads: dict[str, bytes] = {}

    def artifact(self, ref: ArtifactRef, payload: bytes) -> None:
        self.payloads[ref.hash] = payload

    def events(self, events: Sequence[Event]) -> None:
        self.log += events
        for event in events:
            self._show(event)


def run_file(
    file: Path, options: Options, settings: Settings, *, json: str | None, html: Path | None, trace: Path | None
) -> int:
    """Run a file and write what was asked for; the exit code. Raises UnusableError."""
    request = RunRequest(source=_read(file), options=options)
    console = Console(stderr=True, highlight=False)
    # Fails before the run, not after it.
    for destination in (None if json in (None, "-") else Path(str(json)), html, trace):
        if destination is not None and not destination.absolute().parent.is_dir():
            raise UnusableError(message("server.no_folder", file=str(destination)))
    if html is not None:
        try:
            require_front_end()
        except NotBuiltError as fault:
            raise UnusableError(fault.cause) from None
    progress = Progress(console, printed=sys.stderr if json == "-" else sys.stdout)
    recording, terminal = _run_own(file, request, settings, progress)
    if json == "-":
        sys.stdout.buffer.write(_pretty(document(recording)))
        sys.stdout.buffer.flush()
    elif json is not None:
        Path(json).write_bytes(_pretty(document(recording)))
    if html is not None:
        html.write_text(report(recording), encoding="utf-8")
    if trace is not None:
        trace.mkdir(exist_ok=True)
        for phase, digest in trace_hashes(recording.parsed()).items():
            text = TracePayload.model_validate(recording.artifacts[digest]).text
            (trace / file_name(phase)).write_text(text, encoding="utf-8")
    return EXIT_CODES[terminal.type]


def run_once(file: Path, options: Options, settings: Settings, console: Console) -> tuple[dict[str, Any], Terminal]:
    """Run a file as `run_file` does; its document, and how it ended. What it prints goes to stderr. Raises UnusableError."""
    request = RunRequest(source=_read(file), options=options)
    recording, terminal = _run_own(file, request, settings, Progress(console, printed=sys.stderr))
    return document(recording), terminal


def _run_own(file: Path, request: RunRequest, settings: Settings, progress: Progress) -> tuple[Recording, Terminal]:
    """Run the user's own file, with their rights."""
    path, target = file.resolve(), request.options.target
    _require_served(target)
    launcher = Launcher(settings.child, warm=False, own=True, target=target)
    try:
        progress.note(message("server.not_isolated"))
        return _explore(request, settings, progress, launcher, Script(str(path), str(path.parent)))
    finally:
        launcher.close()


def answer(request: RunRequest, settings: Settings, console: Console, *, own: bool) -> tuple[dict[str, Any], Terminal]:
    """The document of a derived run, and how it ended. Its kernel's source is a program: isolated where that works, and not run
    without isolation unless it is of the user's `own` file. Raises UnusableError."""
    target = request.options.target
    _require_served(target)
    launcher = Launcher(
        settings.child, warm=False, isolation=settings.isolation, outer=settings.outer, strangers=not own, target=target
    )
    try:
        recording, terminal = _explore(request, settings, Progress(console, printed=sys.stderr), launcher, None)
    finally:
        launcher.close()
    return document(recording), terminal


def _require_served(target: TargetId) -> None:
    if (reason := refused().get(target)) is not None:
        raise UnusableError(message("server.target_not_served", target=BY_ID[target].name, why=render(reason)))


def record_examples(files: Sequence[Path], folder: Path, settings: Settings) -> int:
    """Run examples as the server runs a pasted snippet, and write the recording of each that finishes; the worst exit code."""
    worst = 0
    launcher = Launcher(settings.child, warm=True, isolation=settings.isolation)
    try:
        for file in files:
            progress = Progress(Console(stderr=True, highlight=False), printed=sys.stderr)
            request = RunRequest(source=parse(file.stem, _read(file)).source)
            recording, terminal = _explore(request, settings, progress, launcher, None)
            worst = max(worst, EXIT_CODES[terminal.type])
            if isinstance(terminal, Finished):
                folder.mkdir(parents=True, exist_ok=True)
                data = gzip.compress(recording.model_dump_json().encode(), compresslevel=9, mtime=0)
                (folder / f"{file.stem}.json.gz").write_bytes(data)
    finally:
        launcher.close()
    return worst


def _read(file: Path) -> str:
    try:
        source = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise UnusableError(message("server.file_unreadable", file=str(file), error=str(fault))) from fault
    if len(source) > _LONGEST_SOURCE:
        raise UnusableError(message("server.file_too_long", file=str(file), limit=_LONGEST_SOURCE))
    return source


def _pretty(value: dict[str, Any]) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2) + b"\n"


def _explore(
    request: RunRequest, settings: Settings, progress: Progress, launcher: Launcher, script: Script | None
) -> tuple[Recording, Terminal]:
    run, created = new_id(), time.time()
    memory = Memory(progress.show)
    interrupted = False

    def interrupt(_number: int, _frame: object) -> None:
        nonlocal interrupted
        interrupted = True
        launcher.abort()

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        with progress.live():
            supervisor = Supervisor(run, request, launcher, memory, settings, lambda: interrupted, script)
            terminal = supervisor.run()
    finally:
        signal.signal(signal.SIGINT, before)
    recording = Recording(
        run=RecordedRun(id=run, request=request, created=created),
        events=[dump_event(event) for event in memory.log],
        artifacts={digest: orjson.loads(payload) for digest, payload in memory.payloads.items()},
    )
    return recording, terminal
