"""Snippets that go wrong, with the real torch: one message, one terminal event, and the next run works."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from compiler.events import Options, RunRequest, StageName
from compiler.text import Message, render
from server.sandbox.launcher import Launcher
from server.sandbox.supervisor import Supervisor
from server.settings import Settings, load
from tests.server.conftest import Kept, check_log

NET = """
import torch
model = torch.nn.Linear(4, 2)
inputs = (torch.randn(3, 4),)
"""

SETTINGS = load({}, capture_seconds=60.0, memory_bytes=3 << 30, processes=24)


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    one = Launcher("compiler.child", warm=True, isolation="auto")
    one.ready()
    yield one
    one.close()


def explore(launcher: Launcher, source: str, settings: Settings = SETTINGS, **options: Any) -> Kept:
    kept = Kept()
    request = RunRequest(source=source, options=Options(**({"native": False} | options)))
    Supervisor("r1", request, launcher, kept, settings, lambda: False).run()
    check_log(kept.log)
    return kept


HOSTILE = [
    ("syntax error", "import torch\nmodel = = 1", "failed", "snippet."),
    ("absent import", "import torchh\n" + NET, "failed", "snippet."),
    ("no inputs", "import torch\nmodel = torch.nn.Linear(4, 2)", "failed", "snippet."),
    ("empty", "", "failed", "snippet."),
    ("endless loop", NET + "while True: pass", "timed_out", "server.limit_time"),
    ("30 GB of Python", NET + "x = bytearray(30 << 30)", "failed", ""),
    ("30 GB of tensors", NET + "x = torch.empty(30 << 30, dtype=torch.uint8)", "failed", ""),
    ("os._exit", NET + "import os\nos._exit(0)", "failed", "server.exited"),
    ("segmentation fault", NET + "import ctypes\nctypes.string_at(0)", "failed", "server.died_segv"),
    ("abort", NET + "import os\nos.abort()", "failed", "server.died_abort"),
    ("fork bomb", NET + "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", "failed", "server."),
    ("exit in the model", NET + "model = lambda x: __import__('os')._exit(3)", "failed", "server.exited"),
]


@pytest.mark.parametrize(("source", "end", "key"), [case[1:] for case in HOSTILE], ids=[case[0] for case in HOSTILE])
def test_each_ends_in_one_message_and_the_next_run_works(launcher: Launcher, source: str, end: str, key: str) -> None:
    settings = replace(SETTINGS, capture_seconds=3.0) if end == "timed_out" else SETTINGS
    kept = explore(launcher, source, settings)
    last = kept.flat()[-1]
    assert last["type"] == end, last
    cause = last["cause"] if end == "failed" else {"key": "server.limit_time", "params": {"seconds": 3.0}}
    assert cause["key"].startswith(key)
    assert len(render(Message.model_validate(cause))) > 20
    # The next run, up to its first graph.
    after = explore(launcher, NET, until=StageName.DYNAMO)
    assert after.flat()[-1] == {**after.flat()[-1], "type": "finished", "error": None}
    assert any(event["type"] == "stage_finished" and event.get("stage") == "dynamo" for event in after.flat())


@pytest.mark.parametrize(
    "flood",
    ["for _ in range(100): print('x' * 1_000_000)", "import os\nfor _ in range(100): os.write(1, b'x' * 1_000_000)"],
)
def test_a_hundred_megabytes_of_output(launcher: Launcher, flood: str) -> None:
    kept = explore(launcher, NET + flood, until=StageName.DYNAMO)
    assert kept.types().count("output_cut") == 1
    assert sum(len(event["text"]) for event in kept.flat() if event["type"] == "printed") <= 1_000_000
    assert kept.flat()[-1]["type"] == "finished"
