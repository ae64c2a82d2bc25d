"""A server of a benchmark's own."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

# Given beforehand: where no isolation works the server would make one of its own.
TOKEN = secrets.token_hex(16)
HEADERS = {"Authorization": f"Bearer {TOKEN}"}


@dataclass(frozen=True)
class Served:
    address: str
    data: Path


@contextmanager
def served() -> Iterator[Served]:
    """A server on a free port with a data folder of its own, which answers; its worker may still warm up."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as data:
        process = subprocess.Popen(
            [str(Path(sys.executable).parent / "aotscope"), "serve", "--port", str(port), "--data", data],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"AOTSCOPE_TOKEN": TOKEN},
        )
        try:
            address = f"http://127.0.0.1:{port}"
            _wait_for(address)
            yield Served(address, Path(data))
        finally:
            process.terminate()
            process.wait(30)


def _wait_for(address: str) -> None:
    """Raises RuntimeError when nothing answers within five minutes."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        try:
            if httpx.get(f"{address}/api/v1/health").status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.2)
    raise RuntimeError(f"nothing answers at {address}")
