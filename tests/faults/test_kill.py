"""Killing worker or server in the middle: no finished run is lost, the interrupted one ends, the waiting ones run."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import orjson
import psutil
import pytest

from compiler.events import load_event
from tests.server.conftest import Service, check_log

LONG = "stage('source')\nimport os; print(os.getpid(), flush=True)\nimport time; time.sleep(60)"
SHORT = "stage('source')\nartifact('x = 1')"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    one = Service(tmp_path / "data", concurrency=1, heartbeat_seconds=0.2)
    one.start()
    one.ready()
    yield one
    one.stop()


def log(service: Service, run: str) -> list[str]:
    """The types of a run's events, after the invariants of every log were checked."""
    frames = service.stream(run).split(b"\n\n")[:-1]
    events = [load_event(orjson.loads(frame.split(b"\n")[1].removeprefix(b"data: "))) for frame in frames]
    check_log(events)
    return [event.body.type for event in events]


def child_of(service: Service, run: str) -> int:
    """The pid of a running LONG, once it has spoken. Seen from outside: to itself, in a namespace, it is process 1."""
    service.until(lambda: any(body["type"] == "printed" for _seq, body in _events(service, run)))
    return max(psutil.Process(service.worker).children(recursive=True), key=lambda one: len(one.parents())).pid


def _events(service: Service, run: str) -> list[tuple[int, dict[str, str]]]:
    from server.store.runs import Runs

    runs = Runs(f"sqlite:///{service.data / 'aotscope.sqlite3'}")
    try:
        return [(seq, orjson.loads(body)) for seq, body in runs.events(run)]
    finally:
        runs.close()


def test_killing_the_worker(service: Service) -> None:
    finished = service.submit(SHORT)
    before = service.stream(finished)
    interrupted, waiting = service.submit(LONG), service.submit(SHORT)
    child = child_of(service, interrupted)
    worker = service.worker
    os.kill(worker, signal.SIGKILL)
    assert log(service, interrupted)[-1] == "lost"
    assert service.run(interrupted)["terminal"]["cause"]["key"] == "server.worker_died"
    assert log(service, waiting)[-1] == "finished"
    assert service.worker != worker
    assert not Path(f"/proc/{child}").exists()
    assert service.stream(finished) == before


def test_killing_the_server(service: Service) -> None:
    finished = service.submit(SHORT)
    before = service.stream(finished)
    interrupted, waiting = service.submit(LONG), service.submit(SHORT)
    child = child_of(service, interrupted)
    worker = service.worker
    service.kill()
    deadline = time.monotonic() + 10
    while psutil.pid_exists(worker) or psutil.pid_exists(child):
        assert time.monotonic() < deadline, "the worker or its child has outlived the server"
        time.sleep(0.05)
    service.start()
    assert log(service, interrupted)[-1] == "lost"
    assert log(service, waiting)[-1] == "finished"
    assert service.stream(finished) == before


def test_killing_the_fork_server(service: Service) -> None:
    interrupted = service.submit(LONG)
    child_of(service, interrupted)
    (fork_server,) = [
        process.pid
        for process in psutil.Process(service.worker).children()
        if "server.sandbox.forkserver" in process.cmdline()
    ]
    os.kill(fork_server, signal.SIGKILL)
    assert log(service, interrupted)[-1] == "lost"
    assert service.run(interrupted)["terminal"]["cause"]["key"] == "server.fork_server_died"
    assert log(service, service.submit(SHORT))[-1] == "finished"


def test_stopping_the_server_ends_its_runs_in_a_stated_way(service: Service) -> None:
    interrupted, waiting = service.submit(LONG), service.submit(SHORT)
    child_of(service, interrupted)
    assert service.process is not None
    service.process.terminate()
    service.process.communicate(timeout=20)
    service.start()
    assert log(service, interrupted)[-1] == "lost"
    assert service.run(interrupted)["terminal"]["cause"]["key"] == "server.worker_stopped"
    assert log(service, waiting)[-1] == "finished"


def test_cancelling_while_the_worker_is_dead(service: Service) -> None:
    run = service.submit(LONG)
    child_of(service, run)
    worker = psutil.Process(service.worker)
    worker.suspend()
    service.client.delete(f"/api/v1/runs/{run}")
    worker.kill()
    assert log(service, run)[-1] == "cancelled"


def test_stopping_while_it_warms_up_keeps_the_queue(tmp_path: Path) -> None:
    service = Service(tmp_path / "data")
    # One of the few variables that the fork server is given.
    service.environment["LANG"] = "warm-slowly"
    service.start()
    service.until(lambda: service.client.get("/api/v1/health").json()["state"] == "warming")
    run = service.submit(SHORT)
    time.sleep(0.5)
    assert service.run(run)["state"] == "queued"
    assert service.process is not None
    service.process.terminate()
    service.process.communicate(timeout=20)
    del service.environment["LANG"]
    service.start()
    assert log(service, run)[-1] == "finished"
    service.stop()


@pytest.mark.long
@pytest.mark.timeout(1500)
def test_killing_at_random(tmp_path: Path) -> None:
    """Workers, servers and fork servers are killed at random moments under load: each run has one whole log in the end."""
    dice = random.Random(7)
    service = Service(tmp_path / "data", concurrency=2, heartbeat_seconds=0.2)
    service.start()
    service.ready()
    runs: list[str] = []
    kept: dict[str, bytes] = {}
    try:
        for round_ in range(40):
            runs += [service.submit(f"{SHORT}\nimport time; time.sleep({dice.random()})") for _ in range(4)]
            time.sleep(dice.random())
            kept |= {run: service.stream(run) for run in runs if run not in kept and service.run(run)["ended"]}
            match round_ % 3:
                case 0:
                    service.kill()
                    service.start()
                case 1:
                    for worker in service.client.get("/api/v1/health").json()["workers"]:
                        os.kill(worker["pid"], signal.SIGKILL)
                case 2:
                    for worker in service.client.get("/api/v1/health").json()["workers"]:
                        for process in psutil.Process(worker["pid"]).children():
                            process.kill()
            service.ready()
        ends = [log(service, run)[-1] for run in runs]
        assert {run: service.stream(run) for run in kept} == kept
        counts = {end: ends.count(end) for end in sorted(set(ends))}
        assert set(counts) <= {"finished", "lost"}, counts
        print(
            f"killed 40 times, {len(runs)} runs: {counts}, {len(kept)} were read before a later kill, and read the same after all"
        )
    finally:
        service.stop()
