"""The outer layer: what is looked at from inside it, and a runner that is kept apart from its workers."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import psutil
import pytest

from compiler.events import Options, RunRequest
from server.sandbox import peers
from server.sandbox.isolation import IsolationError
from server.sandbox.isolation.probe import FIRST_USER
from server.sandbox.launcher import ForkServerError, Launcher
from server.sandbox.layers import choose_layers
from server.sandbox.outer import Outer, bubblewrap, openings, readable_for
from server.sandbox.runner import socket_path
from server.sandbox.supervisor import Supervisor
from server.settings import load
from tests.server.conftest import FAKE, ROOT, Kept, check_log


def explore(launcher: Launcher, source: str, cancelled: Callable[[], bool] = lambda: False) -> Kept:
    kept = Kept()
    request = RunRequest(source=source, options=Options(native=False))
    Supervisor("r1", request, launcher, kept, load({}, capture_seconds=20.0), cancelled).run()
    check_log(kept.log)
    return kept


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "runner"
    made.mkdir(mode=0o700)
    return made


@pytest.fixture
def runner(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "server.cli", "runner", str(folder)],
        env=os.environ | {"PYTHONPATH": str(ROOT), "AOTSCOPE_CHILD": FAKE, "AOTSCOPE_TOKEN": "a-secret-of-the-worker"},
        start_new_session=True,
    )
    yield process
    process.kill()
    process.wait()


def test_workers_share_a_runner_and_come_back_to_a_new_one(folder: Path, runner: subprocess.Popen[bytes]) -> None:
    one, other = (Launcher(FAKE, warm=True, runner=socket_path(str(folder))) for _ in range(2))
    assert one.ready() is not None
    assert other.ready() is not None
    assert one.pid is None
    assert one.isolation is not None
    # Here it is in no container, and says so by what it sees.
    assert one.isolation.outer is Outer.NONE
    assert "can be written" in one.isolation.outer_reason
    assert b"a-secret" not in Path(f"/proc/{runner.pid}/environ").read_bytes()
    for launcher in (one, other, one):
        assert explore(launcher, "print(1)").types()[-1] == "finished"
    one.close()
    assert explore(other, "print(1)").types()[-1] == "finished"
    other.close()


def test_a_worker_that_goes_takes_its_runs_along(folder: Path, runner: subprocess.Popen[bytes]) -> None:
    script = (
        "import os, sys\n"
        "from tests.security.test_runner import Launcher, explore\n"
        f"launcher = Launcher({FAKE!r}, warm=True, runner={socket_path(str(folder))!r})\n"
        "launcher.ready(); print('ready', flush=True)\n"
        "explore(launcher, 'import time; time.sleep(60)')\n"
    )
    worker = subprocess.Popen(
        [sys.executable, "-c", script], env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE
    )
    assert worker.stdout is not None
    assert worker.stdout.readline() == b"ready\n"
    kept = psutil.Process(runner.pid)
    # One warden waits for the next run.
    _until(lambda: len(kept.children(recursive=True)) >= 3)
    worker.kill()
    worker.communicate()
    _until(lambda: len(kept.children(recursive=True)) == 1)
    launcher = Launcher(FAKE, warm=True, runner=socket_path(str(folder)))
    assert explore(launcher, "print(1)").types()[-1] == "finished"
    launcher.close()


def test_a_killed_runner_loses_its_runs_and_nothing_else(folder: Path, runner: subprocess.Popen[bytes]) -> None:
    launcher = Launcher(FAKE, warm=True, runner=socket_path(str(folder)))
    launcher.ready()
    children = psutil.Process(runner.pid).children

    def kill() -> bool:
        if len(below := children(recursive=True)) >= 3:
            killed.extend(below)
            os.kill(runner.pid, signal.SIGKILL)
            runner.wait()
        return False

    killed: list[psutil.Process] = []
    assert explore(launcher, "import time; time.sleep(60)", lambda: not killed and kill()).types()[-1] == "lost"
    _until(lambda: not any(process.is_running() for process in killed))
    launcher.close()


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.02)


def test_a_folder_that_others_may_enter_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o711)
    path = socket_path(str(tmp_path))
    with pytest.raises(peers.StrangerError, match="nobody else may enter"):
        peers.listen(path)
    with pytest.raises(ForkServerError) as refused:
        Launcher(FAKE, warm=True, runner=path).ready()
    assert "nobody else may enter" in str(refused.value.cause.params["error"])


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")
def test_another_user_is_not_answered(folder: Path) -> None:
    listener = peers.listen(socket_path(str(folder)))
    # So that only the credentials keep the other one out.
    os.chdir(folder)
    folder.chmod(0o711)
    os.chmod("cpu.sock", 0o777)
    pid = os.fork()
    if not pid:
        os.setresuid(FIRST_USER, FIRST_USER, FIRST_USER)
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect("cpu.sock")
            os._exit(connection.recv(1) != b"")
        finally:
            os._exit(9)
    os.chdir(ROOT)
    with listener:
        _until(lambda: bool(select.select([listener], [], [], 0)[0]))
        assert peers.accept(listener) is None
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_what_is_open_is_seen() -> None:
    here = openings()
    assert "its own code can be written" in here
    assert ("it is root" in here) == (os.geteuid() == 0)


def test_a_runner_in_a_closed_place_says_so_and_answers(folder: Path, tmp_path: Path) -> None:
    """What compose's container is, by bubblewrap: no network, no rights, read-only but for a scratch and the socket's folder."""
    try:
        choose_layers("bubblewrap", "auto", FAKE)
    except IsolationError as fault:
        pytest.skip(str(fault))
    user = FIRST_USER + 5000 if os.geteuid() == 0 else None
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    for made in (scratch, folder):
        os.chown(made, -1 if user is None else user, -1)
    words = bubblewrap(readable_for(FAKE), [str(scratch), str(folder)], user)
    environment = {
        "PYTHONPATH": str(ROOT),
        "AOTSCOPE_CHILD": FAKE,
        "TMPDIR": str(scratch),
        "HOME": str(scratch),
        "PATH": "/usr/bin:/bin",
    }
    script = f"""
from server.sandbox.launcher import Launcher
from tests.security.test_runner import explore
launcher = Launcher({FAKE!r}, warm=True, runner={socket_path(str(folder))!r}, strangers=True)
launcher.ready()
print(launcher.isolation.model_dump_json())
print(explore(launcher, "print(open('/proc/self/status').read().count('NoNewPrivs:\\t1'))").flat()[-4:])
launcher.close()
"""
    runner = subprocess.Popen([*words, sys.executable, "-m", "server.cli", "runner", str(folder)], env=environment)
    try:
        done = subprocess.run(
            [*words, sys.executable, "-c", script],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        runner.kill()
        runner.wait()
    assert not done.returncode, done.stderr
    isolation, log = done.stdout.splitlines()
    said = orjson.loads(isolation)
    assert said["outer"] == "container", said
    assert said["mode"] in ("namespaces", "landlock")
    assert "'text': '1\\n'" in log, log
    assert "'finished'" in log
