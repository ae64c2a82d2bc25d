"""The workers that live, and how each is."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from typing import Any

import orjson
import psutil  # type: ignore[import-untyped]
import sqlalchemy as sa

from server.store.database import EXECUTORS, write


def host() -> str:
    """Equal for processes that can see each other's pids."""
    try:
        namespace = os.readlink("/proc/self/ns/pid")
        with open("/proc/sys/kernel/random/boot_id") as file:
            return f"{file.read().strip()} {namespace}"
    except OSError:
        return platform.node()


def _alive(pid: int, started: float) -> bool:
    try:
        process = psutil.Process(pid)
        # A pid is given again; a start time with it is not.
        return bool(abs(process.create_time() - started) < 2 and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


class Executors:
    """Rows written by the workers themselves, and read by those who bury the dead."""

    def __init__(self, engine: sa.Engine, dead_seconds: float) -> None:
        self._engine = engine
        self._dead_seconds = dead_seconds

    def beat(self, executor: str, status: dict[str, Any]) -> None:
        """Say that this process lives as `executor`."""
        text = orjson.dumps(status).decode()
        with write(self._engine) as connection:
            known = connection.execute(
                EXECUTORS.update().where(EXECUTORS.c.id == executor).values(seen=time.time(), status=text)
            )
            if known.rowcount == 0:
                connection.execute(
                    EXECUTORS.insert().values(
                        id=executor,
                        host=host(),
                        pid=os.getpid(),
                        pid_started=psutil.Process().create_time(),
                        seen=time.time(),
                        status=text,
                    )
                )

    def dead(self) -> list[str]:
        """Those of this machine whose process is gone, and those of others that have been silent for too long. One of this
        machine that only stalls (a suspended laptop) is not dead."""
        here = host()
        with self._engine.connect() as connection:
            rows = connection.execute(sa.select(EXECUTORS)).all()
        return [
            row.id
            for row in rows
            if (
                not _alive(row.pid, row.pid_started)
                if row.host == here
                else time.time() - row.seen > self._dead_seconds
            )
        ]

    def forget(self, executors: Sequence[str]) -> None:
        with write(self._engine) as connection:
            connection.execute(EXECUTORS.delete().where(EXECUTORS.c.id.in_(executors)))

    def living(self) -> list[dict[str, Any]]:
        """What each worker last said of itself."""
        dead = set(self.dead())
        with self._engine.connect() as connection:
            rows = connection.execute(sa.select(EXECUTORS).order_by(EXECUTORS.c.id)).all()
        return [
            {"id": row.id, "seen_seconds_ago": round(max(0.0, time.time() - row.seen), 1), **orjson.loads(row.status)}
            for row in rows
            if row.id not in dead
        ]
