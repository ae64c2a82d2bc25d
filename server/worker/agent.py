"""The worker process: `aotscope worker`."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Sequence
from typing import Any

from compiler.events import ArtifactRef, Engine, Event, Failed, Lost
from compiler.targets import BY_ID, TargetId
from compiler.text import message, render
from server.engine import WorkerLoop, migrate, queues_of
from server.sandbox.headers import headers_folder
from server.sandbox.launcher import ForkServerError, Launcher
from server.sandbox.launchers import Launchers
from server.sandbox.runner import socket_path
from server.sandbox.supervisor import Supervisor
from server.settings import Settings
from server.store.artifacts import Artifacts
from server.store.executors import Executors
from server.store.runs import RUNNING, FencedError, Runs
from server.targets import refused, wanted

_CANCEL_LOOK_SECONDS = 0.15
_STOP_SECONDS = 5


class _StoppedError(Exception):
    """The worker is being stopped."""


class StoreRecorder:
    """Writes one run to the store, as one executor."""

    def __init__(self, runs: Runs, artifacts: Artifacts, run: str, executor: str) -> None:
        self._runs = runs
        self._artifacts = artifacts
        self._run = run
        self._executor = executor
        self._fresh: list[str] = []

    def artifact(self, ref: ArtifactRef, payload: bytes) -> None:
        self._artifacts.put(ref.hash, payload)
        self._fresh.append(ref.hash)

    def events(self, events: Sequence[Event]) -> None:
        fresh, self._fresh = self._fresh, []
        self._runs.append(self._run, self._executor, events, fresh)


class Agent:
    """One worker: a queue's loop, its fork servers, and the runs in progress."""

    def __init__(self, settings: Settings) -> None:
        migrate(settings.url)
        self._settings = settings
        self._runs = Runs(settings.url)
        self._artifacts = Artifacts(settings.folder / "artifacts")
        self._wanted = wanted(settings.targets)
        # The one that is warm from the start.
        self._first: TargetId = "cpu" if "cpu" in self._wanted else self._wanted[0]
        self._launchers = Launchers(self._made, settings.idle_seconds, self._first)
        self._launcher = self._launchers.of(self._first)
        # Each queue counts for itself.
        self._places = threading.BoundedSemaphore(settings.concurrency)
        self._executors = Executors(self._runs.engine, settings.dead_seconds)
        self._stopping = threading.Event()
        self._engine: Engine | None = None
        self._broken = ""
        self._busy = 0
        self._busy_lock = threading.Lock()
        self._loop = WorkerLoop(
            self._runs,
            self._executors,
            url=settings.url,
            queues=queues_of(self._listened()),
            concurrency=settings.concurrency,
            poll_seconds=settings.queue_poll_seconds,
            execute=self._execute,
        )

    def _made(self, target: TargetId) -> Launcher:
        settings = self._settings
        return Launcher(
            settings.child,
            warm=True,
            isolation=settings.isolation,
            outer=settings.outer,
            runner=settings.runner and socket_path(settings.runner, target),
            # Only the CPU's kernels are C++.
            headers=headers_folder(settings.folder, settings.child) if target == "cpu" else "",
            strangers=not settings.token,
            target=target,
        )

    def _listened(self) -> list[TargetId]:
        return listened(self._settings)

    def _served(self) -> list[TargetId]:
        """With runners, each target needs one of its own, which knows for itself what it can; the first one's may come later."""
        folder = self._settings.runner
        listened = self._listened()
        return [one for one in listened if not folder or one == self._first or os.path.exists(socket_path(folder, one))]

    def run(self) -> None:
        """Work until `stop`."""
        threading.Thread(target=self._warm_up, name="warm-up", daemon=True).start()
        # The dead first: what they left must not wait for a place in the queue.
        self._executors.beat(self._loop.id, self._status())
        self._loop.start()
        self._loop.tend(self._stopping, self._settings.heartbeat_seconds, self._status)
        self._launchers.abort()
        # Runs in progress say that they end; those that have not begun go back to the queue without a word.
        self._loop.stop(_STOP_SECONDS if self._busy else 0)
        self._launchers.close()
        self._runs.close()

    def stop(self) -> None:
        self._stopping.set()

    def _warm_up(self) -> None:
        try:
            self._engine = self._launcher.ready()
        except ForkServerError as fault:
            if not self._stopping.is_set():
                self._broken = render(fault.cause)
                print(f"aotscope worker: {self._broken}", flush=True)

    def _status(self) -> dict[str, Any]:
        self._launchers.end_idle()
        if self._broken:
            state = "broken"
        elif self._engine is None:
            state = "warming"
        else:
            state = "busy" if self._busy >= self._settings.concurrency else "ready"
        return {
            "state": state,
            "error": self._broken,
            "pid": os.getpid(),
            "targets": self._served(),
            "warmed": self._launchers.started(),
            "running": self._busy,
            "concurrency": self._settings.concurrency,
            "isolation": None if self._launcher.isolation is None else self._launcher.isolation.model_dump(mode="json"),
            "engine": None if self._engine is None else self._engine.model_dump(mode="json"),
        }

    def _execute(self, run: str, executor: str) -> None:
        """One run, from the queue to its terminal event. A run that somebody began before is not run again."""
        with self._places:
            self._execute_in_turn(run, executor)

    def _execute_in_turn(self, run: str, executor: str) -> None:
        try:
            # Before the run begins: until children can be forked it waits, and says so.
            self._engine = self._launcher.ready()
            self._broken = ""
        except ForkServerError as fault:
            if self._stopping.is_set():
                # Returning would take the run, which has not begun, out of the queue: the process ends around us, and the
                # next worker gives it back.
                threading.Event().wait()
            if self._runs.begin(run, executor):
                self._runs.end(run, Lost(cause=fault.cause), (RUNNING,), executor)
            return
        if not self._runs.begin(run, executor):
            self._runs.end(run, Lost(cause=message("server.worker_died")), (RUNNING,))
            return
        row = self._runs.get(run)
        assert row is not None
        target = row.request.options.target
        if target not in self._served():
            reason = refused().get(target)
            why = "" if reason is None else render(reason)
            cause = message("server.target_not_served", target=BY_ID[target].name, why=why)
            self._runs.end(run, Failed(cause=cause), (RUNNING,), executor)
            return
        with self._busy_lock:
            self._busy += 1
        launcher = self._launchers.begin(target)
        try:
            Supervisor(
                run,
                row.request,
                launcher,
                StoreRecorder(self._runs, self._artifacts, run, executor),
                self._settings,
                self._cancel_asked(run),
            ).run()
        except _StoppedError:
            self._runs.end(run, Lost(cause=message("server.worker_stopped")), (RUNNING,), executor)
        except FencedError:
            # Somebody ended the run in our place: there is nothing left to say.
            return
        except Exception as fault:
            self._runs.end(
                run,
                Lost(cause=message("server.worker_fault", error=f"{type(fault).__name__}: {fault}")),
                (RUNNING,),
                executor,
            )
            raise
        finally:
            self._launchers.end(target)
            with self._busy_lock:
                self._busy -= 1

    def _cancel_asked(self, run: str) -> Any:
        looked = 0.0

        def asked() -> bool:
            nonlocal looked
            if self._stopping.is_set():
                raise _StoppedError
            if time.monotonic() - looked < _CANCEL_LOOK_SECONDS:
                return False
            looked = time.monotonic()
            return self._runs.cancel_requested(run)

        return asked


def listened(settings: Settings) -> list[TargetId]:
    """What a worker may come to serve: a runner may come later, the GPU of this machine not."""
    here = () if settings.runner else refused()
    return [one for one in wanted(settings.targets) if one not in here]


def end_with(lifeline: int) -> None:
    """End this process at once when the other end of a pipe is closed: whoever started it is gone."""

    def wait() -> None:
        os.read(lifeline, 1)
        os._exit(1)

    threading.Thread(target=wait, name="lifeline", daemon=True).start()


def main(settings: Settings, lifeline: int | None) -> None:
    """Run a worker until SIGTERM or SIGINT, or until whoever holds the lifeline's other end dies."""
    if lifeline is not None:
        end_with(lifeline)
    if not listened(settings):
        asked = wanted(settings.targets)[0]
        why = render(refused()[asked])
        raise SystemExit(render(message("server.target_not_served", target=BY_ID[asked].name, why=why)))
    agent = Agent(settings)
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda _number, _frame: agent.stop())
    agent.run()
    # Not by returning: a thread of the queue may wait for what will never come.
    os._exit(0)
