"""What the server does with a run once it has been made: replay, viewers, and an openable report.

- Replay of a finished run / the same run live: from the request until the terminal event, every artifact fetched once, one
  request after the other. The native phase is included, as by default.
- p95 of an event's delay with 50 viewers / with one. A worker's part is played here: a process other than the server's writes
  events into the store, each with the time of writing, and viewers of the stream note when it comes.
- `aotscope run --html` without the native phase / the plain script under `TORCH_TRACE`, then `tlparse`: both cold, each from a
  fresh process to a report that opens.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import httpx

from compiler.events import Event, Finished, Printed, RunRequest
from server.settings import load
from server.store.runs import Runs, new_id, request_key
from tests.bench.cold_start import PLAIN
from tests.bench.overhead import MODELS
from tests.bench.ratios import Ratio, abba, ratio
from tests.bench.served import HEADERS, Served, served
from tests.bench.wire import finished

MODEL = MODELS / "gpt2_block.py"
VIEWERS = 50
EVENTS = 100
EVERY_SECONDS = 0.05


# --- replay ------------------------------------------------------------------------------------------------------------


def _fetched(client: httpx.Client, run: str) -> None:
    """All events of a run, and every artifact that they name, once."""
    seen: set[str] = set()
    with client.stream("GET", f"/api/v1/runs/{run}/events") as stream:
        for line in stream.iter_lines():
            if line.startswith("data:"):
                event = json.loads(line[5:])
                if event["type"] == "artifact" and event["artifact"]["hash"] not in seen:
                    seen.add(event["artifact"]["hash"])
                    client.get(f"/api/v1/runs/{run}/artifacts/{event['artifact']['hash']}").raise_for_status()


def replay(server: Served, pairs: int) -> tuple[Ratio, list[float], list[float]]:
    """The ratio, and seconds of both arms: live, replayed."""
    with httpx.Client(base_url=server.address, timeout=600, headers=HEADERS) as client:
        body = {"source": MODEL.read_text()}
        done = ""

        def live() -> float:
            nonlocal done
            began = time.perf_counter()
            done = client.post("/api/v1/runs", json=body).raise_for_status().json()["id"]
            _fetched(client, done)
            return time.perf_counter() - began

        def replayed() -> float:
            began = time.perf_counter()
            _fetched(client, done)
            return time.perf_counter() - began

        finished(client, body["source"], {})
        lives, replays = [], []
        for _ in range(pairs):
            lives.append(live())
            replays.append(replayed())
    return ratio("replay of a finished run / live", lives, replays, 0.02), lives, replays


# --- viewers -----------------------------------------------------------------------------------------------------------


async def _watch(client: httpx.AsyncClient, run: str, delays: list[float]) -> None:
    async with client.stream("GET", f"/api/v1/runs/{run}/events") as stream:
        async for line in stream.aiter_lines():
            if line.startswith("data:"):
                event = json.loads(line[5:])
                if event["type"] == "printed":
                    delays.append(time.monotonic() - float(event["text"]))


async def _watched(server: Served, runs: Runs, viewers: int) -> float:
    """p95, in seconds, over all viewers and events, of the time from an event's writing to its coming."""
    run, request = new_id(), RunRequest(source="")
    with runs.engine.begin() as connection:
        runs.insert(connection, run, request, request_key(request, {}))
    runs.begin(run, "bench")
    delays: list[float] = []
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=server.address, timeout=60, headers=HEADERS, limits=limits) as client:
        tasks = [asyncio.create_task(_watch(client, run, delays)) for _ in range(viewers)]
        await asyncio.sleep(1)
        for seq in range(1, EVENTS + 1):
            body = Printed(stream="stdout", text=str(time.monotonic()))
            await asyncio.to_thread(runs.append, run, "bench", [Event(run=run, seq=seq, t=float(seq), body=body)])
            await asyncio.sleep(EVERY_SECONDS)
        last = Event(run=run, seq=EVENTS + 1, t=EVENTS + 1.0, body=Finished())
        await asyncio.to_thread(runs.append, run, "bench", [last])
        await asyncio.gather(*tasks)
    if len(delays) != viewers * EVENTS:
        raise RuntimeError(f"{len(delays)} events came of {viewers * EVENTS}")
    return statistics.quantiles(delays, n=20)[-1]


def viewers(server: Served, pairs: int) -> tuple[Ratio, list[float], list[float]]:
    """The ratio, and p95 in seconds of both arms: one viewer, many."""
    runs = Runs(load({}, data=str(server.data)).url)
    try:
        one, many = abba(
            lambda: asyncio.run(_watched(server, runs, 1)), lambda: asyncio.run(_watched(server, runs, VIEWERS)), pairs
        )
    finally:
        runs.close()
    return ratio(f"p95 of an event's delay, {VIEWERS} viewers / one", one, many, 2), one, many


# --- a report ----------------------------------------------------------------------------------------------------------


def _timed(work: Callable[[Path], None]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        work(Path(folder))
        return time.perf_counter() - began


def _ours(folder: Path) -> None:
    command = [str(Path(sys.executable).parent / "aotscope"), "run", str(MODEL), "--no-native", "--html", "report.html"]
    environment = os.environ | {"AOTSCOPE_DATA": str(folder / "data")}
    subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True)
    assert (folder / "report.html").stat().st_size


def _tlparse(folder: Path) -> None:
    tool = shutil.which("tlparse", path=str(Path(sys.executable).parent))
    assert tool is not None, "tlparse comes with the dev extra"
    environment = os.environ | {
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache"), "TMPDIR": str(folder), "TORCH_TRACE": str(folder / "trace"),
    }  # fmt: skip
    plain = [sys.executable, "-c", PLAIN.format(path=str(MODEL))]
    subprocess.run(plain, cwd=folder, env=environment, capture_output=True, check=True)
    (log,) = (folder / "trace").glob("*.log")
    subprocess.run([tool, str(log), "-o", str(folder / "out"), "--no-browser"], capture_output=True, check=True)
    assert (folder / "out" / "index.html").stat().st_size


def report(pairs: int) -> tuple[Ratio, list[float], list[float]]:
    """The ratio, and seconds of both arms: tlparse's report, ours."""
    theirs, ours = abba(lambda: _timed(_tlparse), lambda: _timed(_ours), pairs)
    return ratio("`run --html` / `TORCH_TRACE`, then `tlparse`, cold", theirs, ours, 1), theirs, ours


def measure(pairs: int) -> list[tuple[Ratio, list[float], list[float]]]:
    with served() as server:
        rows = [replay(server, pairs), viewers(server, pairs)]
    return [*rows, report(pairs)]
