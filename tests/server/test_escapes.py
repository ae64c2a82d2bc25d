"""Markup and terminal escapes in every field of text: shown wherever a run is shown, obeyed nowhere."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import orjson
import pytest

from compiler.recording import RecordedRun, Recording
from server import assets
from server.recording import load
from server.terminal import visible
from tests.server.asgi import Client, serving
from tests.server.conftest import FAKE, ROOT, Explore, Kept
from tests.server.test_forged import TOOLS

HTML = (
    "</script><script>alert(1)</script></style></title></pre></textarea>--><img src=x onerror=alert(2)>"
    "\"'`><svg onload=alert(3)>&lt;b&gt;{{7*7}}${7*7}javascript:alert(4)"
)
ESCAPES = "\x1b[2J\x1b]0;owned\x07\x1b]8;;http://evil.example\x1b\\x\x9b31m\x08\x7f\rover\u202etxt.exe[bold red]rich[/]"
NASTY = HTML + ESCAPES

# Every field of every event and of several payloads, as far as the contract lets text in.
EVERYWHERE = (
    TOOLS
    + """
event({"type": "compile_started", "function": S, "file": S, "line": 1, "reason": S}, stage="dynamo", compile="0/0")
event({"type": "stage_started"}, stage="joint", compile="0/0")
event({"type": "stage_finished", "seconds": 1, "facts": {"form": S}}, stage="joint", compile="0/0")
cause = {"key": "server.worker_fault", "params": {"error": S}}
event({"type": "stage_failed", "cause": cause, "error": S, "line": 1, "traceback": S}, stage="partition", compile="0/0")
event({"type": "stage_skipped", "reason": cause}, stage="fusion", compile="0/0")
event({"type": "finding", "severity": "error", "message": cause, "line": 1, "entity": S, "hint": cause}, stage="dynamo")
import dataclasses
from compiler.session import Tally
figures = dataclasses.asdict(Tally())
event({"type": "summary", "summary": figures | {"error": S, "eager_fallback": [S], "unique_recompile_reasons": [S]}})
event({"type": "printed", "stream": "stdout", "text": S})
event({"type": "printed", "stream": "stderr", "text": S})
named(made(CODE | {"text": S}, "code"))
stacks = [[{"file": S, "line": 1, "function": S, "code": S, "user": True}]]
strings = ["", S, "call_function", "x" + S]
whole = graph(nodes=2, strings=strings, stacks=stacks, edges={"source": [0], "target": [1]}, id="0_0/joint/" + S)
whole["nodes"] |= {"name": [1, 3], "op": [2, 2], "stack": [0, 0]}
for column in ("target", "args", "module", "module_type", "grad_fn", "roles"):
    whole["nodes"][column] = [1, 1]
ref = made(whole, "graph")
event({"type": "artifact", "name": "joint", "graph": "joint", "artifact": ref}, stage="joint", compile="0/0")
print(S)
raw(json.dumps({"frame": "done", "outcome": {"type": "failed", "cause": cause, "error": S, "line": 1, "traceback": S}}))
import os, sys
sys.stdout.flush()
os._exit(0)
"""
)


def source(text: str) -> str:
    return f"S = {text!r}\n" + EVERYWHERE


class Shape(HTMLParser):
    """Which elements there are, with the names of their attributes: what text must never change. And where things lead."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.shape: list[tuple[str, tuple[str, ...]]] = []
        self.leads: set[str] = set()
        self.scripts: list[str] = []
        self._script = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.shape.append((tag, tuple(name for name, _ in attrs)))
        self.leads |= {value or "" for name, value in attrs if name in ("href", "src", "action", "formaction")}
        self._script = tag == "script"

    def handle_endtag(self, tag: str) -> None:
        self._script = False

    def handle_data(self, data: str) -> None:
        if self._script:
            self.scripts.append(data)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with serving(tmp_path_factory.mktemp("escapes")) as one:
        yield one


def stored(explore: Explore, client: Client, id: str, text: str) -> Recording:
    kept = explore(source(text))
    assert kept.flat()[-1]["error"] == text
    return kept_in(client, kept, id)


def kept_in(client: Client, kept: Kept, id: str) -> Recording:
    """In the store of the application, as a worker would have put it there."""
    recording = Recording(
        run=RecordedRun(id=id, request=kept.log[0].body.request, created=1.5),  # type: ignore[union-attr]
        events=kept.flat(),
        artifacts={digest: json.loads(payload) for digest, payload in kept.payloads.items()},
    )
    load(client.context.runs, client.context.artifacts, recording, id, "test")
    return recording


@pytest.fixture
def runs(
    explore: Explore, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Recording, Recording]:
    """The same run with harmless and with hostile text."""
    for name in ("app.js", "app.css", "layout-worker.js"):
        (tmp_path / name).write_text("/* ours */")
    monkeypatch.setattr(assets, "STATIC", tmp_path)
    return stored(explore, client, "harmless", "harmless"), stored(explore, client, "nasty", NASTY)


def test_every_page_keeps_its_shape(runs: tuple[Recording, Recording], client: Client) -> None:
    for path in ("/r/{}", "/embed/{}", "/r/{}/plain", "/r/{}/plain?lang=zh", "/api/v1/runs/{}/report.html"):
        harmless, nasty = (client.get(path.format(run)) for run in ("harmless", "nasty"))
        assert (harmless.status_code, nasty.status_code) == (200, 200)
        before, after = Shape(harmless.text), Shape(nasty.text)
        assert [shape for shape in after.shape if shape not in before.shape] == []
        assert len(after.shape) == len(before.shape)
        assert {_place(lead) for lead in after.leads} == {_place(lead) for lead in before.leads}
        if "report" not in path:
            assert after.scripts == []
        assert not re.search(r"<[^>]*\son\w+\s*=", nasty.text.replace(NASTY, "").split("aotscope-recording")[0])


def _place(lead: str) -> str:
    """A link without what differs between two runs anyway: the run's id and the names of its artifacts."""
    return re.sub("[0-9a-f]{64}", "HASH", lead.replace("nasty", "harmless"))


def test_the_report_holds_the_text_and_its_own_policy(runs: tuple[Recording, Recording], client: Client) -> None:
    answer = client.get("/api/v1/runs/nasty/report.html")
    shape = Shape(answer.text)
    island = next(text for text in shape.scripts if text.startswith("{"))
    assert json.loads(island)["events"] == [event | {"run": "nasty"} for event in runs[1].events]
    assert '<meta http-equiv="Content-Security-Policy"' in answer.text
    assert answer.headers["content-disposition"].startswith("attachment;")
    assert "script-src 'self'" in answer.headers["content-security-policy"]


def test_every_answer_has_a_policy_and_is_what_it_says(runs: tuple[Recording, Recording], client: Client) -> None:
    digest = next(name for name, payload in runs[1].artifacts.items() if payload["format"] == "graph/1")
    base = "/api/v1/runs/nasty"
    for path, kind in {
        base: "application/json",
        f"{base}/document": "application/json",
        f"{base}/events": "text/event-stream; charset=utf-8",
        f"{base}/artifacts/{digest}": "application/json",
        f"{base}/artifacts/{digest}/picture.svg": "image/svg+xml; charset=utf-8",
        f"{base}/artifacts/{digest}/graph.dot": "text/vnd.graphviz; charset=utf-8",
        f"/nothing/{HTML}": "application/json",
        "/": "text/html; charset=utf-8",
        "/r/nasty/plain": "text/html; charset=utf-8",
        "/r/absent/plain": "text/html; charset=utf-8",
        "/api/docs": "text/html; charset=utf-8",
        "/plain.css": "text/css; charset=utf-8",
    }.items():
        answer = client.get(path)
        assert (path, answer.headers["content-type"]) == (path, kind)
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "unsafe-eval" not in answer.headers["content-security-policy"]
        assert "script-src 'self';" in answer.headers["content-security-policy"]


def test_what_contradicts_itself_is_refused_in_a_sentence(explore: Explore, client: Client) -> None:
    """A summary without its figures, two nodes of one name, a node that reads what comes after it."""
    forged = """
event({"type": "summary", "summary": {"error": None}})
whole = graph(nodes=2, strings=["", "x", "y"], edges={"source": [1], "target": [0]}, id="0_0/joint/backward")
whole["nodes"]["name"] = [1, 2]
event({"type": "artifact", "name": "joint", "graph": "joint", "artifact": made(whole, "graph")}, stage="joint", compile="0/0")
"""
    recording = kept_in(client, explore(TOOLS + forged), "forged")
    (digest,) = recording.artifacts
    picture = f"/api/v1/runs/forged/artifacts/{digest}/picture.svg"
    for path in ("/r/forged/plain", f"{picture}?backward={digest}"):
        answer = client.get(path)
        assert (answer.status_code, answer.json()["error"]["key"]) == (409, "server.artifact_contradicts")
    for path in (picture, picture.replace("picture.svg", "graph.dot"), "/api/v1/runs/forged/document"):
        assert client.get(path).status_code == 200


def test_a_picture_is_well_formed_and_without_links(runs: tuple[Recording, Recording], client: Client) -> None:
    shapes = []
    for run, recording in zip(("harmless", "nasty"), runs, strict=True):
        digest = next(name for name, payload in recording.artifacts.items() if payload["format"] == "graph/1")
        tree = ElementTree.fromstring(client.get(f"/api/v1/runs/{run}/artifacts/{digest}/picture.svg").text)
        shapes.append([(element.tag, sorted(element.attrib)) for element in tree.iter()])
        for element in tree.iter():
            assert not any("href" in name or name.startswith("on") for name in element.attrib)
    assert shapes[0] == shapes[1]


def test_an_event_is_one_line_of_a_stream(runs: tuple[Recording, Recording], client: Client) -> None:
    lines = client.get("/api/v1/runs/nasty/events").content.decode().split("\n\n")[1:-1]
    told = [orjson.loads(line.split("\n")[1].removeprefix("data: ")) for line in lines]
    assert all(len(re.split("[\n\r]", line)) == 2 for line in lines)
    assert told == [event | {"run": "nasty"} for event in runs[1].events]


# --- the terminal ------------------------------------------------------------------------------------------------

_OURS = re.compile(rb"\x1b\[(\?25[lh]|[0-9;]*m|[0-9]*[AK])|\r|\n|\t")


@pytest.mark.parametrize("terminal", [True, False])
def test_the_terminal_obeys_nothing(tmp_path: Path, terminal: bool) -> None:
    """On a real terminal, too: what is left when rich's own colours and cursor movements are taken away holds no control."""
    file = tmp_path / f"net{'' if terminal else ESCAPES.replace('/', '')[:40].replace(chr(27), 'e')}.py"
    file.write_text(source(NASTY))
    shown = _output(file, terminal)
    text = _OURS.sub(b"", shown).decode()
    assert visible(text) == text
    for hidden in (b"\x1b]", b"\x1b[2J", b"\x07", b"\x9b31m", b"\xc2\x9b", "\u202e".encode()):
        assert hidden not in shown
    said = text.replace(" ", "")
    # The words are all there: nothing is markup, and no part of it is swallowed.
    assert said.count("[boldred]rich[/]") >= 10
    assert said.count("␛]0;owned␇") >= 10
    assert "<U+202E>txt.exe" in said


def _output(file: Path, terminal: bool) -> bytes:
    command = [sys.executable, "-P", "-m", "server.cli", "run", str(file), "--no-native"]
    environment = os.environ | {"AOTSCOPE_CHILD": FAKE, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "4000"}
    if not terminal:
        done = subprocess.run(command, capture_output=True, timeout=60, env=environment, check=False)
        return done.stdout + done.stderr
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, stdout=theirs, stderr=theirs, stdin=theirs, env=environment)
    os.close(theirs)
    shown = b""
    while select.select([ours], [], [], 60)[0]:
        try:
            shown += os.read(ours, 1 << 16)
        except OSError:
            # Linux's way to say that the other end is closed.
            break
    os.close(ours)
    process.wait(30)
    return shown


def test_visible() -> None:
    assert visible("a\tb\nc λ 中文 🐍 ‘’…") == "a\tb\nc λ 中文 🐍 ‘’…"
    assert visible("1\r\n2\r3") == "1\n2\n3"
    assert visible("\x00\x07\x1b\x7f\x9b\u202e\u2028\ud800") == "␀␇␛␡<U+009B><U+202E><U+2028><U+D800>"
