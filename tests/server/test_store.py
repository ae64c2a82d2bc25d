"""Runs, logs, artifacts, feeds, executors."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from compiler.events import Event, Finished, Lost, Printed, RunRequest
from compiler.text import message
from server.engine import Queue, QueueFullError, migrate
from server.store.artifacts import Artifacts
from server.store.database import EXECUTORS, write
from server.store.executors import Executors
from server.store.feed import Feeds
from server.store.runs import FencedError, Runs, encode_event, request_key
from tests.server.conftest import ROOT

REQUEST = RunRequest(source="pass")


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    store = Runs(f"sqlite:///{tmp_path / 'a.sqlite3'}")
    with write(store.engine) as connection:
        store.insert(connection, "r1", REQUEST, "key")
    yield store
    store.close()


def event(seq: int, body: object | None = None) -> Event:
    return Event(run="r1", seq=seq, t=seq / 10, body=body or Printed(stream="stdout", text=f"{seq}"))


def test_a_run_is_begun_once(runs: Runs) -> None:
    assert (runs.begin("r1", "a"), runs.begin("r1", "a"), runs.begin("r1", "b")) == (True, False, False)


def test_the_log_has_no_gaps_and_one_writer(runs: Runs) -> None:
    runs.begin("r1", "a")
    runs.append("r1", "a", [event(1), event(2)])
    for executor, events in (("b", [event(3)]), ("a", [event(4)]), ("a", [event(2)])):
        with pytest.raises(FencedError):
            runs.append("r1", executor, events)
    runs.append("r1", "a", [event(3)])
    assert runs.events("r1") == [(seq, encode_event(event(seq))) for seq in (1, 2, 3)]
    assert runs.events("r1", after=1, limit=1) == [(2, encode_event(event(2)))]


def test_nothing_follows_the_terminal_event(runs: Runs) -> None:
    runs.begin("r1", "a")
    with pytest.raises(FencedError):
        runs.append("r1", "a", [event(1, Finished()), event(2)])
    assert runs.events("r1") == []
    runs.append("r1", "a", [event(1), event(2, Finished())])
    with pytest.raises(FencedError):
        runs.append("r1", "a", [event(3)])
    assert runs.end("r1", Lost(cause=message("server.worker_died")), ("queued", "running")) is False
    row = runs.get("r1")
    assert row is not None
    assert (row.state, row.over, row.last_seq) == ("finished", True, 2)
    assert row.terminal == orjson.loads(encode_event(event(2, Finished())))


def test_a_lost_run_is_fenced(runs: Runs) -> None:
    runs.begin("r1", "a")
    runs.append("r1", "a", [event(1)])
    assert runs.end("r1", Lost(cause=message("server.worker_died")), ("running",), executor="b") is False
    assert runs.end("r1", Lost(cause=message("server.worker_died")), ("running",), executor="a") is True
    with pytest.raises(FencedError):
        runs.append("r1", "a", [event(2)])
    assert [seq for seq, _body in runs.events("r1")] == [1, 2]


def test_cancel_by_state(runs: Runs) -> None:
    with write(runs.engine) as connection:
        runs.insert(connection, "r2", REQUEST, "key")
    runs.begin("r2", "a")
    assert (runs.request_cancel("r1"), runs.request_cancel("r2"), runs.request_cancel("no")) == (
        "queued",
        "running",
        None,
    )
    assert (runs.state("r1"), runs.state("r2")) == ("cancelled", "running")
    assert (runs.cancel_requested("r1"), runs.cancel_requested("r2")) == (False, True)
    assert orjson.loads(runs.events("r1")[0][1]) == {"v": 1, "run": "r1", "seq": 1, "t": 0.0, "type": "cancelled"}


def test_artifacts_belong_to_runs(runs: Runs) -> None:
    runs.begin("r1", "a")
    digest = "0" * 64
    runs.append("r1", "a", [event(1)], [digest, digest])
    runs.append("r1", "a", [event(2)], [digest])
    assert (runs.has_artifact("r1", digest), runs.has_artifact("r2", digest), runs.artifacts("r1")) == (
        True,
        False,
        [digest],
    )


def test_request_key_depends_on_everything() -> None:
    base = request_key(REQUEST, {"torch": "1"})
    others = [
        request_key(RunRequest(source="pass "), {"torch": "1"}),
        request_key(REQUEST, {"torch": "2"}),
        request_key(RunRequest.model_validate({"source": "pass", "options": {"native": False}}), {"torch": "1"}),
    ]
    assert base == request_key(RunRequest(source="pass"), {"torch": "1"})
    assert len({base, *others}) == 4


def test_artifact_files(tmp_path: Path) -> None:
    artifacts = Artifacts(tmp_path)
    payload = b'{"format":"code/1"}'
    digest = hashlib.sha256(payload).hexdigest()
    artifacts.put(digest, payload)
    assert artifacts.get(digest) == payload
    assert gzip.decompress(artifacts.path(digest).read_bytes()) == payload
    assert [file.name for file in tmp_path.rglob("*") if file.is_file()] == [f"{digest}.json.gz"]
    with pytest.raises(ValueError, match="differs"):
        artifacts.put("0" * 64, payload)
    for name in ("../../etc/passwd", digest.upper(), digest[:-1], f"{digest}\n", ""):
        with pytest.raises(ValueError, match="not a sha256"):
            artifacts.path(name)


def test_feed_gives_every_watcher_the_same_log_live_and_replayed(runs: Runs) -> None:
    async def watch(feeds: Feeds, after: int) -> list[tuple[int, str]]:
        seen: list[tuple[int, str]] = []
        async for batch in feeds.follow("r1", after, quiet=5):
            seen += batch
        return seen

    async def scene() -> tuple[list[list[tuple[int, str]]], list[tuple[int, str]]]:
        feeds = Feeds(runs, every=0.005)
        live = [asyncio.create_task(watch(feeds, after)) for after in (0, 0, 3, 99)]
        runs.begin("r1", "a")
        for seq in range(1, 30):
            await asyncio.sleep(0.002)
            runs.append("r1", "a", [event(seq)])
        runs.append("r1", "a", [event(30, Finished())])
        return list(await asyncio.gather(*live)), await watch(feeds, 0)

    live, replay = asyncio.run(scene())
    assert replay == runs.events("r1")
    assert len(replay) == 30
    assert live == [replay, replay, replay[3:], []]


def test_feed_breaks_its_silence(runs: Runs) -> None:
    async def scene() -> list[list[tuple[int, str]]]:
        feeds = Feeds(runs, every=10)
        batches = []
        async for batch in feeds.follow("r1", 0, quiet=0.05):
            batches.append(batch)
            if len(batches) == 2:
                # Its reader sleeps for ten seconds: only the wake-up can tell it in time.
                runs.request_cancel("r1")
                feeds.wake("r1")
        return batches

    first, second, *_, last = asyncio.run(asyncio.wait_for(scene(), 5))
    assert (first, second, len(last)) == ([], [], 1)


def test_the_queue_is_bounded_and_submits_in_one_transaction(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'q.sqlite3'}"
    migrate(url)
    runs = Runs(url)
    queue = Queue(runs, limit=2)
    first, second = queue.submit(REQUEST, "k"), queue.submit(REQUEST, "k")
    with pytest.raises(QueueFullError):
        queue.submit(REQUEST, "k")
    assert queue.cancel(first) == "queued"
    third = queue.submit(REQUEST, "k")
    with runs.engine.connect() as connection:
        rows = connection.exec_driver_sql(
            "select workflow_uuid, status, serialization from workflow_status order by created_at"
        ).all()
    assert [tuple(row) for row in rows] == [
        (first, "CANCELLED", "aotscope_json"),
        (second, "ENQUEUED", "aotscope_json"),
        (third, "ENQUEUED", "aotscope_json"),
    ]
    queue.close()
    runs.close()


def test_several_processes_may_make_the_database_at_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'new' / 'n.sqlite3'}"
    code = f"from server.engine import migrate; from server.store.runs import Runs; migrate({url!r}); Runs({url!r})"
    makers = [subprocess.Popen([sys.executable, "-c", code], cwd=ROOT) for _ in range(4)]
    assert [maker.wait(60) for maker in makers] == [0] * 4


def test_who_is_dead(runs: Runs) -> None:
    executors = Executors(runs.engine, dead_seconds=5)
    executors.beat("me", {"state": "ready"})
    row = {"host": "elsewhere", "pid": 1, "pid_started": 0.0, "status": "{}"}
    with write(runs.engine) as connection:
        mine = connection.execute(EXECUTORS.select()).mappings().one()
        connection.execute(EXECUTORS.insert().values(id="far", seen=mine["seen"], **row))
        connection.execute(EXECUTORS.insert().values(id="silent", seen=mine["seen"] - 9, **row))
        connection.execute(EXECUTORS.insert().values(**{**mine, "id": "reused", "pid_started": 0.0}))
        connection.execute(EXECUTORS.insert().values(**{**mine, "id": "gone", "pid": 1 << 30}))
        # A laptop that slept: its worker is stale, and alive.
        connection.execute(EXECUTORS.insert().values(**{**mine, "id": "slept", "seen": mine["seen"] - 9999}))
    assert sorted(executors.dead()) == ["gone", "reused", "silent"]
    assert [worker["id"] for worker in executors.living()] == ["far", "me", "slept"]
    executors.forget(["gone", "reused", "silent"])
    assert executors.dead() == []
    assert executors.living()[1]["state"] == "ready"
    assert mine["pid"] == os.getpid()
