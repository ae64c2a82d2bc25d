"""The real fork server and warden, with the isolation that works here."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compiler.events import Options, RunRequest
from server.sandbox.isolation import IsolationError, Mode
from server.sandbox.launcher import ForkServerError, Launcher
from server.sandbox.layers import choose_layers
from server.sandbox.outer import Outer
from server.sandbox.supervisor import Supervisor
from server.settings import load
from tests.server.conftest import Kept

ROOT = Path(__file__).parents[2]
FAKE = "tests.server.fake.child"
SETTINGS = load({}, capture_seconds=20.0, memory_bytes=512 << 20, disk_bytes=16 << 20, disk_entries=500, processes=16)

# What a stranger would like, each with what came of it.
LOOK = f"""
import json, os, socket
def tried(act):
    try: act()
    except OSError as fault: return type(fault).__name__
    return "done"
here = os.getcwd()
print(json.dumps({{
    "passwd": tried(lambda: open("/etc/passwd")),
    "server": tried(lambda: open({str(ROOT / "server" / "settings.py")!r})),
    "socket": tried(socket.socket),
    "outside": tried(lambda: open(os.path.dirname(here) + "/x", "w")),
    "scratch": tried(lambda: open("x", "w").close()),
    "compiler": tried(lambda: open({str(ROOT / "compiler" / "text.py")!r})),
    "root": os.getuid() == 0,
    "home": os.environ["HOME"] == here,
}}))
"""


@pytest.fixture(scope="module", params=["none", "bubblewrap"])
def launcher(request: pytest.FixtureRequest) -> Iterator[Launcher]:
    os.environ["PYTHONPATH"] = str(ROOT)
    if request.param == "bubblewrap":
        try:
            choose_layers("bubblewrap", "auto", FAKE)
        except IsolationError as fault:
            pytest.skip(str(fault))
    one = Launcher(FAKE, warm=True, isolation="auto", outer=request.param)
    one.ready()
    assert one.isolation is not None
    assert one.isolation.outer == request.param
    yield one
    one.close()


def explore(launcher: Launcher, source: str, **limits: Any) -> list[dict[str, Any]]:
    kept = Kept()
    request = RunRequest(source=source, options=Options(native=False))
    Supervisor("r1", request, launcher, kept, replace(SETTINGS, **limits), lambda: False).run()
    return kept.flat()


def test_a_run_sees_its_scratch_and_nothing_else(launcher: Launcher) -> None:
    assert launcher.isolation is not None
    mode = launcher.isolation.mode
    assert mode is choose_layers(launcher.isolation.outer, "auto", FAKE).mode
    if mode is Mode.NONE:
        pytest.skip("no isolation works here")
    log = explore(launcher, LOOK)
    said = json.loads(next(event["text"] for event in log if event["type"] == "printed"))
    out_of_reach = "FileNotFoundError" if mode is Mode.NAMESPACES else "PermissionError"
    # Inside bubblewrap there is none, even for whoever gets through Landlock.
    passwd = (
        "PermissionError" if (mode, launcher.isolation.outer) == (Mode.LANDLOCK, Outer.NONE) else "FileNotFoundError"
    )
    assert said == {
        "passwd": passwd,
        "server": out_of_reach,
        "socket": "PermissionError",
        "outside": "OSError" if mode is Mode.NAMESPACES else "PermissionError",
        "scratch": "done",
        "compiler": "done",
        "root": False,
        "home": True,
    }
    assert log[-1]["type"] == "finished"


@pytest.mark.parametrize(
    ("source", "key"),
    [
        ("import os; os.abort()", "server.died_abort"),
        ("import ctypes; ctypes.string_at(0)", "server.died_segv"),
        ("import os; os._exit(3)", "server.exited"),
        (
            "import os\nfor _ in range(10):\n    if not os.fork(): os.setsid(); os.execv('/bin/sleep', ['sleep', '60'])",
            "",
        ),
    ],
)
def test_an_end_is_told_as_without_isolation_and_nothing_is_left(launcher: Launcher, source: str, key: str) -> None:
    before = _sleepers()
    last = explore(launcher, source)[-1]
    assert last.get("cause", {"key": ""})["key"] == key
    assert _sleepers() == before
    assert explore(launcher, "print(1)")[-1]["type"] == "finished"


def _sleepers() -> list[str]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "cmdline").read_bytes() == b"sleep\x0060\x00":
                found.append(folder.name)
        except OSError:
            continue
    return found


def test_too_much_on_disk_is_refused_or_ends_the_run(launcher: Launcher) -> None:
    source = "import time\nfor i in range(4): open(f'f{i}', 'wb').write(bytes(8 << 20))\ntime.sleep(1)\nprint('held')"
    log = explore(launcher, source)
    assert [event for event in log if event["type"] == "printed" and "held" in event["text"]] == []
    assert log[-1]["type"] == "failed"


def test_a_killed_fork_server_leaves_nothing(launcher: Launcher) -> None:
    def cancel() -> bool:
        if launcher.pid is not None and _sleepers() != before:
            os.kill(launcher.pid, signal.SIGKILL)
        return False

    before = _sleepers()
    kept = Kept()
    source = "import subprocess; subprocess.run(['/bin/sleep', '60'])"
    request = RunRequest(source=source.replace("'/bin/sleep'", "'sleep'"), options=Options(native=False))
    Supervisor("r1", request, launcher, kept, SETTINGS, cancel).run()
    assert kept.types()[-1] == "lost"
    assert _sleepers() == before
    assert explore(launcher, "print(1)")[-1]["type"] == "finished"


def test_what_does_not_work_is_refused_and_nothing_weaker_taken() -> None:
    with pytest.raises(ForkServerError) as refused:
        Launcher(FAKE, warm=True, isolation="bubbles").ready()
    assert "bubbles" not in FAKE
    assert "none of auto, namespaces, landlock, none" in str(refused.value.cause.params["error"])
