"""Attacks by way of torch, on the real child; and a whole run, both phases, in isolation."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from compiler.events import Options, RunRequest, StageName
from server.sandbox.headers import headers_folder
from server.sandbox.isolation import Mode
from server.sandbox.launcher import Launcher
from server.sandbox.supervisor import Supervisor
from server.settings import load
from tests.server.conftest import Kept

NET = """
import os, torch
model = torch.nn.Linear(4, 2)
inputs = (torch.randn(3, 4),)
"""

ATTACKS = {
    "download a model": "torch.hub.load_state_dict_from_url('http://127.0.0.1:PORT/x.pt', progress=False)",
    "join a group": "torch.distributed.init_process_group('gloo', init_method='tcp://127.0.0.1:0', rank=0, world_size=1)",
    "save outside": "torch.save(model, os.path.dirname(os.getcwd()) + '/model.pt')",
    "map a file": "torch.from_file('/etc/passwd', size=10, dtype=torch.uint8)",
    "share memory": "torch.multiprocessing.set_sharing_strategy('file_system'); torch.ones(9).share_memory_()",
    "change torch": "open(torch.__file__, 'a').write('evil()')",
    "change a header": "open(os.path.dirname(torch.__file__) + '/include/torch/script.h', 'a').write('evil')",
    "change the shared headers": "os.makedirs(torch._inductor.codecache._HEADER_DIR + '/x')",
}


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    one = Launcher("compiler.child", warm=True, isolation="auto")
    one.ready()
    assert one.isolation is not None
    if one.isolation.mode is Mode.NONE:
        pytest.skip("no isolation works here")
    yield one
    one.close()


def explore(launcher: Launcher, source: str, **options: Any) -> list[dict[str, Any]]:
    kept = Kept()
    request = RunRequest(source=source, options=Options(**options))
    Supervisor("r1", request, launcher, kept, load({}), lambda: False).run()
    return kept.flat()


@pytest.mark.long
@pytest.mark.parametrize("name", ATTACKS)
def test_contained(launcher: Launcher, name: str) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    attack = ATTACKS[name].replace("PORT", str(listener.getsockname()[1]))
    tried = f"try:\n    {attack}\nexcept Exception as fault: print('failed', type(fault).__name__)\nelse: print('won')"
    log = explore(launcher, NET + tried, native=False, until=StageName.DYNAMO)
    printed = "".join(event["text"] for event in log if event["type"] == "printed")
    assert "failed" in printed, printed
    assert "won" not in printed
    with listener, pytest.raises(BlockingIOError):
        listener.accept()
    assert log[-1]["type"] == "finished"


@pytest.mark.long
@pytest.mark.parametrize("example", ["two_layer_net", "graph_breaks"])
def test_both_phases_in_isolation(launcher: Launcher, example: str) -> None:
    source = (Path(__file__).parents[2] / "server" / "examples" / f"{example}.py").read_text()
    log = explore(launcher, source)
    failed = [event for event in log if event["type"] == "stage_failed"]
    finished = {event["stage"] for event in log if event["type"] == "stage_finished"}
    assert failed == []
    assert {"codegen", "memory", "execute", "cache"} <= finished
    assert log[-1]["type"] == "finished"


POISON = """
import os
folder = FOLDER
for name in sorted(os.listdir(folder)):
    path = os.path.join(folder, name)
    for act in (
        lambda: open(path, "r+b").write(b"evil"),
        lambda: os.truncate(path, 0),
        lambda: os.unlink(path),
        lambda: os.rename(path, path + ".old"),
        lambda: os.link(path, "linked") or open("linked", "r+b").write(b"evil"),
        lambda: os.symlink("/evil", path + ".gch"),
        lambda: open(os.path.join(folder, "more.h"), "w"),
        lambda: os.makedirs(os.path.join(folder, "locks")),
    ):
        try: act()
        except OSError: continue
        print("won", name)
    try: os.chmod(path, 0o777)
    except OSError: pass
"""


@pytest.fixture(scope="module")
def headers(tmp_path_factory: pytest.TempPathFactory) -> str:
    return headers_folder(tmp_path_factory.mktemp("data"), "compiler.child")


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("outer", ["none", "auto"])
def test_shared_headers_are_read_and_nothing_flows_back(headers: str, outer: str) -> None:
    """Runs use them, in both layers; none changes them; and what a run says of its caches is the same."""
    one = Launcher("compiler.child", warm=True, isolation="auto", outer=outer, headers=headers)
    try:
        one.ready()
        if one.isolation is None or one.isolation.mode is Mode.NONE:
            pytest.skip("no isolation works here")
        before = _files(headers)
        assert sum(name.endswith(".gch") for name in before) == 1
        source = NET + POISON.replace("FOLDER", repr(headers))
        kept = Kept()
        request = RunRequest(source=source + USED.replace("FOLDER", repr(headers)))
        Supervisor("r1", request, one, kept, load({}), lambda: False).run()
        log = kept.flat()
        assert [event for event in log if event["type"] in ("stage_failed", "printed")] == []
        assert log[-1]["type"] == "finished"
        assert _files(headers) == before
        # What was cold stays cold.
        (made,) = [event["artifact"] for event in log if event.get("stage") == "cache" and event["type"] == "artifact"]
        told = orjson.loads(kept.payloads[made["hash"]])
        outcomes = {(probe["what"], probe["outcome"]) for probe in told["probes"] if probe["what"] != "changed"}
        assert outcomes == {("cold", "miss"), ("warm", "hit")}, told
    finally:
        one.close()


# What the compiler is told about a kernel names the header that is read.
USED = """
from torch._inductor import cpp_builder
build = cpp_builder.CppBuilder.build
def checked(self):
    assert FOLDER in self.get_command_line(), self.get_command_line()
    build(self)
cpp_builder.CppBuilder.build = checked
"""


def _files(folder: str) -> dict[str, tuple[str, int, int]]:
    return {
        path.name: (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mode, path.stat().st_mtime_ns)
        for path in Path(folder).iterdir()
    }
