"""Two runs held against each other: graphs, tables, texts, the route, the command."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic_core import to_json

from compiler.ir.align import align
from compiler.ir.comparison import RunComparison
from compiler.ir.encode import decode
from compiler.ir.graph import Graph, GraphPayload, Node, TensorValue
from compiler.ir.payloads import PAYLOADS
from server.compare import compare
from server.compare.text import lines
from server.document import document
from server.examples import FOLDER, read_recording
from tests.server.asgi import Client, serving
from tests.server.conftest import ROOT

VALUE = TensorValue(shape=(2, 3), dtype="float32", device="cpu", bytes=24)


def node(name: str, target: str, *inputs: str, **fields: Any) -> Node:
    made = Node(name, "call_function", target, ", ".join(inputs), inputs, value=VALUE)
    return replace(made, **fields)


def graph(*nodes: Node) -> Graph:
    return Graph("0_0/joint/joint", (Node("x", "placeholder", "x", "", (), value=VALUE), *nodes))


def sketch(before: Graph, after: Graph) -> list[tuple[str, str, tuple[str, ...]]]:
    return [
        (pair.before.name if pair.before else "", pair.after.name if pair.after else "", pair.what)
        for pair in align(before, after)
    ]


def whole(name: str) -> dict[str, Any]:
    return document(read_recording(FOLDER / "recorded" / f"{name}.json.gz"))


@pytest.fixture(scope="module")
def net() -> dict[str, Any]:
    return whole("two_layer_net")


# --- graphs


def test_a_graph_is_itself() -> None:
    one = graph(node("sin", "aten.sin.default", "x"), node("cos", "aten.cos.default", "sin"))
    assert sketch(one, one) == [("x", "x", ()), ("sin", "sin", ()), ("cos", "cos", ())]


def test_an_operator_more_renames_what_follows_and_changes_only_who_reads_it() -> None:
    before = graph(node("mul", "aten.mul.Tensor", "x", "x"), node("mul_1", "aten.mul.Tensor", "mul", "x"))
    after = graph(
        node("sin", "aten.sin.default", "x"),
        node("mul_7", "aten.mul.Tensor", "sin", "x"),
        node("mul_8", "aten.mul.Tensor", "mul_7", "x"),
    )
    assert sketch(before, after) == [
        ("x", "x", ()),
        ("", "sin", ()),
        ("mul", "mul_7", ("args",)),
        ("mul_1", "mul_8", ()),
    ]


def test_what_changed_of_a_node_is_named() -> None:
    wide = TensorValue(shape=(4, 3), dtype="bfloat16", device="cpu", bytes=24)
    before = graph(node("sin", "aten.sin.default", "x", roles=("saved",)))
    after = graph(node("sin", "aten.sin.default", "x", value=wide))
    assert sketch(before, after)[1] == ("sin", "sin", ("shape", "dtype", "roles"))


def test_a_node_in_another_place_is_moved_and_not_two() -> None:
    sin, cos = node("sin", "aten.sin.default", "x"), node("cos", "aten.cos.default", "x")
    pairs = sketch(graph(sin, cos), graph(cos, sin))
    assert sorted(pairs) == sorted([("x", "x", ()), ("sin", "sin", ()), ("cos", "cos", ("order",))]) or sorted(
        pairs
    ) == sorted([("x", "x", ()), ("cos", "cos", ()), ("sin", "sin", ("order",))])


def test_every_node_of_both_graphs_is_there_once() -> None:
    found = {
        payload["id"]: decode(GraphPayload.model_validate(payload))
        for name in ("attention_block", "gpt_stack")
        for payload in read_recording(FOLDER / "recorded" / f"{name}.json.gz").artifacts.values()
        if payload["format"] == "graph/1"
    }
    one, two = found["0_0/partition/forward"], found["0_0/partition/backward"]
    pairs = align(one, two)
    assert sorted(pair.before.name for pair in pairs if pair.before) == sorted(node.name for node in one.nodes)
    assert [pair.after.name for pair in pairs if pair.after] == [node.name for node in two.nodes]


# --- runs


def test_a_run_is_equal_to_itself(net: dict[str, Any]) -> None:
    found = compare(net, net)
    assert found.equal
    assert (found.source, found.options, found.summary, found.appeared, found.vanished) == ("", [], [], [], [])
    assert list(lines(found, details=True))[-1] == "equal"


def test_clocks_and_comments_and_lines_do_not_make_a_difference(net: dict[str, Any]) -> None:
    other = copy.deepcopy(net)
    changed = 0
    for stage in [*other["stages"], *other["compiles"][0]["stages"]]:
        stage["seconds"] = 99.0
        for made in stage["artifacts"]:
            payload = made["payload"]
            if made["kind"] == "execution":
                payload["compile_seconds"] = 99.0
            elif made["kind"] == "code" and stage["name"] == "codegen":
                payload["text"] = payload["text"].replace("# Topologically", "# Otherwise")
            elif made["kind"] == "guards":
                payload["guards"][0]["line"] = 77
            else:
                continue
            made["hash"] = f"{changed:064d}"
            changed += 1
    found = compare(net, other)
    assert (found.equal, changed) == (True, 4)
    execution = next(part for stage in found.stages for part in stage.parts if part.kind == "execution")
    assert [(one.name, one.b, one.measured) for one in execution.figures] == [("compile_seconds", 99.0, True)]


@pytest.mark.parametrize(
    ("kind", "change", "counted"),
    [
        ("guards", lambda payload: payload["guards"].pop(), "removed"),
        ("kernels", lambda payload: payload["kernels"].pop(), "removed"),
        ("schedule", lambda payload: payload["nodes"][0].update(kind="template"), "added"),
        ("partition", lambda payload: payload["decisions"][2].update(verdict="saved"), "changed"),
        ("passes", lambda payload: payload["steps"][0].update(nodes_after=5), "changed"),
        (
            "breaks",
            lambda payload: payload["breaks"].append({"id": "break/1", "kind": "break", "reason": "so"}),
            "added",
        ),
    ],
)
def test_a_difference_is_found_in_its_table(net: dict[str, Any], kind: str, change: Any, counted: str) -> None:
    other = copy.deepcopy(net)
    stages = [*other["stages"], *other["compiles"][0]["stages"]]
    made = next(one for stage in stages for one in stage["artifacts"] if one["kind"] == kind)
    change(made["payload"])
    made["hash"] = "0" * 64
    found = compare(net, other)
    every = [*found.stages, *(stage for compiled in found.compiles for stage in compiled.stages)]
    parts = [part for stage in every for part in stage.parts if part.state != "equal"]
    assert (found.equal, [part.kind for part in parts]) == (False, [kind])
    assert getattr(parts[0], counted) == 1


def test_a_changed_statement_of_generated_code_is_a_difference(net: dict[str, Any]) -> None:
    other = copy.deepcopy(net)
    made = next(
        one
        for stage in other["compiles"][0]["stages"]
        if stage["name"] == "codegen"
        for one in stage["artifacts"]
        if one["kind"] == "code"
    )
    made["payload"]["text"] += "\nextra = 1\n"
    made["hash"] = "0" * 64
    found = compare(net, other)
    (part,) = (part for stage in found.compiles[0].stages for part in stage.parts if part.state != "equal")
    assert (found.equal, part.diff.splitlines()[-1]) == (False, "+extra = 1")


def test_findings_appear_and_vanish_whatever_their_line_and_figures(net: dict[str, Any]) -> None:
    other = copy.deepcopy(net)
    (slower,) = other["run"]["findings"]
    slower["message"]["params"]["ratio"] = 3.5
    slower["line"] = 3
    assert compare(net, other).equal
    other["run"]["findings"] = [slower | {"message": {"key": "dynamo.recompile", "params": {}}}]
    found = compare(net, other)
    assert [one.message.key for one in found.appeared] == ["dynamo.recompile"]
    assert [one.message.key for one in found.vanished] == ["execute.slower"]
    assert not found.equal


def test_training_is_held_against_inference() -> None:
    """The recording of a training run with its backward taken away, as an inference run has it."""
    training = whole("two_layer_net")
    inference = whole("numpy_complex_fallback")
    found = compare(training, inference)
    joint = next(stage for stage in found.compiles[0].stages if stage.stage == "joint")
    pairs = [(part.kind, part.graph_a, part.graph_b) for part in joint.parts]
    assert ("graph", "joint", "inference") in pairs
    post = next(stage for stage in found.compiles[0].stages if stage.stage == "post_grad")
    graphs = {(part.graph_a, part.graph_b, part.state) for part in post.parts if part.kind == "graph"}
    assert graphs == {("forward", "inference", "different"), ("backward", None, "only_a")}


def test_compiles_are_paired_by_function() -> None:
    one = whole("graph_breaks")
    other = copy.deepcopy(one)
    for compiled in other["compiles"]:
        compiled["function"] = compiled["function"].replace("_at_14", "_at_99")
    gone = other["compiles"].pop()
    found = compare(one, other)
    assert [(made.a and made.a.id, made.b and made.b.id) for made in found.compiles] == [
        ("0/0", "0/0"),
        ("1/0", "1/0"),
        ("2/0", "2/0"),
        (gone["id"], None),
    ]


# --- the route and the command


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with serving(tmp_path_factory.mktemp("compare")) as client:
        yield client


def test_the_route(client: Client) -> None:
    answer = client.get("/api/v1/compare/example-two-layer-net/example-training-script")
    assert answer.status_code == 200
    found = RunComparison.model_validate_json(answer.content)
    assert (found.a.id, found.equal) == ("example-two-layer-net", False)
    page = client.get("/compare/example-two-layer-net/example-training-script#stage=joint")
    assert (page.status_code, 'data-view="compare"' in page.text) == (200, True)


@pytest.mark.parametrize("path", ["/api/v1/compare/example-two-layer-net/nope", "/compare/nope/example-two-layer-net"])
def test_an_unknown_run_is_404(client: Client, path: str) -> None:
    assert client.get(path).status_code == 404


def command(*arguments: str | Path) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "server.cli", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.returncode, done.stdout, done.stderr


def test_the_command_tells_equal_from_different_and_from_neither(net: dict[str, Any], tmp_path: Path) -> None:
    recording = FOLDER / "recorded" / "two_layer_net.json.gz"
    same = tmp_path / "same.json"
    same.write_bytes(to_json(net))
    code, out, _err = command("compare", recording, same)
    assert (code, out.splitlines()[-1]) == (0, "equal")
    target = tmp_path / "c.json"
    code, out, _err = command(
        "compare", recording, FOLDER / "recorded" / "dropout.json.gz", "--json", target, "--details"
    )
    assert (code, out.splitlines()[-1]) == (1, "different")
    assert RunComparison.model_validate_json(target.read_text()).equal is False
    code, _out, err = command("compare", recording, "nope")
    assert (code, "There is neither a file nor a run with the name nope." in " ".join(err.split())) == (2, True)
    same.write_text(json.dumps({"format": "document/1"}))
    assert command("compare", recording, same)[0] == 2
    same.write_text("[1")
    assert command("compare", same, recording)[0] == 2


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_kind_of_payload_has_a_name_on_the_page(language: str) -> None:
    words = json.loads((ROOT / "frontend" / "src" / "messages" / f"{language}.json").read_text(encoding="utf-8"))
    assert [kind for kind in PAYLOADS if kind != "links" and f"cmp.kind.{kind}" not in words] == []
