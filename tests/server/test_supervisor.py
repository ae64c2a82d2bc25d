"""A run through supervisor, fork server, warden and child: real processes, and a child without torch."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from compiler.events import Options, StageName
from server.sandbox.launcher import ForkServerError, Launcher
from server.store.runs import FencedError
from tests.server.conftest import ROOT, Explore, Kept

ONE = """
stage("source")
stage("dynamo", "0/0")
artifact("x = 1")
say(Summary(summary={"joint_nodes": [3]}))
"""


def without_times(event: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in event.items() if key not in ("v", "run", "seq", "t")}


def test_a_run_from_first_event_to_last(explore: Explore) -> None:
    kept = explore(ONE)
    (digest,) = kept.payloads
    size = len(kept.payloads[digest])
    finished = {"type": "stage_finished", "status": "ok", "seconds": 0.5, "graph": None, "facts": {"nodes": 3}}
    skipped = {"type": "stage_skipped", "reason": {"key": "server.native_off", "params": {}}}
    assert [without_times(event) for event in kept.flat()[1:]] == [
        {"type": "phase_started", "phase": "capture"},
        {"stage": "source", "type": "stage_started"},
        {"stage": "source", **finished},
        {"stage": "dynamo", "compile": "0/0", "type": "stage_started"},
        {"stage": "dynamo", "compile": "0/0", **finished},
        {
            "stage": "codegen",
            "compile": "0/0",
            "type": "artifact",
            "name": "wrapper",
            "graph": "inference",
            "artifact": {"hash": digest, "kind": "code", "format": "code/1", "bytes": size},
        },
        {"type": "summary", "summary": {"joint_nodes": [3]}},
        {"stage": "execute", **skipped},
        {"stage": "cache", **skipped},
        {"type": "finished", "error": None},
    ]
    started = kept.flat()[0]
    assert (started["type"], started["request"]["source"], started["engine"]["torch"]) == ("run_started", ONE, "0-fake")


def terminal(kept: Kept) -> dict[str, Any]:
    return without_times(kept.flat()[-1])


def cause(kept: Kept) -> tuple[str, str]:
    end = terminal(kept)
    return end["type"], end["cause"]["key"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import os; os._exit(3)", ("failed", "server.exited")),
        ("import os; os.kill(os.getpid(), 11)", ("failed", "server.died_segv")),
        ("import os; os.kill(os.getpid(), 9)", ("failed", "server.died_kill")),
        ("import os; os.abort()", ("failed", "server.died_abort")),
        ("import os; os.kill(os.getpid(), 8)", ("failed", "server.died_signal")),
        ("open('big', 'wb').truncate(2 << 30)", ("failed", "server.exited")),
        ("send(b'\\x00\\x00\\x00\\x02no')", ("failed", "server.malformed_frame")),
        ("send(b'\\xff\\xff\\xff\\xff')", ("failed", "server.event_too_large")),
        ("done(Finished()); say(Summary(summary={}))", ("failed", "server.frame_after_done")),
        ("say(Finished())", ("failed", "server.event_not_allowed")),
        (
            "from compiler.events import PhaseStarted; say(PhaseStarted(phase='native'))",
            ("failed", "server.event_not_allowed"),
        ),
    ],
)
def test_each_way_to_die_is_one_sentence(explore: Explore, source: str, expected: tuple[str, str]) -> None:
    assert cause(explore(source)) == expected
    assert terminal(explore("pass")) == {"type": "finished", "error": None}


FORGED = """
import hashlib, struct
from compiler.events import ArtifactFrame, ArtifactMade, ArtifactRef
body = {body!r}
digest = hashlib.sha256(body).hexdigest()
ref = ArtifactRef(hash={digest}, kind={kind!r}, format="code/1", bytes=len(body))
text = ArtifactFrame(ref=ref).model_dump_json().encode()
if {send}:
    send(struct.pack(">I", len(text)) + text + body)
say(ArtifactMade(name="wrapper", artifact=ref), "codegen")
"""


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"digest": "'0' * 64"}, "server.artifact_hash"),
        ({"kind": "pickle"}, "server.artifact_kind"),
        ({"kind": "graph"}, "server.artifact_kind"),
        ({"body": b'{"format": "code/1", "id": 4}'}, "server.artifact_invalid"),
        ({"send": False}, "server.artifact_unknown"),
        ({"body": b"x" * 5000}, "server.artifact_too_large"),
    ],
)
def test_forged_artifacts_end_the_run(explore: Explore, change: dict[str, Any], expected: str) -> None:
    values = {"body": b"{}", "digest": "digest", "kind": "code", "send": True} | change
    kept = explore(FORGED.format(**values), artifact_bytes=4000)
    assert cause(kept) == ("failed", expected)
    assert kept.payloads == {}


def test_all_artifacts_together_are_limited(explore: Explore) -> None:
    kept = explore("for i in range(9): artifact(str(i) * 1000)", artifacts_bytes=4000)
    assert cause(kept) == ("failed", "server.artifacts_too_large")
    assert len(kept.payloads) == 3


def test_events_are_counted(explore: Explore) -> None:
    kept = explore("for i in range(99): say(Summary(summary={}))", events=20)
    assert cause(kept) == ("failed", "server.too_many_events")
    assert len(kept.log) == 21


def test_printed_pieces_are_counted(explore: Explore) -> None:
    kept = explore("for i in range(99): say(Printed(stream='stdout', text='x'))\nstage('source')", events=20)
    assert kept.types()[2:] == ["printed"] * 18 + ["output_cut", "failed"]


def test_endless_loop_times_out_in_its_stage(explore: Explore) -> None:
    kept = explore("say(StageStarted(), 'dynamo', '0/0')\nwhile True: pass", capture_seconds=0.5)
    assert [without_times(event) for event in kept.flat()[-2:]] == [
        {
            "compile": "0/0",
            "stage": "dynamo",
            "type": "stage_failed",
            "cause": {"key": "server.limit_time", "params": {"seconds": 0.5}},
            "error": "",
            "line": None,
            "traceback": "",
        },
        {"type": "timed_out", "limit_seconds": 0.5, "stage": "dynamo"},
    ]


def test_memory_of_the_whole_tree_is_limited(explore: Explore) -> None:
    source = """
import os, time
for _ in range(4):
    if os.fork() == 0:
        held = bytearray(60 << 20)
        time.sleep(60)
time.sleep(60)
"""
    assert cause(explore(source, memory_bytes=200 << 20)) == ("failed", "server.limit_memory")


def test_one_process_that_asks_for_too_much_is_refused(explore: Explore) -> None:
    kept = explore("try:\n    bytearray(30 << 30)\nexcept MemoryError: print('refused')")
    assert [event.body.text for event in kept.log if event.body.type == "printed"] == ["refused\n"]


def test_fork_bomb(explore: Explore) -> None:
    kept = explore("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", processes=16)
    assert cause(kept) == ("failed", "server.limit_processes")


def test_flood_of_output_is_cut_and_the_run_goes_on(explore: Explore) -> None:
    kept = explore(
        "import os\nfor _ in range(100): os.write(1, b'x' * 1_000_000)\nstage('source')", output_bytes=10_000
    )
    printed = "".join(event.body.text for event in kept.log if event.body.type == "printed")
    assert printed == "x" * 10_000
    assert kept.types().count("output_cut") == 1
    assert kept.types()[-1] == "finished"
    assert "stage_finished" in kept.types()


def test_daemons_do_not_outlive_the_run(explore: Explore) -> None:
    source = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        time.sleep(60)
    os._exit(0)
os.wait()
time.sleep(0.1)
"""
    kept = explore(source)
    (pid,) = [int(event.body.text) for event in kept.log if event.body.type == "printed"]
    assert not Path(f"/proc/{pid}").exists()


def test_a_child_that_does_not_end_after_its_last_word_is_ended(explore: Explore) -> None:
    began = time.monotonic()
    kept = explore("done(Finished())\nimport time; time.sleep(60)")
    assert terminal(kept) == {"type": "finished", "error": None}
    assert time.monotonic() - began < 10


def test_cancel_ends_the_tree(explore: Explore) -> None:
    began = time.monotonic()
    kept = explore(
        "import os, signal, time\nsignal.signal(15, signal.SIG_IGN)\nos.fork()\nwhile True: pass",
        cancelled=lambda: time.monotonic() - began > 0.3,
    )
    assert terminal(kept) == {"type": "cancelled"}
    assert time.monotonic() - began < 3


def test_the_child_sees_no_secrets_and_its_own_scratch(explore: Explore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AOTSCOPE_SECRET", "xyzzy")
    os.environ["PYTHONPATH"] = str(ROOT)
    launcher = Launcher("tests.server.fake.child", warm=True)
    source = """
import os, tempfile
print([key for key in os.environ if "SECRET" in key], os.getcwd() == tempfile.gettempdir() == os.environ["HOME"])
print(sorted(int(fd) for fd in os.listdir("/proc/self/fd"))[:-1], os.getcwd())
"""
    try:
        kept = explore(source, launcher=launcher)
    finally:
        launcher.close()
    text = "".join(event.body.text for event in kept.log if event.body.type == "printed")
    first, second = text.splitlines()
    assert first == "[] True"
    descriptors, scratch = second.split("] ")
    assert descriptors == "[0, 1, 2, 3"
    assert not Path(scratch).exists()


NATIVE = """
stage("source")
if phase == "native":
    {native}
"""


@pytest.mark.parametrize(
    ("native", "limit", "expected"),
    [
        ("import os; say(StageStarted(), 'execute'); os._exit(1)", 300.0, ["server.exited", "server.exited"]),
        ("stage('execute')\n    while True: pass", 1.5, ["server.limit_time"]),
        ("send(b'\\x00\\x00\\x00\\x01x')", 300.0, ["server.malformed_frame", "server.malformed_frame"]),
        ("stage('execute'); stage('cache')", 300.0, []),
        ("stage('execute')", 300.0, ["server.stage_absent"]),
    ],
)
def test_the_native_phase_never_spoils_the_capture(
    explore: Explore, native: str, limit: float, expected: list[str]
) -> None:
    kept = explore(NATIVE.format(native=native), Options(), run_seconds=limit)
    assert [event["cause"]["key"] for event in kept.flat() if event["type"] == "stage_failed"] == expected
    assert terminal(kept) == {"type": "finished", "error": None}


def test_what_the_capture_phase_found_reaches_the_native_one(explore: Explore) -> None:
    found = "Captured(digests=('0123456789abcdef',), saved={'partition_bytes': 7})"
    kept = explore(
        f"if phase == 'capture': done(Finished(), {found})\n"
        "else: say(Printed(stream='stdout', text=captured.model_dump_json(exclude_none=True)))",
        Options(),
    )
    (said,) = [event["text"] for event in kept.flat() if event["type"] == "printed"]
    assert json.loads(said) == {"digests": ["0123456789abcdef"], "saved": {"partition_bytes": 7}}


def test_until_spares_the_native_phase(explore: Explore) -> None:
    kept = explore("stage('source')", Options(until=StageName.CODEGEN))
    assert kept.types() == ["run_started", "phase_started", "stage_started", "stage_finished", "finished"]


def test_nothing_is_executed_after_an_error(explore: Explore) -> None:
    kept = explore("from compiler.text import message\ndone(Finished(error=message('server.fault')))", Options())
    assert [event["reason"]["key"] for event in kept.flat() if event["type"] == "stage_skipped"] == [
        "server.native_after_error"
    ] * 2
    assert terminal(kept) == {"type": "finished", "error": {"key": "server.fault", "params": {}}}


def test_a_killed_fork_server_loses_the_run_and_is_started_again(explore: Explore) -> None:
    os.environ["PYTHONPATH"] = str(ROOT)
    launcher = Launcher("tests.server.fake.child", warm=True)
    try:
        launcher.ready()
        first = launcher.pid
        assert first is not None
        threading.Timer(0.5, os.kill, (first, signal.SIGKILL)).start()
        kept = explore("stage('source')\nimport time; time.sleep(60)", launcher=launcher)
        assert cause(kept) == ("lost", "server.fork_server_died")
        assert terminal(explore("pass", launcher=launcher)) == {"type": "finished", "error": None}
        assert launcher.pid != first
    finally:
        launcher.close()


def test_a_fork_server_that_cannot_start_is_said(explore: Explore) -> None:
    launcher = Launcher("tests.server.absent.child", warm=True)
    kept = explore("pass", launcher=launcher)
    assert cause(kept) == ("lost", "server.fork_server_failed")
    with pytest.raises(ForkServerError):
        launcher.ready()


def test_a_fenced_writer_ends_its_child(explore: Explore, tmp_path: Path) -> None:
    kept = Kept()
    kept.fail = FencedError("r1")
    mark = tmp_path / "mark"
    with pytest.raises(FencedError):
        explore(f"import time; time.sleep(1); open({str(mark)!r}, 'w')", kept=kept)
    time.sleep(1.5)
    assert not mark.exists()
