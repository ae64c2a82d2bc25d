"""The command line, as processes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from server.examples import read_recording
from tests.server.conftest import FAKE, ROOT

SNIPPET = """
import os
stage("source")
stage("dynamo", "0/0")
artifact("x = '</script><!-- <script>'")
say(Summary(summary={"joint_nodes": [3]}))
print(os.path.basename(os.getcwd()), os.path.basename(path), os.environ.get("MINE"))
"""


@pytest.fixture
def snippet(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    folder.mkdir()
    file = folder / "net.py"
    file.write_text(SNIPPET)
    return file


def command(*arguments: str | Path, **environment: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "server.cli", *map(str, arguments)],
        env=os.environ | {"AOTSCOPE_CHILD": FAKE, "PYTHONPATH": str(ROOT)} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def result(*arguments: str | Path, **environment: str) -> tuple[int, str, str]:
    process = command(*arguments, **environment)
    out, err = process.communicate(timeout=60)
    return process.returncode, out.decode(), err.decode()


def test_run_shows_stages_and_what_is_printed(snippet: Path) -> None:
    code, out, err = result("run", snippet, "--no-native", MINE="yes")
    assert (code, out) == (0, "mine net.py yes\n")
    assert "It is not isolated." in " ".join(err.split())
    lines = err.splitlines()
    assert [line.split() for line in lines if line.startswith("✓")] == [
        ["✓", "source", "0.500", "s", "nodes=3"],
        ["✓", "dynamo", "0/0", "0.500", "s", "nodes=3"],
    ]


def test_json_on_stdout_is_one_document(snippet: Path) -> None:
    code, out, err = result("run", snippet, "--json", "-", "--until", "codegen", "--mode", "training")
    document = json.loads(out)
    assert code == 0
    assert document["run"]["request"]["options"] == {
        "target": "cpu",
        "mode": "training",
        "native": True,
        "until": "codegen",
        "trace": False,
    }
    assert document["compiles"][0]["stages"][1]["artifacts"][0]["payload"]["text"].startswith("x = ")
    assert document["summary"] == {"joint_nodes": [3]}
    assert "mine net.py None" in err


def test_json_file(snippet: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    assert result("run", snippet, "--no-native", "--json", target)[0] == 0
    assert json.loads(target.read_text())["format"] == "document/1"


def test_the_structured_trace_is_written_to_a_folder(snippet: Path, tmp_path: Path) -> None:
    snippet.write_text('trace(f"V1201 λ {phase}\\n")')
    folder = tmp_path / "traces"
    assert result("run", snippet, "--trace", folder)[0] == 0
    assert {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir()} == {
        f"dedicated_log_torch_trace_{phase}.log": f"V1201 λ {phase}\n" for phase in ("capture", "native")
    }
    code, _out, err = result("run", snippet, "--trace", tmp_path / "no" / "folder")
    assert (code, "Traceback" in err) == (2, False)


@pytest.mark.parametrize(
    ("source", "code", "sentence"),
    [
        ("import os; os._exit(0)", 1, "exit code 0"),
        ("while True: pass", 1, "endless loop"),
        ("from compiler.text import message\ndone(Finished(error=message('server.fault')))", 0, "made a mistake"),
    ],
)
def test_exit_codes_by_outcome(snippet: Path, source: str, code: int, sentence: str) -> None:
    snippet.write_text(source)
    done = result("run", snippet, "--no-native", AOTSCOPE_CAPTURE_SECONDS="1")
    assert (done[0], sentence in done[2]) == (code, True)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["run"],
        ["run", "absent.py"],
        ["run", "."],
        ["run", "{file}", "--target", "tpu"],
        ["run", "{file}", "--mode", "both"],
        ["run", "{file}", "--until", "later"],
        ["run", "{file}", "--json", "no/such/folder.json"],
        ["nonsense"],
    ],
)
def test_wrong_usage_is_2_and_says_something(snippet: Path, arguments: list[str]) -> None:
    code, out, err = result(*(argument.format(file=snippet) for argument in arguments))
    assert (code, (out + err).strip() != "", "Traceback" in err) == (2, True, False)


def test_a_bad_setting_is_one_sentence(snippet: Path) -> None:
    code, _out, err = result("run", snippet, AOTSCOPE_EVENTS="many")
    assert (code, err) == (2, "AOTSCOPE_EVENTS='many' is not a valid int.\n")


def test_modules_of_the_current_folder_are_not_taken_for_ours(snippet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("server", "compiler", "json", "socket"):
        (snippet.parent / f"{name}.py").write_text("raise SystemExit('taken for a module of ours')")
    monkeypatch.chdir(snippet.parent)
    code, out, _err = result("run", snippet, "--no-native", MINE="yes")
    assert (code, out) == (0, "mine net.py yes\n")


def test_ctrl_c_cancels(snippet: Path, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    snippet.write_text(f"import os, time\nopen({str(mark)!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)")
    process = command("run", snippet, "--json", "-")
    while not mark.exists() or not mark.read_text():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, _err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert json.loads(out)["run"]["outcome"]["type"] == "cancelled"
    assert not Path(f"/proc/{mark.read_text()}").exists()


def test_killing_the_command_ends_everything(snippet: Path, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    snippet.write_text(f"import os, time\nopen({str(mark)!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)")
    process = command("run", snippet)
    while not mark.exists() or not mark.read_text():
        time.sleep(0.05)
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 5
    while Path(f"/proc/{mark.read_text()}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_port_in_use_is_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, out, err = result("serve", "--port", str(port), "--data", tmp_path)
    assert (code, out) == (1, "")
    assert (
        " ".join(err.split())
        == f"Port {port} of 127.0.0.1 is in use. Stop what uses it, or choose another one with --port."
    )


@pytest.mark.parametrize("host", ["0.0.0.0", "10.1.2.3", "::", "example.com"])
def test_other_addresses_are_refused(tmp_path: Path, host: str) -> None:
    code, _out, err = result("serve", "--host", host, "--data", tmp_path)
    assert (code, f"{host} is not a loopback address." in err) == (1, True)


def test_examples_are_listed() -> None:
    code, out, _err = result("examples")
    assert (code, out.count("server/examples/") >= 8) == (0, True)


def test_recording_examples(snippet: Path, tmp_path: Path) -> None:
    snippet.write_text('"""Title\n\nWords.\n"""\nstage("source")\nprint(path)')
    code, _out, err = result("record", snippet, "-o", tmp_path / "recorded")
    recording = read_recording(tmp_path / "recorded" / "net.json.gz")
    assert (code, recording.run.request.source) == (0, 'stage("source")\nprint(path)')
    # As the server would: pasted text, not a file.
    assert "None" in err
    assert recording.events[-1]["type"] == "finished"
