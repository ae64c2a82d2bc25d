"""The same service over PostgreSQL, a server of this test's own. Skipped where none is installed."""

from __future__ import annotations

import os
import pwd
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.conftest import Service

_PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))

pytestmark = pytest.mark.skipif(not _PROGRAMS, reason="PostgreSQL is not installed")


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """The URL of a new database on a server that ends with the module."""
    # PostgreSQL refuses root; its package makes a user for it, who must be able to reach the folder.
    user = "postgres" if os.getuid() == 0 else None
    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        if user is not None:
            os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()

        def control(*arguments: str) -> None:
            command = [str(_PROGRAMS[-1] / "pg_ctl"), "-D", f"{folder}/data", "-l", f"{folder}/log", "-w", *arguments]
            subprocess.run(command, user=user, check=True)

        control("-o", "-A trust -U explorer", "initdb")
        control("-o", f"-p {port} -h 127.0.0.1 -k {folder}", "start")
        yield f"postgresql+psycopg://explorer@127.0.0.1:{port}/postgres"
        control("-m", "fast", "stop")


@pytest.fixture
def service(database: str, tmp_path: Path) -> Iterator[Service]:
    one = Service(tmp_path / "data", database=database, heartbeat_seconds=0.2)
    one.start()
    one.ready()
    yield one
    one.stop()


def test_a_run_is_stored_and_outlives_the_server(service: Service) -> None:
    """Also what PostgreSQL's texts cannot hold: a zero character."""
    run = service.submit("print('a\\x00b')")
    log = service.stream(run)
    assert service.run(run)["state"] == "finished"
    service.kill()
    service.start()
    service.ready()
    assert service.stream(run) == log
    assert service.stream(run, after=1) == log.partition(b"\n\n")[2]
    assert not list(service.data.glob("*.sqlite3*"))


def test_a_run_whose_worker_was_killed_is_lost_and_the_next_one_runs(service: Service) -> None:
    run = service.submit("import time; time.sleep(60)")
    service.until(lambda: service.run(run)["state"] == "running")
    os.kill(service.worker, signal.SIGKILL)
    service.until(lambda: service.run(run)["state"] == "lost")
    service.ready()
    after = service.submit("print(1)")
    service.stream(after)
    assert service.run(after)["state"] == "finished"
