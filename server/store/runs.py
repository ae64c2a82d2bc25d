"""Runs and their event logs. A log only grows, without gaps, and ends with one terminal event; nothing follows it."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import sqlalchemy as sa

from compiler.events import (
    TERMINAL,
    Cancelled,
    Event,
    Failed,
    Finished,
    Lost,
    RunRequest,
    RunStarted,
    Summary,
    TimedOut,
    dump_event,
)
from server.store.database import ARTIFACTS, EVENTS, RUNS, create_tables, open_engine, write

QUEUED = "queued"
RUNNING = "running"

Terminal = Finished | Failed | TimedOut | Cancelled | Lost


class FencedError(Exception):
    """The log may not be written by this worker (any more): the run has ended, or belongs to another."""


@dataclass(frozen=True, slots=True)
class Run:
    """A row: `state` is queued, running, or the type of the terminal event. Times are seconds since 1970."""

    id: str
    request: RunRequest
    request_key: str
    state: str
    created: float
    started: float | None
    ended: float | None
    executor: str | None
    cancel_requested: bool
    last_seq: int
    engine: dict[str, Any] | None
    summary: dict[str, Any] | None
    terminal: dict[str, Any] | None

    @property
    def over(self) -> bool:
        return self.state in TERMINAL


def new_id() -> str:
    """A run's random id: unguessable, fit for a path."""
    return secrets.token_hex(10)


def request_key(request: RunRequest, versions: dict[str, str]) -> str:
    """Equal for equal snippets, options and engine versions."""
    canonical = orjson.dumps([request.model_dump(mode="json"), versions], option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(canonical).hexdigest()


def encode_event(event: Event) -> str:
    """The text that is stored, streamed and replayed; JSON without NaN or Infinity."""
    return orjson.dumps(dump_event(event)).decode()


def _loads(text: str | None) -> Any:
    return None if text is None else orjson.loads(text)


def _run(row: sa.Row[Any]) -> Run:
    return Run(
        id=row.id,
        request=RunRequest.model_validate_json(row.request),
        request_key=row.request_key,
        state=row.state,
        created=row.created,
        started=row.started,
        ended=row.ended,
        executor=row.executor,
        cancel_requested=bool(row.cancel_requested),
        last_seq=row.last_seq,
        engine=_loads(row.engine),
        summary=_loads(row.summary),
        terminal=_loads(row.terminal),
    )


class Runs:
    """The tables of runs. Every method is one transaction."""

    def __init__(self, url: str) -> None:
        self.engine = open_engine(url)
        create_tables(self.engine)

    def close(self) -> None:
        self.engine.dispose()

    # --- writing -------------------------------------------------------------------------------------------------

    def insert(self, connection: sa.Connection, run: str, request: RunRequest, key: str) -> None:
        """A queued run, inside the caller's transaction (the queue's own entry belongs to the same one)."""
        connection.execute(
            RUNS.insert().values(
                id=run, request=request.model_dump_json(), request_key=key, state=QUEUED, created=time.time()
            )
        )

    def begin(self, run: str, executor: str) -> bool:
        """Take a queued run. False when it was begun before, or is over: then it must not run (again)."""
        with write(self.engine) as connection:
            taken = connection.execute(
                RUNS.update()
                .where(RUNS.c.id == run, RUNS.c.state == QUEUED)
                .values(state=RUNNING, executor=executor, started=time.time())
            )
            return taken.rowcount == 1

    def append(self, run: str, executor: str, events: Sequence[Event], artifacts: Sequence[str] = ()) -> None:
        """Add events, in order, and the hashes of artifacts that they may name. Raises FencedError when the run is not this
        executor's, is over, or the first event does not follow the last one."""
        with write(self.engine) as connection:
            row = connection.execute(
                sa.select(RUNS.c.last_seq).where(RUNS.c.id == run, RUNS.c.state == RUNNING, RUNS.c.executor == executor)
            ).first()
            if row is None or (events and events[0].seq != row.last_seq + 1):
                raise FencedError(run)
            self._add_artifacts(connection, run, artifacts)
            self._add_events(connection, run, events)

    def end(self, run: str, body: Terminal, states: Sequence[str], executor: str | None = None) -> bool:
        """Append a terminal event from outside the run's worker, if the run is in one of `states` (and, where given, still that
        executor's). False when it was not."""
        with write(self.engine) as connection:
            condition = [RUNS.c.id == run, RUNS.c.state.in_(states)]
            if executor is not None:
                condition.append(RUNS.c.executor == executor)
            row = connection.execute(sa.select(RUNS).where(*condition)).first()
            if row is None:
                return False
            elapsed = 0.0 if row.started is None else max(0.0, time.time() - row.started)
            event = Event(run=run, seq=row.last_seq + 1, t=max(row.last_t, round(elapsed, 6)), body=body)
            self._add_events(connection, run, [event])
            return True

    def request_cancel(self, run: str) -> str | None:
        """Cancel a queued run at once; ask the worker of a running one to end it. Returns the state that was found."""
        if self.end(run, Cancelled(), (QUEUED,)):
            return QUEUED
        with write(self.engine) as connection:
            state = connection.execute(sa.select(RUNS.c.state).where(RUNS.c.id == run)).scalar()
            if state == RUNNING:
                connection.execute(RUNS.update().where(RUNS.c.id == run).values(cancel_requested=True))
            return state

    def replace(self, run: Run, events: Sequence[Event], artifacts: Sequence[str]) -> None:
        """Put a finished run in place under its own id: how recordings come in."""
        with write(self.engine) as connection:
            for table, column in ((RUNS, RUNS.c.id), (EVENTS, EVENTS.c.run), (ARTIFACTS, ARTIFACTS.c.run)):
                connection.execute(table.delete().where(column == run.id))
            connection.execute(
                RUNS.insert().values(
                    id=run.id,
                    request=run.request.model_dump_json(),
                    request_key=run.request_key,
                    state=RUNNING,
                    created=run.created,
                    started=run.started,
                    executor=run.executor,
                )
            )
            self._add_artifacts(connection, run.id, artifacts)
            self._add_events(connection, run.id, events)

    def _add_artifacts(self, connection: sa.Connection, run: str, hashes: Sequence[str]) -> None:
        if not hashes:
            return
        known = set(
            connection.scalars(sa.select(ARTIFACTS.c.hash).where(ARTIFACTS.c.run == run, ARTIFACTS.c.hash.in_(hashes)))
        )
        fresh = [{"run": run, "hash": digest} for digest in dict.fromkeys(hashes) if digest not in known]
        if fresh:
            connection.execute(ARTIFACTS.insert(), fresh)

    def _add_events(self, connection: sa.Connection, run: str, events: Sequence[Event]) -> None:
        if not events:
            return
        connection.execute(
            EVENTS.insert(), [{"run": run, "seq": event.seq, "body": encode_event(event)} for event in events]
        )
        changes: dict[str, Any] = {"last_seq": events[-1].seq, "last_t": events[-1].t}
        for event in events:
            match event.body:
                case RunStarted(engine=engine):
                    changes["engine"] = engine.model_dump_json()
                case Summary(summary=summary):
                    changes["summary"] = orjson.dumps(summary).decode()
                case Finished() | Failed() | TimedOut() | Cancelled() | Lost():
                    if event is not events[-1]:
                        raise FencedError(run)
                    changes |= {"state": event.body.type, "ended": time.time(), "terminal": encode_event(event)}
        connection.execute(RUNS.update().where(RUNS.c.id == run).values(**changes))

    # --- reading -------------------------------------------------------------------------------------------------

    def get(self, run: str) -> Run | None:
        with self.engine.connect() as connection:
            row = connection.execute(sa.select(RUNS).where(RUNS.c.id == run)).first()
        return None if row is None else _run(row)

    def state(self, run: str) -> str | None:
        with self.engine.connect() as connection:
            return connection.execute(sa.select(RUNS.c.state).where(RUNS.c.id == run)).scalar()

    def events(self, run: str, after: int = 0, limit: int | None = None) -> list[tuple[int, str]]:
        """(seq, text) of the events after `after`, in order."""
        query = sa.select(EVENTS.c.seq, EVENTS.c.body).where(EVENTS.c.run == run, EVENTS.c.seq > after)
        with self.engine.connect() as connection:
            rows = connection.execute(query.order_by(EVENTS.c.seq).limit(limit)).all()
        return [(row.seq, row.body) for row in rows]

    def has_artifact(self, run: str, digest: str) -> bool:
        query = sa.select(ARTIFACTS.c.hash).where(ARTIFACTS.c.run == run, ARTIFACTS.c.hash == digest)
        with self.engine.connect() as connection:
            return connection.execute(query).first() is not None

    def artifacts(self, run: str) -> list[str]:
        with self.engine.connect() as connection:
            return list(connection.scalars(sa.select(ARTIFACTS.c.hash).where(ARTIFACTS.c.run == run)))

    def cancel_requested(self, run: str) -> bool:
        with self.engine.connect() as connection:
            return bool(connection.execute(sa.select(RUNS.c.cancel_requested).where(RUNS.c.id == run)).scalar())

    def finished_with_key(self, key: str) -> str | None:
        """The newest finished run of the same request."""
        query = sa.select(RUNS.c.id).where(RUNS.c.request_key == key, RUNS.c.state == "finished")
        with self.engine.connect() as connection:
            return connection.execute(query.order_by(RUNS.c.created.desc()).limit(1)).scalar()

    def of_executor(self, executor: str) -> list[str]:
        """Ids of the runs that an executor has begun and not ended."""
        query = sa.select(RUNS.c.id).where(RUNS.c.executor == executor, RUNS.c.state == RUNNING)
        with self.engine.connect() as connection:
            return list(connection.scalars(query))

    def count(self, state: str) -> int:
        with self.engine.connect() as connection:
            return connection.execute(
                sa.select(sa.func.count()).select_from(RUNS).where(RUNS.c.state == state)
            ).scalar_one()
