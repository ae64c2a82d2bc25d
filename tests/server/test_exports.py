"""Exports that other tools read. What they read is tested with them: `tests/compiler/test_exports.py` has torch."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from compiler.ir.encode import decode
from compiler.ir.graph import Graph, GraphPayload, Node, SymbolicSize, TensorValue
from server.document import document
from server.examples import FOLDER, read_recording
from server.exports import payloads, safe_name
from server.exports.issue import fenced, inline, issue
from server.exports.script import CannotRunError, script
from server.exports.trace import trace
from tests.server.asgi import Client, serving

VALUE = TensorValue(shape=(2, 3), dtype="float32", device="cpu", stride=(3, 1), bytes=24)
RECORDED = sorted((FOLDER / "recorded").glob("*.json.gz"))


def whole(name: str) -> dict[str, Any]:
    return document(read_recording(FOLDER / "recorded" / f"{name}.json.gz"))


def graph(**fields: Any) -> Graph:
    """One input and one call, which `fields` change."""
    call: dict[str, Any] = {
        "name": "y",
        "op": "call_function",
        "target": "aten.sin.default",
        "args": "x",
        "inputs": ("x",),
    }
    return Graph("0_0/joint/joint", (Node("x", "placeholder", "x", "", (), value=VALUE), Node(**(call | fields))))


# --- the trace


def test_the_trace_has_stages_passes_kernels_and_memory_at_their_times() -> None:
    run = whole("two_layer_net")
    events = trace(run)["traceEvents"]
    json.dumps(events, allow_nan=False)
    stages = [event for event in events if event["ph"] == "X" and event["pid"] == 1 and "placed" not in event["args"]]
    finished = [
        event
        for stages_ in (run["stages"], run["compiles"][0]["stages"])
        for stage in stages_
        for event in stage["events"]
        if event["type"] == "stage_finished"
    ]
    assert len(stages) == len(finished)
    assert {round(event["ts"] + event["dur"]) for event in stages} <= {round(event["t"] * 1e6) for event in finished}
    passes = [event for event in events if event["ph"] == "X" and event["pid"] == 1 and "placed" in event["args"]]
    steps = [
        step for _c, _m, payload in payloads(run, "passes") for step in payload["steps"] if step["seconds"] is not None
    ]
    assert sorted(event["name"] for event in passes) == sorted(step["name"] for step in steps)
    (execution,) = (payload for _c, _m, payload in payloads(run, "execution"))
    kernels = [event for event in events if event["ph"] == "X" and event["pid"] == 2]
    assert sum(event["dur"] for event in kernels) == pytest.approx(
        1e6 * sum(one["seconds"] for one in execution["kernels"]), rel=1e-3
    )
    live = [event["args"]["bytes"] for event in events if event["ph"] == "C" and event["name"] == "dry_run"]
    (dry,) = (payload for _c, made, payload in payloads(run, "timeline") if made["name"] == "dry_run")
    assert max(live) == dry["peak_bytes"]


# --- the text of an issue


def test_an_issue_has_what_upstream_asks_for() -> None:
    text = issue(whole("graph_breaks"))
    for part in (
        "### Snippet",
        "class Gate(nn.Module):",
        "### Graph breaks",
        "`GB0124`",
        "leaves",
        "- torch: `2.13.0+cpu`",
    ):
        assert part in text


def test_nothing_of_a_snippet_is_markup() -> None:
    run = whole("graph_breaks")
    run["run"]["request"]["source"] = "'''\n```\n<img src=x onerror=alert(1)>\n@torch #1\n```\n'''"
    _compile, _made, table = next(payloads(run, "breaks"))
    table["breaks"][0]["reason"] = "a `b` ``c`` | <b>\n# title"
    lines = issue(run).splitlines()
    assert [line for line in lines if line.startswith("````")] == ["````python", "````"]
    assert "``` a `b` ``c`` \\| <b> # title ```" in "\n".join(lines)


def test_code_in_text_is_never_ended_from_inside() -> None:
    assert fenced("a\n`````\nb") == "``````\na\n`````\nb\n``````"
    assert inline("`") == "`` ` ``"


# --- scripts


def test_a_script_is_made_for_every_graph_that_is_recorded_whole() -> None:
    made = {}
    refused = []
    for file in RECORDED:
        for _compile, artifact, payload in payloads(document(read_recording(file)), "graph"):
            if artifact["name"] == "step":
                continue
            try:
                text = script(decode(GraphPayload.model_validate(payload)), "2", "0")
            except CannotRunError as fault:
                refused.append(fault.cause.key)
            else:
                made[file.name, payload["id"]] = ast.parse(text)
    assert len(made) > 10 * len(refused)
    assert set(refused) <= {
        "server.export_argument",
        "server.export_input",
        "server.export_subgraph",
        "server.export_target",
    }


@pytest.mark.parametrize(
    "fields",
    [
        {"args": "x)\nimport os\nos.system('true'"},
        {"args": "__import__('os')"},
        {"args": "x, torch.os.system('true')"},
        {"args": "[x for x in ()]"},
        {"args": "lambda: x"},
        {"args": "*x"},
        {"args": "**x"},
        {"args": "device(exec)"},
        {"args": "unknown"},
        {"args": "x, …"},
        {"args": "<Thing>"},
        {"args": "(" * 500},
        {"args": "x\x00"},
        {"target": "aten.sin.default(x)\nimport os"},
        {"target": "os.system;"},
        {"target": "torch.sin.<locals>.f"},
        {"target": "checkpoint"},
        {"op": "call_method", "target": "sin(), exec"},
        {"name": "import"},
        {"name": "a = 1\nb"},
        {"op": "get_attr", "args": ""},
    ],
)
def test_nothing_but_a_graph_gets_into_a_script(fields: dict[str, Any]) -> None:
    with pytest.raises(CannotRunError):
        script(graph(**fields), "2", "0")


def test_comments_and_titles_stay_what_they_are() -> None:
    text = script(Graph('"""\nimport os\n', graph().nodes), '"""\nimport os', "\\")
    tree = ast.parse(text)
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    assert imported == {"math", "operator", "torch"}


def test_a_symbolic_size_is_taken_by_its_hint_and_an_unknown_one_refused() -> None:
    sized = VALUE.model_copy(update={"shape": (SymbolicSize(expr="s0", hint=5), 3)})
    nodes = graph().nodes
    known = Graph("a/b/c", (Node("x", "placeholder", "x", "", (), value=sized), nodes[1]))
    assert "tensor([5, 3], [3, 1]" in script(known, "2", "0")
    open_ended = VALUE.model_copy(update={"shape": (SymbolicSize(expr="u0"), 3)})
    with pytest.raises(CannotRunError) as refused:
        script(Graph("a/b/c", (Node("x", "placeholder", "x", "", (), value=open_ended), nodes[1])), "2", "0")
    assert refused.value.cause.key == "server.export_input"


# --- names, routes


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        (("aotscope", "x", "trace.json"), "aotscope-x-trace.json"),
        (("../../etc/passwd",), "etc-passwd"),
        (("a\r\nset-cookie: b",), "a-set-cookie-b"),
        (('"; rm -rf ~',), "rm--rf"),
        (("名",), "aotscope"),
        (("x" * 500,), "x" * 100),
    ],
)
def test_names_of_files_are_safe(parts: tuple[str, ...], name: str) -> None:
    assert safe_name(*parts) == name


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with serving(tmp_path_factory.mktemp("exports")) as client:
        yield client


def test_each_export_is_a_download_with_a_plain_name(client: Client) -> None:
    base = "/api/v1/runs/example-two-layer-net"
    run = client.get(f"{base}/document").json()
    hash_ = next(made["hash"] for _c, made, payload in payloads(run, "graph") if payload["id"] == "0_0/joint/joint")
    for path, kind in (
        ("trace.json", "application/json"),
        ("memory.pickle?name=plan", "application/octet-stream"),
        ("issue.md", "text/markdown"),
        (f"artifacts/{hash_}/graph.py", "text/x-python"),
    ):
        answer = client.get(f"{base}/{path}")
        assert (answer.status_code, answer.headers["content-type"].split(";")[0]) == (200, kind)
        assert re.fullmatch(r'attachment; filename="aotscope-[\w.-]+"', answer.headers["content-disposition"])


@pytest.mark.parametrize(
    ("path", "status", "key"),
    [
        ("example-two-layer-net/memory.pickle?name=nope", 404, "server.export_no_timeline"),
        ("nope/trace.json", 404, "server.run_unknown"),
        ("nope/issue.md", 404, "server.run_unknown"),
        (f"example-two-layer-net/artifacts/{'0' * 64}/graph.py", 404, "server.artifact_absent"),
        ("example-checkpoint/artifacts/{0}/graph.py", 409, "server.export_subgraph"),
        ("example-checkpoint/artifacts/{1}/graph.py", 409, "plain.picture_not_graph"),
    ],
)
def test_what_cannot_be_exported_is_said(client: Client, path: str, status: int, key: str) -> None:
    run = client.get("/api/v1/runs/example-checkpoint/document").json()
    inside = next(made["hash"] for _c, made, payload in payloads(run, "graph") if payload["id"] == "0_0/dynamo/dynamo")
    source = next(made["hash"] for _c, made, _payload in payloads(run, "source"))
    answer = client.get("/api/v1/runs/" + path.format(inside, source))
    assert (answer.status_code, answer.json()["error"]["key"]) == (status, key)
