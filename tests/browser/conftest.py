"""Shared by the browser's tests: the real service with a worker, and a headless Chromium."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

ROOT = Path(__file__).parents[2]
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE_MS = 60_000  # The machine may be small and busy.
expect.set_options(timeout=PATIENCE_MS)


def chromium() -> str:
    """$AOTSCOPE_CHROMIUM, else an installed one."""
    named = os.environ.get("AOTSCOPE_CHROMIUM")
    found = named or next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"))), None
    )
    if not found:
        pytest.fail("No Chrome or Chromium: install one, or name it in AOTSCOPE_CHROMIUM.")
    return found


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Ends with this folder's tests: Playwright holds the thread's event loop, which others need."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The explorer as a user starts it, on a free port with a folder of its own; its address.

    $AOTSCOPE_SERVICE is the address of one that runs already, while the page is worked on.
    """
    if running := os.environ.get("AOTSCOPE_SERVICE"):
        yield running
        return
    folder = tmp_path_factory.mktemp("service")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "server.cli", "serve", "--port", str(port), "--data", str(folder / "data")]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, env=os.environ | {"OMP_NUM_THREADS": "1"})
    base = f"http://127.0.0.1:{port}"
    try:
        _await_ready(base, process, folder / "log")
        yield base
    finally:
        process.terminate()
        process.wait(timeout=60)


def _await_ready(base: str, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(480):
        if process.poll() is not None:
            pytest.fail(f"the service ended: {log.read_text()}")
        try:
            if httpx.get(f"{base}/api/v1/health").json().get("state") == "ready":
                return
        except httpx.TransportError:
            pass  # Not listening yet.
        time.sleep(0.5)
    pytest.fail(f"the service did not get ready: {log.read_text()}")


class Complaints(list[str]):
    """What the page's scripts complained of, and the word of those complaints that a test provokes."""

    provoked: str | None = None


@pytest.fixture
def complaints() -> Iterator[Complaints]:
    """Errors of every page that was watched; a test with any fails."""
    found = Complaints()
    yield found
    assert [said for said in found if found.provoked is None or found.provoked not in said] == []


@pytest.fixture
def page(browser: Browser, complaints: Complaints) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 720}, locale="en-US")
    page = context.new_page()
    watch(page, complaints)
    yield page
    page.unroute_all(behavior="wait")  # A handler that is at work would read from a page that is gone.
    context.close()


def watch(page: Page, complaints: Complaints) -> None:
    page.set_default_timeout(PATIENCE_MS)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda line: complaints.append(line.text) if line.type == "error" else None)
