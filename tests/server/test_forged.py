"""A child that forges what it says: each malformed frame ends its run with a stated cause, and none of it is kept."""

# One forgery a line.
# ruff: noqa: E501

from __future__ import annotations

import hashlib
import json

import pytest

from compiler.events import ArtifactFrame, ArtifactRef, EventFrame, Options
from server.examples import FOLDER, read_recording
from server.recording import encode_payload
from server.sandbox.claims import check_frame
from server.sandbox.frames import FrameLimits, FrameReader
from tests.server.conftest import Explore, Kept

# What a forger has at hand: frames as it likes them, and an artifact that is what it says.
TOOLS = """
import hashlib, json, struct, time
from pydantic_core import to_json
def raw(text, more=b""):
    text = text if isinstance(text, bytes) else text.encode()
    send(struct.pack(">I", len(text)) + text + more)
def event(body, **more):
    raw(json.dumps({"frame": "event", "clock": time.monotonic(), "body": body} | more))
def made(payload, kind, format=None, **change):
    payload = payload if isinstance(payload, bytes) else to_json(payload)
    digest = hashlib.sha256(payload).hexdigest()
    ref = {"hash": digest, "kind": kind, "format": format or kind + "/1", "bytes": len(payload)}
    raw(json.dumps({"frame": "artifact", "ref": ref | change}), payload)
    return ref
CODE = {"format": "code/1", "id": "0_0/codegen/inference", "language": "python", "text": "x"}
def named(ref, **more):
    event({"type": "artifact", "name": "wrapper", "artifact": ref} | more, stage="codegen", compile="0/0")
COLUMNS = ("name op target args phase module module_type call line stack seq_nr twin grad_fn roles value bytes").split()
def graph(nodes=1, **more):
    columns = {name: [0] * nodes for name in COLUMNS} | {"value": [-1] * nodes, "stack": [-1] * nodes}
    whole = {"format": "graph/1", "id": "a/b/c", "strings": ["", "x"], "values": [], "stacks": [], "nodes": columns,
             "edges": {"source": [], "target": []}}
    return whole | more
def breaks(url):
    return {"format": "breaks/1", "breaks": [{"id": "break/1", "kind": "break", "url": url}]}
DONE = '{"frame": "done", "outcome": {"type": "finished"}}'
"""

MALFORMED = "server.malformed_frame"
FORGERIES = {
    "no JSON": ("raw('{')", MALFORMED),
    "an empty frame": ("raw('')", MALFORMED),
    "bytes that are no text": ("raw(b'\\xff\\xfe\\x00')", MALFORMED),
    "another value than an object": ("raw('[1]')", MALFORMED),
    "an unknown frame": ("raw('{\"frame\": \"exec\"}')", MALFORMED),
    "an unknown event": ("event({'type': 'eval', 'code': '1'})", MALFORMED),
    "an unknown field": ("event({'type': 'stage_started', 'href': 'javascript:1'})", MALFORMED),
    "a huge length": ("send(b'\\xff\\xff\\xff\\xff' + b'x' * 100)", "server.event_too_large"),
    "a length one too large": ("send(struct.pack('>I', 4_194_305))", "server.event_too_large"),
    "another run's id": ("event({'type': 'stage_started'}, run='r2')", MALFORMED),
    "a number of its own": ("event({'type': 'stage_started'}, seq=1)", MALFORMED),
    "a time of its own": ("event({'type': 'stage_started'}, t=1)", MALFORMED),
    "a stage that does not exist": ("event({'type': 'stage_started'}, stage='root')", MALFORMED),
    "a clock that is no number": ("raw('{\"frame\":\"event\",\"clock\":NaN,\"body\":{\"type\":\"stage_started\"}}')", MALFORMED),
    "a clock without end": ("raw('{\"frame\":\"event\",\"clock\":1e999,\"body\":{\"type\":\"stage_started\"}}')", MALFORMED),
    "a clock as text": ("event({'type': 'stage_started'}, clock='1')", MALFORMED),
    "a number that is none": ("raw('{\"frame\":\"event\",\"clock\":1,\"body\":{\"type\":\"stage_finished\",\"seconds\":NaN}}')", MALFORMED),
    "a number of 200 digits": ("event({'type': 'finding', 'severity': 'note', 'message': {'key': 'server.fault'}, 'line': 10**200})", MALFORMED),
    "a number of 65 bits": ("event({'type': 'summary', 'summary': {'x': 2**65}})", MALFORMED),
    "half a character": ("raw('{\"frame\":\"event\",\"clock\":1,\"body\":{\"type\":\"printed\",\"stream\":\"stdout\",\"text\":\"\\\\ud800\"}}')", MALFORMED),
    "endless nesting": ("raw('{\"frame\":' + '[' * 1_000_000)", MALFORMED),
    "nesting that ends": ("raw('{\"frame\":' + '[' * 5000 + ']' * 5000 + '}')", MALFORMED),
    "a million wrong values": ("raw(json.dumps({'frame': 'event', 'clock': 1, 'body': {'type': 'summary', 'summary': {'x': [[]] * 800_000}}}))", MALFORMED),
    "a line as text": ("event({'type': 'finding', 'severity': 'note', 'message': {'key': 'server.fault'}, 'line': '3'})", MALFORMED),
    "a sentence that does not exist": ("event({'type': 'stage_skipped', 'reason': {'key': 'no.such'}}, stage='joint')", MALFORMED),
    "a hint that does not exist": ("event({'type': 'finding', 'severity': 'note', 'message': {'key': 'server.fault'}, 'hint': {'key': '__class__'}})", MALFORMED),
    "a sentence of many parts": ("event({'type': 'stage_skipped', 'reason': {'key': 'server.fault', 'params': {str(i): 1 for i in range(65)}}})", MALFORMED),
    "an end with a sentence that does not exist": ("raw(json.dumps({'frame': 'done', 'outcome': {'type': 'failed', 'cause': {'key': 'x'}}}))", MALFORMED),
    "an end that is not its own": ("raw(json.dumps({'frame': 'done', 'outcome': {'type': 'lost', 'cause': {'key': 'server.fault'}}}))", MALFORMED),
    "finished as an event": ("event({'type': 'finished'})", "server.event_not_allowed"),
    "failed as an event": ("event({'type': 'failed', 'cause': {'key': 'server.fault'}})", "server.event_not_allowed"),
    "lost as an event": ("event({'type': 'lost', 'cause': {'key': 'server.fault'}})", "server.event_not_allowed"),
    "cancelled as an event": ("event({'type': 'cancelled'})", "server.event_not_allowed"),
    "timed out as an event": ("event({'type': 'timed_out', 'limit_seconds': 1.0})", "server.event_not_allowed"),
    "another beginning": ("engine = dict(aotscope='9', torch='9', python='9', platform='', cpu='', threads=1)\n"
                          "event({'type': 'run_started', 'request': {'source': 'other'}, 'engine': engine})", "server.event_not_allowed"),
    "two ends": ("raw(DONE); raw(DONE)", "server.frame_after_done"),
    "talk after the end": ("raw(DONE); event({'type': 'stage_started'}, stage='joint')", "server.frame_after_done"),
    "a path for a compile": ("event({'type': 'stage_started'}, stage='joint', compile='../../etc')", MALFORMED),
    "markup for a compile": ("event({'type': 'stage_started'}, stage='joint', compile='<img src=x>')", MALFORMED),
    "a compile with a way up": ("event({'type': 'stage_started'}, stage='joint', compile='0/..')", MALFORMED),
    "a long compile": ("event({'type': 'stage_started'}, stage='joint', compile='0' * 10)", MALFORMED),
    "a path for a name": ("named(made(CODE, 'code'), name='../../etc/passwd')", MALFORMED),
    "an address for a name": ("named(made(CODE, 'code'), name='//evil.example/x')", MALFORMED),
    "an escape for a name": ("named(made(CODE, 'code'), name='\\x1b]0;owned\\x07')", MALFORMED),
    "an empty name": ("named(made(CODE, 'code'), name='')", MALFORMED),
    "a long name": ("named(made(CODE, 'code'), name='x' * 121)", MALFORMED),
    "a path for a graph": ("named(made(CODE, 'code'), graph='a/b')", MALFORMED),
    "markup for a fact": ("event({'type': 'stage_finished', 'facts': {'<b>': 1}}, stage='joint')", MALFORMED),
    "control characters for a figure": ("event({'type': 'summary', 'summary': {'a\\nb': 1}})", MALFORMED),
    "a hash that is a path": ("named({'hash': '../' * 21 + 'x', 'kind': 'code', 'format': 'code/1', 'bytes': 1})", MALFORMED),
    "a hash of another run": ("named({'hash': 'a' * 64, 'kind': 'code', 'format': 'code/1', 'bytes': 1})", "server.artifact_unknown"),
    "another kind than was sent": ("named(made(CODE, 'code') | {'kind': 'graph', 'format': 'graph/1'})", "server.artifact_unknown"),
    "another size than was sent": ("ref = made(CODE, 'code')\nnamed(ref | {'bytes': ref['bytes'] + 1})", "server.artifact_unknown"),
    "another hash": ("made(CODE, 'code', hash='0' * 64)", "server.artifact_hash"),
    "a size that is too small": ("made(CODE, 'code', bytes=5)", "server.artifact_hash"),
    "a negative size": ("made(CODE, 'code', bytes=-1)", MALFORMED),
    "a huge size": ("made(CODE, 'code', bytes=1 << 40)", "server.artifact_too_large"),
    "an unknown kind": ("made(CODE, 'pickle')", "server.artifact_kind"),
    "another format": ("made(CODE, 'code', format='code/2')", "server.artifact_kind"),
    "another payload than its kind": ("made(CODE, 'graph')", "server.artifact_invalid"),
    "a payload with more fields": ("made(CODE | {'onload': '1'}, 'code')", "server.artifact_invalid"),
    "a payload with a number as text": ("made(CODE | {'text': 1}, 'code')", "server.artifact_invalid"),
    "a payload that no browser reads": ("made(to_json(graph()).replace(b'[-1]', b'[NaN]'), 'graph')", "server.artifact_invalid"),
    "a payload of nothing but nesting": ("made(b'[' * 1_000_000, 'code')", "server.artifact_invalid"),
    "a payload of too many values": ("made(b'[' + b'1,' * 6_000_000 + b'1]', 'code')", "server.artifact_values"),
    "a payload of a million wrong values": ("made(graph(strings=[1] * 1_000_000), 'graph')", "server.artifact_invalid"),
    "columns of different lengths": ("whole = graph()\nwhole['nodes']['op'] = []\nmade(whole, 'graph')", "server.artifact_invalid"),
    "a string that leads nowhere": ("whole = graph()\nwhole['nodes']['op'] = [2]\nmade(whole, 'graph')", "server.artifact_invalid"),
    "a value before the first": ("whole = graph()\nwhole['nodes']['value'] = [-2]\nmade(whole, 'graph')", "server.artifact_invalid"),
    "an edge that leads nowhere": ("made(graph(edges={'source': [0], 'target': [1]}), 'graph')", "server.artifact_invalid"),
    "half an edge": ("made(graph(edges={'source': [0], 'target': []}), 'graph')", "server.artifact_invalid"),
    "a link that runs": ("made(breaks('javascript:alert(1)'), 'breaks')", "server.artifact_invalid"),
    "a link elsewhere": ("made(breaks('https://evil.example/'), 'breaks')", "server.artifact_invalid"),
    "a link that looks like PyTorch's": ("made(breaks('https://pytorch.org.evil.example/'), 'breaks')", "server.artifact_invalid"),
    "a link with a control character": ("made(breaks('https://pytorch.org/\\x1b'), 'breaks')", "server.artifact_invalid"),
    "too many artifacts": ("for i in range(60): made(CODE | {'text': str(i)}, 'code')", "server.too_many_artifacts"),
    "a million events": ("for i in range(1_000_000): event({'type': 'stage_started'}, stage='joint')", "server.too_many_events"),
    "events that are large together": ("for i in range(9): event({'type': 'stage_failed', 'cause': {'key': 'server.fault'}, 'error': 'x' * 3_000_000}, stage='joint')",
                                       "server.events_too_large"),
    "too many compiles": ("for i in range(2100): event({'type': 'stage_started'}, stage='joint', compile=f'{i}/0')", "server.too_many_compiles"),
    "half a frame": ("send(b'\\x00\\x00\\x10\\x00{')\nimport os; os._exit(0)", "server.exited"),
    "half an artifact": ("raw(json.dumps({'frame': 'artifact', 'ref': {'hash': '0' * 64, 'kind': 'code', 'format': 'code/1', 'bytes': 999}}), b'{')\n"
                         "import os; os._exit(0)", "server.exited"),
}  # fmt: skip
# What was in order before the forger went wrong.
KEPT = {"another kind than was sent", "another size than was sent", "too many artifacts"} | {
    name
    for name in FORGERIES
    if name.endswith(("for a name", "for a graph")) or name in ("an empty name", "a long name")
}


def outcome(kept: Kept) -> tuple[str, str]:
    last = kept.flat()[-1]
    return last["type"], last["cause"]["key"]


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_ends_its_run_and_says_why(explore: Explore, name: str) -> None:
    source, key = FORGERIES[name]
    events = 5000 if key == "server.too_many_compiles" else 500
    kept = explore(TOOLS + source, events=events, events_bytes=16 << 20, artifacts=50)
    assert outcome(kept) == ("failed", key)
    assert (kept.payloads != {}) == (name in KEPT)
    for event in kept.flat():
        json.loads(json.dumps(event, allow_nan=False))
        assert event["run"] == "r1"


def test_what_honest_children_say_is_let_through(explore: Explore) -> None:
    source = """
ref = made(graph(), "graph")
named(ref, name="dynamo", graph="inference")
named(ref)
made(breaks("https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0170.html"), "breaks")
event({"type": "stage_skipped", "reason": {"key": "server.fault"}}, stage="joint", compile="!1/0/0_2")
event({"type": "stage_started"}, stage="joint", compile="0/0.2")
event({"type": "stage_finished", "seconds": 1, "facts": {"peak_dry_run": 2**62, "ratio": None}}, stage="joint")
event({"type": "printed", "stream": "stdout", "text": "\\x1b[31mλ\\u2028"})
"""
    kept = explore(TOOLS + source)
    assert kept.types()[-1] == "finished"
    assert len(kept.payloads) == 2
    assert [event["name"] for event in kept.flat() if event["type"] == "artifact"] == ["dynamo", "wrapper"]


def test_a_clock_of_its_own_moves_no_time(explore: Explore) -> None:
    source = "for clock in (-1e300, 1e300, 0.0): event({'type': 'stage_started'}, stage='joint', clock=clock)"
    times = [event["t"] for event in explore(TOOLS + source).flat()]
    assert times == sorted(times)
    assert times[-1] < 60


def test_a_large_finding_for_the_native_phase_does_not_reach_other_runs(explore: Explore) -> None:
    """It travels through the fork server, whose requests it must not get out of step."""
    source = """
if phase == "capture":
    saved = {"partition_bytes": 7}
    digests = ["\U0001f40d" * 64] * 500
    raw(json.dumps({"frame": "done", "outcome": {"type": "finished"}, "captured": {"digests": digests, "saved": saved}})
        + " " * 1_000_000)
    import os; os._exit(0)
print(len(captured.digests))
"""
    kept = explore(TOOLS + source, Options())
    assert [event["text"] for event in kept.flat() if event["type"] == "printed"] == ["500\n"]
    for _ in range(3):
        assert explore("stage('source')").types()[-1] == "finished"


def test_every_recording_of_the_gallery_would_be_let_through() -> None:
    """The checks refuse forgeries, and nothing that the product itself has said."""
    files = sorted((FOLDER / "recorded").glob("*.json.gz"))
    frames = 0
    for file in files:
        recording = read_recording(file)
        reader = FrameReader(FrameLimits(1 << 22, 1 << 28, 1 << 30, 1000))
        for digest, payload in recording.artifacts.items():
            data = encode_payload(payload, digest)
            assert hashlib.sha256(data).hexdigest() == digest
            kind = str(payload["format"]).split("/")[0]
            ref = ArtifactRef(hash=digest, kind=kind, format=payload["format"], bytes=len(data))
            text = ArtifactFrame(ref=ref).model_dump_json().encode()
            assert [data for _frame, data in reader.feed(len(text).to_bytes(4, "big") + text + data)] == [data]
        for event in recording.parsed():
            check_frame(EventFrame(clock=1.0, compile=event.compile, stage=event.stage, body=event.body))
            frames += 1
    assert frames > 0 or not files
