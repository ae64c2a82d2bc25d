"""A worker as a child of `aotscope serve`: started, started again when it dies, ended with it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

from server.settings import Settings

_STOP_SECONDS = 10.0
_LONGEST_PAUSE = 30.0
# A worker that lived this long was sound; the next death is not the continuation of the last one.
_SOUND_SECONDS = 60.0


class WorkerProcess:
    """Keeps one worker process alive from `start` to `stop`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stopping = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._keep, name="worker process", daemon=True)
        # The worker ends when our end is closed, however we end.
        self._theirs, self._ours = os.pipe()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ask it to end its runs and itself; kill it when that takes too long."""
        self._stopping.set()
        process = self._process
        if process is not None:
            process.terminate()
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
        self._thread.join(_STOP_SECONDS)
        os.close(self._ours)
        os.close(self._theirs)

    def _keep(self) -> None:
        pause = 1.0
        while not self._stopping.is_set():
            began = time.monotonic()
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "server.cli", "worker", "--lifeline", str(self._theirs)],
                env=os.environ | self._settings.environment(),
                pass_fds=[self._theirs],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
            if self._stopping.is_set():
                self._process.terminate()
            code = self._process.wait()
            if self._stopping.is_set():
                return
            pause = 1.0 if time.monotonic() - began > _SOUND_SECONDS else min(2 * pause, _LONGEST_PAUSE)
            print(f"aotscope: the worker ended with {code}; the next one starts in {pause:.0f} s.", file=sys.stderr)
            self._stopping.wait(pause)
