"""The one-file page, recordings, the gallery."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from pydantic_core import to_json

from compiler.ir.execution import Comparison, ExecutionPayload
from compiler.recording import RecordedRun, Recording
from server import assets, pages
from server.document import document
from server.examples import FOLDER, Example, examples, import_recordings, parse
from server.recording import encode_payload, record
from server.report import report
from server.store.artifacts import Artifacts
from server.store.runs import Runs
from tests.server.conftest import Explore

NASTY = "</script><script>alert(1)</script><!-- <script> \u2028 & \" ' λ"


@pytest.fixture
def recording(explore: Explore) -> Recording:
    kept = explore(f"stage('source')\nartifact({NASTY!r})\nprint({NASTY!r})\nsay(Summary(summary={{'error': None}}))")
    return Recording(
        run=RecordedRun(id="r1", request=kept.log[0].body.request, created=1.5),
        events=kept.flat(),
        artifacts={digest: json.loads(payload) for digest, payload in kept.payloads.items()},
    )


class Scripts(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[dict[str, str | None], str]] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag == "script"
        if self._inside:
            self.found.append((dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            attributes, before = self.found[-1]
            self.found[-1] = (attributes, before + data)


def test_one_file_report(recording: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assets, "STATIC", tmp_path)
    with pytest.raises(pages.NotBuiltError):
        report(recording)
    (tmp_path / "app.js").write_text("const a = '</script>';")
    (tmp_path / "app.css").write_text("a { color: red }")
    (tmp_path / "layout-worker.js").write_text("1;")
    text = report(recording)
    reader = Scripts()
    reader.feed(text)
    data, worker, app = reader.found
    assert data[0] == {"type": "application/json", "id": "aotscope-recording"}
    assert Recording.model_validate_json(data[1]) == recording
    assert worker == ({"type": "text/plain", "id": "aotscope-layout-worker"}, "1;")
    assert app == ({"type": "module"}, "const a = '<\\/script>';")
    # Its own script runs, and no other.
    digest = base64.b64encode(hashlib.sha256(app[1].encode()).digest()).decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert f"script-src 'sha256-{digest}' blob:;" in policy[1]
    # Nothing is fetched from anywhere.
    assert not re.search(r'(src|href)="(?!data:)', text)


def test_recording_in_and_out_of_the_store(recording: Recording, tmp_path: Path) -> None:
    runs, artifacts = Runs(f"sqlite:///{tmp_path / 'a.sqlite3'}"), Artifacts(tmp_path / "artifacts")
    folder = tmp_path / "recorded"
    folder.mkdir()
    file = folder / "two_layers.json.gz"
    file.write_bytes(gzip.compress(recording.model_dump_json().encode()))
    assert import_recordings(runs, artifacts, folder) == ["example-two-layers"]
    assert import_recordings(runs, artifacts, folder) == []
    row = runs.get("example-two-layers")
    assert row is not None
    again = record(runs, artifacts, row)
    assert again.artifacts == recording.artifacts
    assert document(again)["stages"][0]["name"] == "source"
    assert again.events == [event | {"run": "example-two-layers"} for event in recording.events]
    newer = recording.model_copy(update={"run": recording.run.model_copy(update={"created": 2.5})})
    file.write_bytes(gzip.compress(newer.model_dump_json().encode()))
    assert import_recordings(runs, artifacts, folder) == ["example-two-layers"]
    runs.close()


def test_payloads_survive_decoding_and_encoding() -> None:
    payload = ExecutionPayload(
        comparisons=[
            Comparison(name="λ\u2028\n", kind="output", max_abs=value)
            for value in (1e-5, 1.0, 1e22, 5e-324, 0.1, float("inf"), 123456789012345680.0)
        ],
        compared=True,
    )
    data = payload.model_dump_json().encode()
    digest = hashlib.sha256(data).hexdigest()
    assert encode_payload(json.loads(data), digest) == data
    with pytest.raises(ValueError, match="not the payload"):
        encode_payload(json.loads(data) | {"compared": False}, digest)
    assert to_json({"a": [1, 2]}) == b'{"a":[1,2]}'


def test_examples_are_complete() -> None:
    assert len(examples()) >= 8
    for example in examples():
        assert example.title
        assert example.description
        assert example.zh
        assert re.search("[\u4e00-\u9fff]", example.zh.title)
        assert re.search("[\u4e00-\u9fff]", example.zh.description)
        compile(example.source, example.name, "exec")
    told = json.loads((FOLDER / "zh.json").read_text(encoding="utf-8"))
    assert set(told) == {example.name for example in examples()}
    assert parse("x", '"""Title\n\nMore\nwords.\n"""\n\nmodel = 1\n') == Example(
        name="x", title="Title", description="More words.", source="model = 1\n"
    )
    question = parse("x", '"""Why?\n\nSo.\n\n#stage=dynamo&line=3\n"""\nmodel = 1\n', "questions")
    assert question == Example(
        name="x", group="questions", title="Why?", description="So.", source="model = 1\n", place="#stage=dynamo&line=3"
    )
    with pytest.raises(ValueError, match="no docstring"):
        parse("x", "model = 1\n")
