"""Starting a process whose life hangs on the thread that started it."""

from __future__ import annotations

import queue
import subprocess
import threading
from collections.abc import Mapping, Sequence


def start_kept(command: Sequence[str], *, pass_fds: Sequence[int], env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a command from a thread that lives as long as it does: bubblewrap's --die-with-parent ends it with the *thread*
    that started it. So it also ends with this process, however that ends. Raises OSError."""
    answer: queue.SimpleQueue[subprocess.Popen[bytes] | OSError] = queue.SimpleQueue()

    def keep() -> None:
        try:
            process = subprocess.Popen(
                command,
                pass_fds=pass_fds,
                stdin=subprocess.DEVNULL,
                stdout=2,
                env=env,
                # A Ctrl-C at the terminal is ours to handle.
                start_new_session=True,
            )
        except OSError as fault:
            answer.put(fault)
            return
        answer.put(process)
        process.wait()

    threading.Thread(target=keep, name="fork server", daemon=True).start()
    started = answer.get()
    if isinstance(started, OSError):
        raise started
    return started
