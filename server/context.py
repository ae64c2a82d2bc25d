"""What the API's handlers share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from compiler.text import message
from server.access import Pace
from server.engine import Queue
from server.errors import ApiError
from server.settings import Settings
from server.store.artifacts import Artifacts
from server.store.executors import Executors
from server.store.feed import Feeds
from server.store.runs import Run, Runs


@dataclass(frozen=True, slots=True)
class Context:
    settings: Settings
    runs: Runs
    artifacts: Artifacts
    feeds: Feeds
    queue: Queue
    executors: Executors
    pace: Pace

    def run(self, run: str) -> Run:
        """The run's row. Raises ApiError 404."""
        found = self.runs.get(run)
        if found is None:
            raise ApiError(404, message("server.run_unknown", id=run[:100]))
        return found

    def over(self, run: str) -> Run:
        """The row of a run that is over. Raises ApiError 404 or 409."""
        return over(self.run(run))


def over(run: Run) -> Run:
    """The same row. Raises ApiError 409 while the run goes on."""
    if not run.over:
        raise ApiError(409, message("server.run_not_over", id=run.id), {"retry-after": "2"})
    return run


def _context(request: Request) -> Context:
    context: Context = request.app.state.context
    return context


Shared = Annotated[Context, Depends(_context)]
