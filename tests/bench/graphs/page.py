"""One view of a page in a browser: when its graph can be used, how it moves, what it takes."""

from __future__ import annotations

import json
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, CDPSession, Page

from tests.bench.graphs.tools import Tool

VIEW = {"width": 1280, "height": 800}
PAN_STEPS = 60
_STEP_S = 1 / 60

# Looks once in every frame, so that the moment is known to a frame, however busy this side is. Also counts what is
# loaded: sizes as they came over the wire, headers included.
_WATCH = """(() => {
  const look = () => {
    if (window.__usable !== undefined) return;
    try {
      if (document.body && (%s)) requestAnimationFrame(() => { window.__usable = performance.now(); });
    } catch {}
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})()"""

_FRAMES_START = """(() => {
  window.__frames = [];
  let last = performance.now();
  const tick = (now) => { window.__frames.push(now - last); last = now; window.__pan = requestAnimationFrame(tick); };
  window.__pan = requestAnimationFrame(tick);
})()"""
_FRAMES_END = "(() => { cancelAnimationFrame(window.__pan); return JSON.stringify(window.__frames.slice(1)); })()"
_CENTRE = """(() => { const r = (%s).getBoundingClientRect();
  return JSON.stringify([r.x + r.width / 2, r.y + r.height / 2]); })()"""


@dataclass(frozen=True)
class Seen:
    """Of one view: seconds from the request to the first usable frame; milliseconds between frames while it is dragged (median,
    and the 95th percentile), and of the main thread for each of those frames; bytes that came over the wire; bytes of
    JavaScript heap after a collection, of the page and of its workers."""

    usable_s: float
    frame_ms: float
    slow_frame_ms: float
    busy_ms: float
    loaded_bytes: int
    page_heap_bytes: int
    worker_heap_bytes: int


class NeverError(Exception):
    """The graph was not there when the limit had passed."""


def look(browser: Browser, tool: Tool, limit_s: float, picture: Path | None = None) -> Seen:
    """Opens the page in a fresh profile, so with nothing in its cache. Raises NeverError."""
    context = browser.new_context(viewport=VIEW, locale="en-US")
    try:
        base = tool.address.split("?")[0].split("#")[0]
        context.add_cookies([{"name": name, "value": value, "url": base} for name, value in tool.cookies.items()])
        page = context.new_page()
        session = context.new_cdp_session(page)
        # Not by `evaluate`: a page may have its own eval, or forbid it.
        session.send("Page.enable")
        session.send("Page.addScriptToEvaluateOnNewDocument", {"source": _WATCH % tool.ready})
        session.send("Network.enable")
        loaded = [0]
        session.on(
            "Network.loadingFinished", lambda said: loaded.__setitem__(0, loaded[0] + int(said["encodedDataLength"]))
        )
        session.send("Performance.enable")
        workers = _Workers(session)
        page.goto(tool.address, wait_until="commit")
        usable = _until_usable(page, session, limit_s)
        # What was begun with the first view is let come to its end: it counts as loaded.
        time.sleep(1.0)
        if picture is not None:
            page.screenshot(path=picture)
        frames, busy = _pan(page, session, tool)
        session.send("HeapProfiler.collectGarbage")
        page_heap = int(session.send("Runtime.getHeapUsage")["usedSize"])
        return Seen(
            usable_s=usable / 1000,
            frame_ms=statistics.median(frames),
            slow_frame_ms=statistics.quantiles(frames, n=20)[-1],
            busy_ms=busy / len(frames),
            loaded_bytes=loaded[0],
            page_heap_bytes=page_heap,
            worker_heap_bytes=workers.heap_bytes(page),
        )
    finally:
        context.close()


def _value(session: CDPSession, expression: str) -> Any:
    return session.send("Runtime.evaluate", {"expression": expression, "returnByValue": True})["result"].get("value")


def _until_usable(page: Page, session: CDPSession, limit_s: float) -> float:
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        found = _value(session, "window.__usable")
        if found is not None:
            return float(found)
        page.wait_for_timeout(50)
    raise NeverError


def _pan(page: Page, session: CDPSession, tool: Tool) -> tuple[list[float], float]:
    """Drags the graph about for a second; milliseconds of each frame, and those in which the main thread was busy in all."""
    x, y = json.loads(_value(session, _CENTRE % tool.surface))
    page.mouse.move(x, y)
    page.mouse.down()
    before = _busy_ms(session)
    _value(session, _FRAMES_START)
    for step in range(PAN_STEPS):
        began = time.perf_counter()
        page.mouse.move(x + (step % 30) * 6 - 90, y - (step % 20) * 8 + 80)
        time.sleep(max(0.0, _STEP_S - (time.perf_counter() - began)))
    frames = json.loads(_value(session, _FRAMES_END))
    busy = _busy_ms(session) - before
    page.mouse.up()
    return frames, busy


def _busy_ms(session: CDPSession) -> float:
    metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
    return float(metrics["TaskDuration"]) * 1000


class _Workers:
    """The heaps of a page's workers, asked for through the page's own session."""

    def __init__(self, session: CDPSession) -> None:
        self._session = session
        self._attached: list[str] = []
        self._answers: dict[int, dict[str, Any]] = {}
        self._asked = 0
        session.on("Target.attachedToTarget", lambda said: self._attached.append(said["sessionId"]))
        session.on("Target.detachedFromTarget", lambda said: self._attached.remove(said["sessionId"]))
        session.on("Target.receivedMessageFromTarget", self._answered)
        session.send("Target.setAutoAttach", {"autoAttach": True, "waitForDebuggerOnStart": False, "flatten": False})

    def _answered(self, said: dict[str, Any]) -> None:
        answer = json.loads(said["message"])
        if "id" in answer:
            self._answers[answer["id"]] = answer

    def heap_bytes(self, page: Page) -> int:
        """After a collection, of all of them together."""
        return sum(self._heap(page, worker) for worker in list(self._attached))

    def _heap(self, page: Page, worker: str) -> int:
        self._ask(page, worker, "HeapProfiler.collectGarbage")
        return int(self._ask(page, worker, "Runtime.getHeapUsage")["result"]["usedSize"])

    def _ask(self, page: Page, worker: str, method: str) -> dict[str, Any]:
        self._asked += 1
        message = json.dumps({"id": self._asked, "method": method})
        self._session.send("Target.sendMessageToTarget", {"sessionId": worker, "message": message})
        for _ in range(600):
            if self._asked in self._answers:
                return self._answers[self._asked]
            page.wait_for_timeout(50)
        raise RuntimeError(f"a worker did not answer {method}")
