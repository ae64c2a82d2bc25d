"""A fork server for each target: what a GPU's needs changes torch for the whole process, so no two targets share one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from compiler.targets import TargetId
from server.sandbox.launcher import Launcher


class Launchers:
    """Fork servers by target, each made when it is first asked for. Safe for several threads."""

    def __init__(self, make: Callable[[TargetId], Launcher], idle_seconds: float, kept: TargetId = "cpu") -> None:
        """`idle_seconds`: after so long without a run, a fork server that is not the `kept` target's ends; the next run starts it
        again."""
        self._kept = kept
        self._make = make
        self._idle_seconds = idle_seconds
        self._lock = threading.Lock()
        self._launchers: dict[TargetId, Launcher] = {}
        self._used: dict[TargetId, int] = {}
        self._since: dict[TargetId, float] = {}

    def of(self, target: TargetId) -> Launcher:
        """The fork server of a target, started or not."""
        with self._lock:
            if target not in self._launchers:
                self._launchers[target] = self._make(target)
            return self._launchers[target]

    def begin(self, target: TargetId) -> Launcher:
        """The same, for a run: it does not end before `end` is called."""
        launcher = self.of(target)
        with self._lock:
            self._used[target] = self._used.get(target, 0) + 1
        return launcher

    def end(self, target: TargetId) -> None:
        with self._lock:
            self._used[target] -= 1
            self._since[target] = time.monotonic()

    def started(self) -> list[TargetId]:
        """The targets whose fork server is up."""
        with self._lock:
            return [target for target, launcher in self._launchers.items() if launcher.pid is not None]

    def end_idle(self) -> None:
        """End the fork servers that nobody has used for long. One is kept."""
        now = time.monotonic()
        with self._lock:
            idle = [
                target
                for target, since in self._since.items()
                if target != self._kept and not self._used.get(target) and now - since > self._idle_seconds
            ]
            ended = [self._launchers.pop(target) for target in idle]
            for target in idle:
                del self._since[target]
        for launcher in ended:
            launcher.close()

    def abort(self) -> None:
        for launcher in list(self._launchers.values()):
            launcher.abort()

    def close(self) -> None:
        for launcher in list(self._launchers.values()):
            launcher.close()
