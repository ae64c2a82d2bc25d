"""Shared by the server's tests: settings in a temporary folder, a fork server of the child without torch, a whole service."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from compiler.events import ArtifactRef, Event, Options, RunRequest, dump_event
from server.sandbox.launcher import Launcher
from server.sandbox.supervisor import Supervisor
from server.settings import Settings, load

ROOT = Path(__file__).parents[2]
FAKE = "tests.server.fake.child"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load({}, data=str(tmp_path / "data"), child=FAKE, port=0, capture_seconds=20.0)


@pytest.fixture(scope="session")
def fake_launcher() -> Iterator[Launcher]:
    os.environ["PYTHONPATH"] = str(ROOT)
    launcher = Launcher(FAKE, warm=True)
    yield launcher
    launcher.close()


class Kept:
    """A recorder that keeps, and can refuse."""

    def __init__(self) -> None:
        self.log: list[Event] = []
        self.payloads: dict[str, bytes] = {}
        self.fail: Exception | None = None

    def artifact(self, ref: ArtifactRef, payload: bytes) -> None:
        self.payloads[ref.hash] = payload

    def events(self, events: Sequence[Event]) -> None:
        if self.fail is not None:
            raise self.fail
        self.log += events

    def flat(self) -> list[dict[str, Any]]:
        return [dump_event(event) for event in self.log]

    def types(self) -> list[str]:
        return [event.body.type for event in self.log]


Explore = Callable[..., Kept]


@pytest.fixture
def explore(fake_launcher: Launcher, settings: Settings) -> Explore:
    """Run a source through a real supervisor, warden and child; what was recorded."""

    def run(
        source: str,
        options: Options | None = None,
        cancelled: Callable[[], bool] = lambda: False,
        launcher: Launcher = fake_launcher,
        kept: Kept | None = None,
        **limits: Any,
    ) -> Kept:
        kept = kept or Kept()
        request = RunRequest(source=source, options=options or Options(native=False))
        Supervisor("r1", request, launcher, kept, replace(settings, **limits), cancelled).run()
        check_log(kept.log)
        return kept

    return run


def check_log(events: Sequence[Event]) -> None:
    """What holds for every run: no gaps, time that does not run backwards, one terminal event, at the end."""
    terminal = ("finished", "failed", "timed_out", "cancelled", "lost")
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert all(before.t <= after.t for before, after in itertools.pairwise(events))
    assert [event.body.type in terminal for event in events] == [False] * (len(events) - 1) + [True]


class Service:
    """`aotscope serve` in processes of its own."""

    def __init__(self, data: Path, *arguments: str, child: str = FAKE, **settings: Any) -> None:
        self.data = data
        self.arguments = arguments
        values = {"runs_per_minute": 0} | settings
        self.environment = {f"AOTSCOPE_{name.upper()}": str(value) for name, value in values.items()}
        self.environment |= {"AOTSCOPE_CHILD": child, "PYTHONPATH": str(ROOT)}
        self.process: subprocess.Popen[str] | None = None
        self.client = httpx.Client(timeout=30)

    def start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "server.cli", "serve", "--port", "0", "--data", str(self.data), *self.arguments],
            env=os.environ | self.environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        assert line.startswith("aotscope is on http://"), line + self.process.stderr.read()
        url = httpx.URL(line.split()[-1])
        self.client.base_url = url.copy_with(query=None)
        if token := url.params.get("token"):
            # As where no isolation works.
            self.client.headers["authorization"] = f"Bearer {token}"
        self.until(lambda: self.client.get("/api/v1/health").status_code == 200)

    def ready(self) -> None:
        self.until(lambda: self.client.get("/api/v1/health").json()["state"] in ("ready", "busy"))

    def until(self, condition: Callable[[], bool], seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while True:
            try:
                if condition():
                    return
            except httpx.TransportError:
                pass
            assert time.monotonic() < deadline, "it did not come"
            time.sleep(0.02)

    def submit(self, source: str, **options: Any) -> str:
        answer = self.client.post("/api/v1/runs", json={"source": source, "options": {"native": False} | options})
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    def run(self, id: str) -> dict[str, Any]:
        answer: dict[str, Any] = self.client.get(f"/api/v1/runs/{id}").json()
        return answer

    def stream(self, id: str, after: int | None = None) -> bytes:
        """The whole stream of a run, to its end, without its comments."""
        headers = {} if after is None else {"Last-Event-ID": str(after)}
        answer = self.client.get(f"/api/v1/runs/{id}/events", headers=headers, timeout=120)
        return b"".join(part + b"\n\n" for part in answer.content.split(b"\n\n") if part.startswith(b"id:"))

    @property
    def worker(self) -> int:
        """The pid of the only worker."""
        (worker,) = self.client.get("/api/v1/health").json()["workers"]
        return int(worker["pid"])

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.communicate()

    def stop(self) -> None:
        self.client.close()
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.communicate(timeout=30)


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    one = Service(tmp_path_factory.mktemp("service"), concurrency=2, queue=5, follow_seconds=0.01)
    one.start()
    one.ready()
    yield one
    one.stop()
