"""The database: SQLite unless a URL says otherwise. The durable queue keeps its own tables in the same one."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

METADATA = sa.MetaData()

RUNS = sa.Table(
    "runs",
    METADATA,
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("request", sa.Text, nullable=False),
    sa.Column("request_key", sa.String, nullable=False, index=True),
    sa.Column("state", sa.String, nullable=False, index=True),
    sa.Column("created", sa.Float, nullable=False),
    sa.Column("started", sa.Float),
    sa.Column("ended", sa.Float),
    sa.Column("executor", sa.String),
    sa.Column("cancel_requested", sa.Boolean, nullable=False, default=False),
    sa.Column("last_seq", sa.Integer, nullable=False, default=0),
    sa.Column("last_t", sa.Float, nullable=False, default=0.0),
    sa.Column("engine", sa.Text),
    sa.Column("summary", sa.Text),
    sa.Column("terminal", sa.Text),
)

EVENTS = sa.Table(
    "events",
    METADATA,
    sa.Column("run", sa.String, primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True),
    sa.Column("body", sa.Text, nullable=False),
    sqlite_with_rowid=False,
)

ARTIFACTS = sa.Table(
    "run_artifacts",
    METADATA,
    sa.Column("run", sa.String, primary_key=True),
    sa.Column("hash", sa.String, primary_key=True),
    sqlite_with_rowid=False,
)

EXECUTORS = sa.Table(
    "executors",
    METADATA,
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("host", sa.String, nullable=False),
    sa.Column("pid", sa.Integer, nullable=False),
    sa.Column("pid_started", sa.Float, nullable=False),
    sa.Column("seen", sa.Float, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
)


def open_engine(url: str) -> sa.Engine:
    """An engine for a URL. On SQLite: WAL, `synchronous=NORMAL` (a crash of the process loses nothing, a power cut the
    last commits), and thirty seconds of patience with another process's lock."""
    parsed = sa.make_url(url)
    if parsed.get_backend_name() != "sqlite":
        return sa.create_engine(url, pool_pre_ping=True)
    if parsed.database:
        Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
    engine = sa.create_engine(url, pool_size=20, max_overflow=20)

    @sa.event.listens_for(engine, "connect")
    def _configure(connection: Any, _record: Any) -> None:
        connection.isolation_level = "IMMEDIATE"
        for pragma in ("busy_timeout=30000", "synchronous=NORMAL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")
        _use_wal(connection)

    return engine


def _use_wal(connection: Any) -> None:
    """Switch to WAL, which a new database needs once. SQLite does not wait for another process that is doing the same."""
    deadline = time.monotonic() + 10
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


@contextmanager
def write(engine: sa.Engine) -> Iterator[sa.Connection]:
    """One transaction that no other writer interleaves with, committed at its end."""
    with engine.begin() as connection:
        if engine.dialect.name == "sqlite":
            # pysqlite begins only at the first change: what is read before it would not be under the lock.
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        yield connection


def create_tables(engine: sa.Engine) -> None:
    """Create what is missing; safe when several processes do it at once."""
    with write(engine) as connection:
        METADATA.create_all(connection)
