"""Children of root's fork servers: another user for each run, whichever fork server it is of."""

from __future__ import annotations

import os
import socket

import pytest

from compiler.events import Options, RunRequest
from server.sandbox.isolation import Mode
from server.sandbox.launcher import ForkServerError, Launcher
from server.sandbox.supervisor import Supervisor
from server.sandbox.users import lease
from server.settings import load
from tests.server.conftest import FAKE, ROOT, Kept

# The number outside of the run's own namespace is what counts; a namespace's map says it.
WHO = "print(open('/proc/self/uid_map').read().split(), __import__('os').getuid())"


def _who(launcher: Launcher) -> str:
    kept = Kept()
    request = RunRequest(source=WHO, options=Options(native=False))
    Supervisor("r1", request, launcher, kept, load({}), lambda: False).run()
    return "".join(event["text"] for event in kept.flat() if event["type"] == "printed")


def _take_all(held: list[socket.socket]) -> None:
    while True:
        held.append(lease()[0])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's children become other users")
def test_two_fork_servers_share_no_user() -> None:
    os.environ["PYTHONPATH"] = str(ROOT)
    launchers = [Launcher(FAKE, warm=True, isolation="auto") for _ in range(2)]
    try:
        for launcher in launchers:
            launcher.ready()
            assert launcher.isolation is not None
            if launcher.isolation.mode is Mode.NONE:
                pytest.skip("no isolation works here")
        seen = [_who(launcher) for launcher in (*launchers, *launchers)]
        assert len(set(seen)) == 4
        assert "" not in seen
        # All blocks given away: said, and nobody's users are shared.
        held: list[socket.socket] = []
        with pytest.raises(OSError, match="at work on this machine already"):
            _take_all(held)
        third = Launcher(FAKE, warm=True, isolation="auto")
        with pytest.raises(ForkServerError) as refused:
            third.ready()
        assert "at work on this machine already" in str(refused.value.cause.params["error"])
        for holder in held:
            holder.close()
        third.ready()
        third.close()
    finally:
        for launcher in launchers:
            launcher.close()
    # With the fork servers end their claims.
    holder, users = lease()
    holder.close()
    assert len(users) == 500
