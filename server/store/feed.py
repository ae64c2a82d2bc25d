"""Following event logs: one reader of the database for each live run, however many watch it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from compiler.events import TERMINAL
from server.store.runs import Runs


@dataclass
class _Feed:
    """The log of one run as far as it was read: `bodies[i]` is the event with seq i + 1."""

    bodies: list[str] = field(default_factory=list)
    over: bool = False
    watchers: int = 0
    news: asyncio.Event = field(default_factory=asyncio.Event)
    nudge: asyncio.Event = field(default_factory=asyncio.Event)
    reader: asyncio.Task[None] | None = None


class Feeds:
    """Streams of (seq, text), the same whether the run is live or long over. Belongs to one event loop."""

    def __init__(self, runs: Runs, every: float) -> None:
        self._runs = runs
        self._every = every
        self._feeds: dict[str, _Feed] = {}

    def wake(self, run: str) -> None:
        """Look for new events of a run at once: something in this process has just written one."""
        if feed := self._feeds.get(run):
            feed.nudge.set()

    async def follow(self, run: str, after: int, quiet: float) -> AsyncIterator[list[tuple[int, str]]]:
        """Batches of the events after `after`, until the terminal one; an empty batch after `quiet` seconds without any."""
        feed = self._feeds.setdefault(run, _Feed())
        feed.watchers += 1
        if feed.reader is None:
            feed.reader = asyncio.create_task(self._read(run, feed))
        seen = after
        try:
            while True:
                news = feed.news
                fresh = feed.bodies[seen:]
                if fresh:
                    yield [(seq, body) for seq, body in enumerate(fresh, seen + 1)]
                    seen += len(fresh)
                elif feed.over:
                    return
                else:
                    try:
                        await asyncio.wait_for(self._wait(feed, news), quiet)
                    except TimeoutError:
                        yield []
        finally:
            feed.watchers -= 1
            if feed.watchers == 0:
                self._feeds.pop(run, None)
                if feed.reader is not None:
                    feed.reader.cancel()

    async def _wait(self, feed: _Feed, news: asyncio.Event) -> None:
        """Until there is news, or the reader has failed (whose error is then raised here)."""
        if feed.reader is not None and feed.reader.done() and not feed.over:
            feed.reader.result()
        await news.wait()

    async def _read(self, run: str, feed: _Feed) -> None:
        try:
            while True:
                feed.nudge.clear()
                # The state is read before the events: a run that is over has no event that was not read after.
                state = await asyncio.to_thread(self._runs.state, run)
                rows = await asyncio.to_thread(self._runs.events, run, len(feed.bodies))
                feed.bodies.extend(body for _seq, body in rows)
                feed.over = state is None or state in TERMINAL
                if rows or feed.over:
                    self._announce(feed)
                if feed.over:
                    return
                try:
                    await asyncio.wait_for(feed.nudge.wait(), self._every)
                except TimeoutError:
                    continue
        finally:
            self._announce(feed)

    def _announce(self, feed: _Feed) -> None:
        feed.news.set()
        feed.news = asyncio.Event()
