"""The durable queue: a thin adapter over DBOS. Nothing else in the server knows it.

A workflow is a run, by the same id. The queue decides which worker gets a run and survives everybody's death; what happened
in a run is in our own tables, whose state decides whether a workflow may still do anything.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import orjson
import sqlalchemy as sa
from dbos import DBOS, DBOSClient, DBOSConfig, Serializer

from compiler.events import Cancelled, Lost, RunRequest
from compiler.targets import TargetId
from compiler.text import message
from server.store.database import RUNS, open_engine, write
from server.store.executors import Executors
from server.store.runs import QUEUED, RUNNING, Runs, new_id

_APPLICATION = "aotscope"
_WORKFLOW = "explore"
_QUEUE = "runs"
# Constant: with a version per release, an upgrade would strand the runs of the one before.
_VERSION = "1"


# Only a worker with a GPU takes runs for it; everything else is anybody's.
_GPU_QUEUE = "runs-gpu"


def queues_of(targets: Iterable[TargetId]) -> list[str]:
    """The queues that hold runs for any of these targets."""
    return list(dict.fromkeys(_GPU_QUEUE if target == "cuda" else _QUEUE for target in targets))


class QueueFullError(Exception):
    """As many runs wait as may."""


class _Json(Serializer):
    """Never pickle: whoever writes to the database could otherwise run code in whoever reads it."""

    def serialize(self, data: Any) -> str:
        return orjson.dumps(data, default=repr).decode()

    def deserialize(self, serialized_data: str) -> Any:
        return orjson.loads(serialized_data)

    def name(self) -> str:
        return "aotscope_json"


def migrate(url: str) -> None:
    """Create or bring up to date the queue's own tables. Idempotent."""
    open_engine(url).dispose()
    DBOS.migrate(url)


class Queue:
    """The side that asks: submits and cancels runs."""

    def __init__(self, runs: Runs, limit: int) -> None:
        self._runs = runs
        self._limit = limit
        self._client = DBOSClient(system_database_engine=runs.engine, serializer=_Json(), application_name=_APPLICATION)

    def submit(self, request: RunRequest, key: str) -> str:
        """A new run's id; the run and its place in the queue are one transaction. Raises QueueFullError."""
        run = new_id()
        with write(self._runs.engine) as connection:
            waiting = connection.execute(
                sa.select(sa.func.count()).select_from(RUNS).where(RUNS.c.state == QUEUED)
            ).scalar_one()
            if waiting >= self._limit:
                raise QueueFullError
            self._runs.insert(connection, run, request, key)
            self._client.enqueue_in_transaction(
                connection,
                {
                    "workflow_name": _WORKFLOW,
                    "queue_name": queues_of([request.options.target])[0],
                    "workflow_id": run,
                    "app_version": _VERSION,
                    "application_name": _APPLICATION,
                },
                run,
            )
        return run

    def cancel(self, run: str) -> str | None:
        """Cancel a run; the state it was in, None when there is no such run. A running one ends within a second or so."""
        state = self._runs.request_cancel(run)
        if state == QUEUED:
            self._client.cancel_workflow(run)
        return state

    def close(self) -> None:
        self._client.destroy()


class WorkerLoop:
    """The side that works: takes runs from the queue and buries what dead workers left."""

    def __init__(
        self,
        runs: Runs,
        executors: Executors,
        *,
        url: str,
        queues: Sequence[str],
        concurrency: int,
        poll_seconds: float,
        execute: Callable[[str, str], None],
    ) -> None:
        """`execute(run, executor)` does one run to its end; `concurrency` is each queue's."""
        self.id = f"{_APPLICATION}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self._runs = runs
        self._executors = executors
        self._queues = list(queues)
        self._concurrency = concurrency
        self._poll_seconds = poll_seconds
        self._database = open_engine(url)
        config: DBOSConfig = {
            "name": _APPLICATION,
            "serializer": _Json(),
            "system_database_url": url,
            "system_database_engine": self._database,
            "executor_id": self.id,
            "application_version": _VERSION,
            "log_level": "WARNING",
        }
        DBOS(config=config)

        @DBOS.step(name="run")  # type: ignore[untyped-decorator, unused-ignore]
        def step(run: str) -> str:
            execute(run, self.id)
            return self._runs.state(run) or ""

        @DBOS.workflow(name=_WORKFLOW, max_recovery_attempts=1000)  # type: ignore[untyped-decorator, unused-ignore]
        def explore(run: str) -> str:
            return str(step(run))

    def start(self) -> None:
        DBOS.listen_queues(self._queues)
        DBOS.launch()
        for queue in self._queues:
            DBOS.register_queue(
                queue,
                worker_concurrency=self._concurrency,
                polling_interval_sec=self._poll_seconds,
                on_conflict="always_update",
            )

    def tend(self, stop: threading.Event, every: float, status: Callable[[], dict[str, Any]]) -> None:
        """Say that this worker lives, and bury the dead, until `stop`. A database that is away for a while is waited for."""
        while True:
            try:
                self._executors.beat(self.id, status())
                self.bury()
            except sa.exc.OperationalError as fault:
                print(f"aotscope worker: the database does not answer: {fault}", flush=True)
            if stop.wait(every):
                return

    def bury(self) -> None:
        """End what dead workers had begun, and give back to the queue what they had only taken."""
        dead = self._executors.dead()
        for executor in dead:
            for run in self._runs.of_executor(executor):
                cancelled = self._runs.cancel_requested(run)
                end = Cancelled() if cancelled else Lost(cause=message("server.worker_died"))
                self._runs.end(run, end, (RUNNING,), executor)
        if dead:
            # Every entry of theirs goes back to the queue; one whose run is over then ends without doing anything.
            DBOS._recover_pending_workflows(dead)
            if not DBOS.list_workflows(status="PENDING", executor_id=dead, load_input=False, load_output=False):
                self._executors.forget(dead)

    def stop(self, seconds: int) -> None:
        """Stop taking runs, wait for those that are being ended. Whatever is left, the next worker buries."""
        DBOS.destroy(workflow_completion_timeout_sec=seconds)
        self._database.dispose()
