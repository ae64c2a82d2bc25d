"""The page of a run without scripts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest

from compiler.events import StageName
from compiler.ir.dynamo import is_link
from compiler.recording import Recording
from compiler.text import catalogue
from server.document import document
from server.examples import FOLDER, read_recording
from server.plain import TEMPLATES, plain
from server.plain.chart import chart
from server.plain.figures import bytes_text, fact_text, seconds_text, shape_text, small_text, tally_text
from server.plain.model import page_of
from server.plain.words import STAGES
from tests.server.asgi import Client, serving

EXAMPLES = sorted(file.name.removesuffix(".json.gz") for file in (FOLDER / "recorded").glob("*.json.gz"))
NASTY = "</pre><script>alert(1)</script><img src=x onerror=alert(2)> & \" ' \\ λ 中文"
VOID = {"meta", "link", "img", "br", "path", "line", "circle", "rect"}


class Page(HTMLParser):
    """Elements with their attributes, ids, text by element; refuses what is not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    @property
    def words(self) -> str:
        return "".join(self.text)

    def values(self, name: str) -> list[str]:
        return [value for _tag, attrs in self.elements if (value := attrs.get(name))]

    def check(self) -> None:
        """No script, no style that a policy may forbid, no id twice, no link within the page that leads nowhere."""
        tags = {tag for tag, _attrs in self.elements}
        assert tags.isdisjoint({"script", "style", "iframe", "object", "form"})
        for tag, attrs in self.elements:
            assert not [name for name in attrs if name.startswith("on") or name == "style"], (tag, attrs)
        assert [one for one, count in Counter(self.values("id")).items() if count > 1] == []
        targets = {link[1:] for link in self.values("href") if link.startswith("#")}
        assert targets - set(self.values("id")) == set()
        assert all(re.match(r"#|/|\?lang=|data:,$", link) or is_link(link) for link in self.values("href"))


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with serving(tmp_path_factory.mktemp("plain")) as one:
        yield one


def recording(name: str = "two_layer_net", **run: Any) -> Recording:
    one = read_recording(FOLDER / "recorded" / f"{name}.json.gz")
    return one.model_copy(update={"run": one.run.model_copy(update=run)})


def ended(one: Recording, after: int, *events: dict[str, Any]) -> Recording:
    """The first events of a recording, and others after them."""
    kept = one.events[:after]
    added = [
        {"v": 1, "run": one.run.id, "seq": after + i, "t": kept[-1]["t"] + i, **event}
        for i, event in enumerate(events, 1)
    ]
    return one.model_copy(update={"events": [*kept, *added]})


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_has_its_page(client: Client, name: str, language: str) -> None:
    run = f"example-{name.replace('_', '-')}"
    answer = client.get(f"/r/{run}/plain?lang={language}")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert answer.headers["content-language"] == language
    page = Page(answer.text)
    page.check()
    ids = set(page.values("id"))
    recorded = recording(name)
    compiles = {event["compile"] for event in recorded.events if "compile" in event}
    assert compiles
    inner = [stage for stage in StageName if stage.value not in ("source", "memory", "execute", "cache")]
    wanted = {f"c{one.replace('/', '_')}-{stage.value}" for one in compiles for stage in inner}
    assert wanted | {"source", "memory", "execute", "cache"} <= ids
    words = catalogue(language)
    assert all(words[STAGES[stage]] in page.words for stage in StageName)
    source = recorded.run.request.source.rstrip("\n").split("\n")
    assert {f"L{i}" for i in range(1, len(source) + 1)} <= ids
    # Each graph that an event names, but for those between two passes, is shown.
    shown = {re.split(r"[/?]", link)[6] for link in page.values("src")}
    graphs = {
        (event["compile"], event["stage"], event["graph"]): event["artifact"]["hash"]
        for event in recorded.events
        if event["type"] == "artifact" and event["artifact"]["kind"] == "graph" and event["name"] != "step"
    }
    assert set(graphs.values()) == shown


def test_its_pictures_are_there(client: Client) -> None:
    page = Page(client.get("/r/example-dropout/plain").text)
    pictures = page.values("src")
    assert len(pictures) >= 7
    for link in pictures:
        answer = client.get(link)
        assert (answer.status_code, answer.headers["content-type"]) == (200, "image/svg+xml; charset=utf-8"), link
    dots = [link for link in page.values("href") if "/graph.dot" in link]
    assert len(dots) == len(pictures)
    assert {client.get(link).status_code for link in dots} == {200}


def test_language_and_stylesheet(client: Client) -> None:
    chinese = client.get("/r/example-dropout/plain", {"accept-language": "zh-CN,zh;q=0.9,en;q=0.8"})
    assert '<html lang="zh-CN">' in chinese.text
    assert chinese.headers["vary"] == "accept-language"
    assert '<html lang="en">' in client.get("/r/example-dropout/plain?lang=en", {"accept-language": "zh"}).text
    assert client.get("/r/example-dropout/plain?lang=fr").status_code == 422
    css = client.get("/plain.css")
    assert (css.status_code, css.headers["content-type"]) == (200, "text/css; charset=utf-8")
    assert "url(" not in css.text
    missing = client.get("/r/%3Cscript%3E/plain?lang=en")
    assert missing.status_code == 404
    assert "There is no run with the id &lt;script&gt;." in missing.text
    assert '<a href="/r/example-dropout/plain">' in client.get("/r/example-dropout").text


def test_lines_with_what_they_cost() -> None:
    text = plain(recording("graph_breaks"), "finished", "en")
    row = re.search(r'<tr id="L14" class="trouble">(.*?)</tr>', text)
    assert row is not None
    assert '<span class="bad">graph break</span>' in row[1]
    page = page_of(document(recording("dynamic_shapes")), over=True)
    said = {line.number: [(look, note.params.get("bytes")) for look, note in line.notes] for line in page.lines}
    assert {number: notes for number, notes in said.items() if notes} == {
        12: [("save", "960 B"), ("dim", "1.22 KiB")],
        13: [("dim", "732 B")],
    }


def test_facts_of_each_graph() -> None:
    page = page_of(document(recording("resnet_block")), over=True)
    (schedule,) = [stage for stage in page.stages() if stage.name is StageName.SCHEDULE]
    assert schedule.by_graph == {"forward": {"nodes": 28}, "backward": {"nodes": 16}}


def test_hostile_text_is_escaped_everywhere() -> None:
    whole = recording("graph_breaks")
    strings: set[str] = set()

    def poison(value: Any, key: str = "") -> Any:
        """Every text of torch's and the user's replaced."""
        if isinstance(value, dict):
            return {name: poison(one, name) for name, one in value.items()}
        if isinstance(value, list):
            return [poison(one, key) for one in value]
        fixed = {
            *(
                "type",
                "stage",
                "compile",
                "phase",
                "stream",
                "key",
                "kind",
                "format",
                "hash",
                "verdict",
                "series",
                "what",
                "outcome",
            ),
            *(
                "severity",
                "status",
                "form",
                "mode",
                "dtype",
                "language",
                "expr",
                "run",
                "until",
                "target",
                "url",
                "artifact",
            ),
        }
        if isinstance(value, str) and value and key not in fixed:
            strings.add(key)
            return NASTY
        return value

    events = [
        poison(event) | ({"graph": event["graph"], "name": event["name"]} if event["type"] == "artifact" else {})
        for event in whole.events
    ]
    request = whole.run.request.model_copy(update={"source": NASTY + "\n" + NASTY})
    nasty = Recording(
        run=whole.run.model_copy(update={"request": request}),
        events=[
            event | ({"request": request.model_dump(mode="json")} if "request" in event else {}) for event in events
        ],
        artifacts={digest: poison(payload) for digest, payload in whole.artifacts.items()},
    )
    assert {"strings", "text", "reason", "hints", "name", "node", "model_text", "function", "tree", "ops"} <= strings
    for language in ("en", "zh"):
        text = plain(nasty, "finished", language)
        page = Page(text)
        # Lines of the poisoned payloads lie beyond the two of the source.
        assert {tag for tag, _attrs in page.elements}.isdisjoint({"script", "iframe"})
        assert all((src or "").startswith("/api/v1/runs/") for src in page.values("src"))
        assert not [name for _tag, attrs in page.elements for name in attrs if name.startswith("on")]
        assert text.count("&lt;/pre&gt;&lt;script&gt;") > 100
        assert "<script" not in text
        assert page.words.count(NASTY) > 100


OUTCOMES = {
    "running": ({}, "The run goes on. This page shows what there is so far; reload it for more."),
    "queued": ({}, "The run waits for a worker. Reload this page in a moment."),
    "cancelled": ({"type": "cancelled"}, "Cancelled. What it had shown is kept."),
    "timed_out": ({"type": "timed_out", "limit_seconds": 120.0, "stage": "joint"}, "Ended at the limit of 120 s."),
    "lost": (
        {"type": "lost", "cause": {"key": "server.worker_died", "params": {}}},
        "The worker died, and this run with it.",
    ),
    "failed": (
        {
            "type": "failed",
            "cause": {"key": "run.raised", "params": {"error": "ValueError"}},
            "error": "ValueError: <no>",
            "line": 3,
            "traceback": "snippet.py:3",
        },
        "The snippet could not be run.",
    ),
}


@pytest.mark.parametrize("state", OUTCOMES)
@pytest.mark.parametrize("after", [2, 3, 8, 17, 40])
def test_a_run_that_is_not_finished(state: str, after: int) -> None:
    event, sentence = OUTCOMES[state]
    one = ended(recording(), after, *([event] if event else []))
    if state == "queued":
        one = one.model_copy(update={"events": []})
    page = Page(plain(one, state, "en"))
    page.check()
    assert sentence in page.words
    over = state not in ("running", "queued")
    begun = any(event["type"] == "compile_started" for event in one.events)
    assert ("Nothing was compiled." in page.words) == (over and not begun)
    assert ("This stage has not begun." in page.words) == (not over)
    assert ("The run did not come to this stage." in page.words) == over
    if state == "failed":
        assert "ValueError: <no>\nsnippet.py:3" in page.words
        assert "#L3" in page.values("href")
    if state == "running" and after == 3:
        assert "This stage is going on." in page.words


def test_a_stage_that_failed_and_output_that_was_cut() -> None:
    one = ended(
        recording(),
        8,
        {
            "type": "stage_failed",
            "stage": "joint",
            "compile": "0/0",
            "cause": {"key": "stage.internal", "params": {"stage": "joint"}},
            "error": "RuntimeError: <x>",
            "line": 12,
            "traceback": "at line 12",
        },
        {"type": "printed", "stream": "stdout", "text": "hello & goodbye\n"},
        {"type": "output_cut", "limit_bytes": 2048},
        {"type": "finding", "severity": "error", "message": {"key": "no.such_key", "params": {}}, "line": 12},
        {"type": "finished", "error": None},
    )
    page = Page(plain(one, "finished", "en"))
    page.check()
    assert "RuntimeError: <x>\nat line 12" in page.words
    assert "hello & goodbye" in page.words
    assert "Cut here: 2 KiB of output are kept." in page.words
    assert "no.such_key" in page.words
    assert "✕ joint failed" in re.sub(r"\s+", " ", page.words)


def test_templates_give_every_parameter() -> None:
    """`t("key", name=…)` in the templates names a sentence, with the parameters that it takes."""
    words = catalogue("en")
    called = 0
    for file in TEMPLATES.glob("plain*.html"):
        for key, rest in re.findall(
            r"""\bt\(["'](plain\.\w+)["']((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)""", file.read_text()
        ):
            given = set(re.findall(r"[,\s(](\w+)=(?!=)", re.sub(r"\([^()]*\)", "", rest)))
            assert given == set(re.findall(r"\{(\w+)\}", words[key])), key
            called += 1
    assert called > 100


def test_chart() -> None:
    text = chart([0, 1024, 512, 2048, 0], 3, 3, 2048, "en")
    page = Page(text)
    assert page.text == [
        *("0 B", "1 KiB", "2 KiB", "forward", "backward", "peak 2 KiB", "live bytes by program point"),
    ]
    paths = [attrs for tag, attrs in page.elements if tag == "path"]
    assert paths == [
        {"class": "area fw", "d": "M62.0 132V132.0H220.0V75.0H378.0V103.5H536.0V132Z"},
        {"class": "area bw", "d": "M536.0 132V18.0H694.0V132.0H852.0V132Z"},
    ]
    long = chart(list(range(50_000)), None, 49_999, 49_999, "zh")
    assert len(long) < 40_000
    assert "18.0H852.0V132Z" in long
    assert "peak" not in re.sub(r"class=\"[^\"]*\"", "", chart([], None, 0, 0, "en"))


def test_figures() -> None:
    assert [bytes_text(count) for count in (None, 0, 1023, 1024, 1536, 33_000, 10**6, 2**40)] == [
        *("", "0 B", "1023 B", "1 KiB", "1.5 KiB", "32.2 KiB", "977 KiB", "1 TiB"),
    ]
    assert [seconds_text(value) for value in (None, 250.0, 2.5, 0.25, 0.0123, 0.00001)] == [
        *("", "250 s", "2.5 s", "250 ms", "12.3 ms", "10 µs"),
    ]
    assert [small_text(value) for value in (None, 0.0, 5.96e-8)] == ["–", "0", "6.0e-08"]
    assert tally_text(["a", "b", "a"]) == "a ×2, b"
    assert shape_text("float32", [2, {"expr": "s0", "hint": 4}]) == "float32[2, s0]"
    assert [
        fact_text(*fact) for fact in (("nodes", 3), ("saved_bytes", 2048), ("cold_seconds", 1.5), ("on", True))
    ] == [
        *("nodes 3", "saved_bytes 2 KiB", "cold_seconds 1.5 s", "on True"),
    ]
