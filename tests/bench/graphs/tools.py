"""The three that show a graph, each served to a browser on this machine as its users start it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import httpx

from compiler.ir.graph import GraphPayload
from server.engine import migrate
from server.recording import load
from server.settings import load as settings
from server.store.artifacts import Artifacts
from server.store.runs import Runs
from tests.bench.graphs import exports, shapes

ROOT = Path(__file__).parents[3]
RUN = "bench-graph"
_NETRON = "import netron, sys; netron.start(sys.argv[1], address=('127.0.0.1', int(sys.argv[2])), browse=False); netron.wait()"


@dataclass(frozen=True)
class Tool:
    """A page that shows the graph. `ready` is a JavaScript expression that is true from the first frame on in which the graph
    can be seen and moved; `surface` finds the element that is dragged."""

    name: str
    address: str
    ready: str
    surface: str
    cookies: dict[str, str]


@contextmanager
def served(data: Path) -> Iterator[str]:
    """Our own service over a data folder, without a worker, as nothing is run; its address."""
    port = _free()
    command = [sys.executable, "-m", "server.cli", "serve", "--port", str(port), "--data", str(data), "--no-worker"]
    with _running(command, f"http://127.0.0.1:{port}/api/v1/health"):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def ours(payload: GraphPayload, folder: Path) -> Iterator[Tool]:
    data = folder / "aotscope"
    data.mkdir()
    made = settings({}, data=str(data))
    migrate(made.url)
    runs = Runs(made.url)
    load(runs, Artifacts(made.folder / "artifacts"), shapes.recording(payload), RUN, "benchmark")
    runs.close()
    with served(data) as address:
        yield Tool(
            "aotscope",
            f"{address}/r/{RUN}#stage=joint",
            "document.querySelector('.graph[data-ready=true] canvas')?.dataset.drawn > 0",
            "document.querySelector('.graph canvas')",
            {},
        )


@contextmanager
def netron(payload: GraphPayload, folder: Path, python: str) -> Iterator[Tool]:
    file = exports.onnx(payload, folder / "joint.onnx", python)
    port = _free()
    with _running([python, "-c", _NETRON, str(file), str(port)], f"http://127.0.0.1:{port}/"):
        # As for a user who has been here before: its question about cookies is answered.
        yield Tool(
            "Netron",
            f"http://127.0.0.1:{port}/",
            "document.body.classList.contains('default') && document.querySelector('#target .node') !== null",
            "document.querySelector('#target')",
            {"consent": "1"},
        )


@contextmanager
def explorer(payload: GraphPayload, folder: Path, python: str) -> Iterator[Tool]:
    file = exports.explorer(payload, folder / "joint.json")
    port = _free()
    serve = str(Path(python).parent / "model-explorer")
    command = [serve, str(file), "--no_open_in_browser", "--skip_health_check", "--port", str(port)]
    data = quote(f'{{"models": [{{"url": "{file}"}}]}}')
    with _running(command, f"http://localhost:{port}/"):
        yield Tool(
            "Model Explorer",
            f"http://localhost:{port}/?data={data}",
            "document.querySelector('webgl-renderer canvas') !== null && document.querySelector('graph-panel loading-dialog, "
            "loading-graph') === null",
            "document.querySelector('webgl-renderer canvas')",
            {},
        )


def _free() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _running(command: list[str], address: str) -> Iterator[None]:
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ)
    try:
        deadline = time.monotonic() + 120
        while True:
            if process.poll() is not None:
                raise RuntimeError(f"{command[0]} ended with {process.returncode}")
            try:
                httpx.get(address, timeout=10)
                break
            except httpx.TransportError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
        yield
    finally:
        process.terminate()
        process.wait(30)
