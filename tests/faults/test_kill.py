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


VICTIMS = ("job", "warden", "waiting warden", "fork server", "outer layer", "worker", "server")


def _processes(mark: str) -> dict[int, list[str]]:
    """Every process of the service, whoever its parent is by now: by a mark in its environment, which forks keep."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"LANG={mark}\0".encode() in (folder / "environ").read_bytes() + b"\0":
                found[int(folder.name)] = (folder / "cmdline").read_bytes().decode().split("\0")
        except OSError:
            continue
    return found


def _victim(service: Service, kind: str, mark: str) -> int | None:
    """The pid of one, None when there is none at the moment."""
    assert service.process is not None
    if kind == "server":
        return service.process.pid
    below = psutil.Process(service.process.pid).children(recursive=True)
    known = _processes(mark)
    workers = [one for one in below if "worker" in known.get(one.pid, ())]
    if kind == "worker":
        return workers[0].pid if workers else None
    # worker > [bubblewrap > its init >] fork server > warden > job; one more warden waits, without a job
    servers = [one for one in below if "server.sandbox.forkserver" in known.get(one.pid, ())]
    if not servers:
        return None
    if kind == "outer layer":
        return servers[0].pid
    try:
        python = sorted((one for one in servers if "bwrap" not in one.name()), key=lambda one: len(one.parents()))
        jobs = [one for one in python[1:] if one.ppid() != python[0].pid]
    except psutil.NoSuchProcess:
        return None
    if kind == "fork server":
        return python[0].pid if python else None
    if kind == "waiting warden":
        idle = [one.pid for one in python[1:] if one.pid not in {job.ppid() for job in jobs}]
        return max(idle, default=None)
    if not jobs:
        return None
    return jobs[-1].pid if kind == "job" else jobs[-1].ppid()


@pytest.mark.parametrize("kills", [14, pytest.param(200, marks=[pytest.mark.long, pytest.mark.timeout(3600)])])
@pytest.mark.skipif(not Path("/proc").exists(), reason="reads /proc")
def test_killing_at_random(tmp_path: Path, kills: int) -> None:
    """Job, warden, the warden that waits, fork server, outer layer, worker and server are killed at random moments under load: no
    process is left over, no finished run changes, and each run has one whole log with one end."""
    dice = random.Random(7)
    mark = f"killed-{os.getpid()}-{kills}"
    service = Service(tmp_path / "data", concurrency=2, heartbeat_seconds=0.2, queue=1000)
    service.environment["LANG"] = mark
    service.start()
    service.ready()
    runs: list[str] = []
    kept: dict[str, bytes] = {}
    killed = dict.fromkeys(VICTIMS, 0)
    try:
        while sum(killed.values()) < kills:
            kind = VICTIMS[sum(killed.values()) % len(VICTIMS)]
            runs += [service.submit(f"{SHORT}\nimport time; time.sleep({dice.uniform(0.1, 0.6)})") for _ in range(2)]
            time.sleep(dice.uniform(0, 0.4))
            kept |= {run: service.stream(run) for run in runs[-20:] if run not in kept and service.run(run)["ended"]}
            victim = _victim(service, kind, mark)
            if victim is None:
                continue
            try:
                os.kill(victim, signal.SIGKILL)
            except ProcessLookupError:
                continue
            killed[kind] += 1
            if kind == "server":
                service.kill()
                service.start()
            service.ready()
        ends = [log(service, run)[-1] for run in runs]
        assert {run: service.stream(run) for run in kept} == kept
        counts = {end: ends.count(end) for end in sorted(set(ends))}
        # A killed job or warden is its run's failure, told as such.
        assert set(counts) <= {"finished", "failed", "lost"}, counts
        assert counts["finished"] > 0
    finally:
        service.stop()
    deadline = time.monotonic() + 20
    while left := _processes(mark):
        assert time.monotonic() < deadline, f"left over: {left}"
        time.sleep(0.1)
    print(
        f"killed {killed}; {len(runs)} runs: {counts}; {len(kept)} of them read before a later kill, and the same after all"
    )
