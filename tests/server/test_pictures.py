"""Graphs as DOT and SVG: folding, both layouts, escaping, the routes."""

from __future__ import annotations

import itertools
import json
import random
import re
import shutil
import subprocess
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator

import pytest
from pydantic_core import to_json

from compiler.ir.encode import encode
from compiler.ir.graph import Graph, Node, TensorValue
from server.examples import FOLDER, read_recording
from server.pictures import dot, svg, view_of
from server.pictures.dot import dot_layout, dot_text
from server.pictures.draw import sizes
from server.pictures.layered import layered
from server.pictures.layout import Edges, Layout, Sizes
from server.pictures.view import LIMIT, Box, View, Wire, fold
from tests.server.asgi import Client, serving

HOSTILE = (
    "<script>alert(1)</script>",
    "a & b &lt; <b>",
    '"quoted" \\" \\',
    "'single'",
    "<<b>bold</b>>",
    "\\N \\G \\l",
    "λ 中文 \U0001f525",
    "line\nbreak",
    "nul\x00 bell\x07 \ufffe",
    "]]> --> <!--",
)
VALUE = TensorValue(shape=(2, 3), dtype="float32", device="cpu", bytes=24)
BIG = read_recording(FOLDER / "recorded" / "gpt_stack.json.gz")


def call(name: str, *inputs: str, target: str = "aten.mul.Tensor", **fields: object) -> Node:
    return Node(name, "call_function", target, ", ".join(inputs), inputs, value=VALUE, **fields)  # type: ignore[arg-type]


def payload(graph: Graph) -> bytes:
    return encode(graph).model_dump_json().encode()


def recorded(id: str) -> bytes:
    return next(to_json(one) for one in BIG.artifacts.values() if one["format"] == "graph/1" and one["id"] == id)


FORWARD = Graph(
    "0_0/partition/forward",
    (
        Node("x", "placeholder", "x", "", (), value=VALUE, phase="forward", roles=("primal", "input")),
        call("sin", "x", target="aten.sin.default", phase="forward", roles=("recomputed",)),
        call("mul", "sin", "x", phase="forward", roles=("saved",)),
        Node("output", "output", "output", "mul,", ("mul",), phase="forward", roles=("output",)),
    ),
)
BACKWARD = Graph(
    "0_0/partition/backward",
    (
        Node("x", "placeholder", "x", "", (), value=VALUE, phase="backward", roles=("primal", "saved")),
        Node("mul", "placeholder", "mul", "", (), value=VALUE, phase="backward", roles=("saved",)),
        Node("tangents_1", "placeholder", "tangents_1", "", (), value=VALUE, phase="backward", roles=("tangent",)),
        call("sin", "x", target="aten.sin.default", phase="backward", roles=("recomputed",)),
        call("mul_1", "tangents_1", "mul", phase="backward"),
        call("mul_2", "mul_1", "sin", phase="backward"),
        Node("output", "output", "output", "mul_2,", ("mul_2",), phase="backward", roles=("output",)),
    ),
)

GOLDEN = """\
digraph "0_0/partition/forward" {
	graph [fontname="sans-serif" fontsize=11 label=<<table border="0" cellborder="0" cellspacing="6"><tr><td bgcolor="#e3f0f8">\
<font color="#0072b2">forward 4</font></td><td bgcolor="#dff3ec"><font color="#00795a">saved for the backward</font></td></tr>\
</table>> labelloc=t mclimit=0.2 nodesep=0.2 nslimit=0.5 nslimit1=0.5 rankdir=TB ranksep=0.35 splines=line]
	node [fontname=monospace fontsize=10 shape=box style="filled,rounded"]
	edge [arrowsize=0.5]
	n0 [label="x\\nplaceholder f32[2, 3]" color="#0072b2" fillcolor="#e3f0f8" \
fontcolor="#1d1f23" penwidth=1 style=filled]
	n1 [label="sin\\naten.sin f32[2, 3]" color="#0072b2" fillcolor="#e3f0f8" \
fontcolor="#1d1f23" penwidth=1 style="filled,rounded"]
	n2 [label="mul\\naten.mul.Tensor f32[2, 3]" color="#0072b2" fillcolor="#e3f0f8" \
fontcolor="#1d1f23" penwidth=2 style="filled,rounded"]
	n3 [label="output\\noutput" color="#0072b2" fillcolor="#e3f0f8" \
fontcolor="#1d1f23" penwidth=1 style=filled]
	n0 -> n1 [color="#0072b2" penwidth=0.9]
	n1 -> n2 [color="#0072b2" penwidth=0.9]
	n0 -> n2 [color="#0072b2" penwidth=0.9]
	n2 -> n3 [color="#00795a" penwidth=2.4]
}
"""


def test_dot_text() -> None:
    assert dot_text(view_of(payload(FORWARD))) == GOLDEN


def test_halves_as_one_view() -> None:
    view = view_of(payload(FORWARD), payload(BACKWARD))
    assert view == View(
        id="0_0/partition/backward+forward",
        boxes=(
            Box("x", "placeholder f32[2, 3]", "forward", edge=True, saved=True, hover=view.boxes[0].hover),
            Box("sin", "aten.sin f32[2, 3]", "forward", hover=view.boxes[1].hover),
            Box("mul", "aten.mul.Tensor f32[2, 3]", "forward", saved=True, hover=view.boxes[2].hover),
            Box("tangents_1", "placeholder f32[2, 3]", "backward", edge=True, hover=view.boxes[3].hover),
            Box("sin again", "aten.sin f32[2, 3]", "recomputed", hover=view.boxes[4].hover),
            Box("mul_1", "aten.mul.Tensor f32[2, 3]", "backward", hover=view.boxes[5].hover),
            Box("mul_2", "aten.mul.Tensor f32[2, 3]", "backward", hover=view.boxes[6].hover),
            Box("output", "output", "backward", edge=True, hover=view.boxes[7].hover),
        ),
        wires=(
            Wire(0, 1, "forward"),
            Wire(1, 2, "forward"),
            Wire(0, 2, "forward"),
            Wire(0, 4, "saved"),
            Wire(3, 5, "backward"),
            Wire(2, 5, "saved"),
            Wire(5, 6, "backward"),
            Wire(4, 6, "backward"),
            Wire(6, 7, "backward"),
        ),
        nodes=8,
        counts={"forward": 3, "backward": 4, "recomputed": 1},
    )


def test_folding_takes_the_deepest_level_that_fits() -> None:
    nodes = [Node("x", "placeholder", "x", "", (), phase="forward", roles=("primal", "input"))]
    for layer, part, step in itertools.product(range(3), ("a", "b"), range(4)):
        module = f"layers.{layer}.{part}"
        if step == 0:
            nodes.append(
                Node(
                    f"w{layer}{part}", "placeholder", "w", "", (), phase="forward", module=module, roles=("parameter",)
                )
            )
    last = "x"
    for layer, part, step in itertools.product(range(3), ("a", "b"), range(4)):
        inputs = (last, f"w{layer}{part}") if step == 0 else (last,)
        last = f"n{layer}{part}{step}"
        nodes.append(call(last, *inputs, phase="forward", module=f"layers.{layer}.{part}"))
    graph = Graph("0_0/joint/inference", tuple(nodes))

    def named(limit: int) -> list[tuple[str, int]]:
        return [(box.name, box.count) for box in fold(graph, limit).boxes]

    assert len(named(31)) == len(nodes) == 31
    assert named(30) == [("x", 1), *((f"layers.{i}.{part}", 5) for i in range(3) for part in "ab")]
    assert named(6) == [("x", 1), *((f"layers.{i}", 10) for i in range(3))]
    assert named(3) == [("x", 1), ("layers", 30)]
    assert [(wire.tail, wire.head) for wire in fold(graph, 6).wires] == [(0, 1), (1, 2), (2, 3)]
    assert named(1) == [("layers", 31)]


@pytest.mark.parametrize("id", ["joint/joint", "partition/forward", "partition/backward", "dynamo/dynamo"])
def test_eight_layers_fold_into_a_picture(id: str) -> None:
    start = time.monotonic()
    view = view_of(recorded(f"0_0/{id}"))
    picture = svg(view, "en")
    assert time.monotonic() - start < 5
    assert view.nodes > LIMIT >= len(view.boxes) > 20
    assert sum(box.count for box in view.boxes) == view.nodes
    assert f"{view.nodes} nodes, folded by module into {len(view.boxes)}" in picture
    check_layout(sizes(view, "en"), edges_of(view), own=True)


def edges_of(view: View) -> Edges:
    return tuple((wire.tail, wire.head) for wire in view.wires)


def check_layout(boxes: Sizes, edges: Edges, own: bool) -> Layout:
    layout = layered(boxes, edges) if own else dot_layout(boxes, edges)
    assert layout is not None
    assert [(place.width, place.height) for place in layout.boxes] == list(boxes)
    for a, b in itertools.combinations(layout.boxes, 2):
        apart = max(abs(a.x - b.x) - (a.width + b.width) / 2, abs(a.y - b.y) - (a.height + b.height) / 2)
        assert apart > 3, (a, b)
    for place in layout.boxes:
        assert place.width / 2 - 0.1 <= place.x <= layout.width - place.width / 2 + 0.1
        assert place.height / 2 - 0.1 <= place.y <= layout.height - place.height / 2 + 0.1
    assert len(layout.lines) == len(edges)
    return layout


@pytest.mark.parametrize("own", [True, False], ids=["own", "dot"])
def test_layouts(own: bool) -> None:
    if not own and not dot.dot_installed():
        pytest.skip("dot is not installed")
    dice = random.Random(7)
    for count in (1, 2, 40, 120):
        boxes = tuple((float(dice.randrange(30, 260)), dice.choice((22.0, 34.0))) for _ in range(count))
        edges = tuple({(dice.randrange(head), head) for head in range(1, count) for _ in range(2)})
        layout = check_layout(boxes, edges, own)
        for (tail, head), line in zip(edges, layout.lines, strict=True):
            assert layout.boxes[tail].y < layout.boxes[head].y
            assert abs(line.y1 - layout.boxes[tail].y) <= 20
            assert abs(line.y2 - layout.boxes[head].y) <= 20


def test_own_layout_of_a_cycle_and_of_nothing() -> None:
    layout = check_layout(((30, 20),) * 3, ((0, 1), (1, 2), (2, 0)), own=True)
    assert [place.y for place in layout.boxes] == sorted(place.y for place in layout.boxes)
    assert layered((), ()) == Layout(0, 0, (), ())
    assert dot_layout((), ()) is None


def hostile() -> Graph:
    first, *rest = HOSTILE
    nodes = [Node(first, "placeholder", first, "", (), phase="forward")]
    for name in rest:
        nodes.append(call(name, nodes[-1].name, target=name, phase="forward", module=name, roles=("saved",)))
    return Graph("0_0/joint/" + HOSTILE[2], tuple(nodes))


def test_hostile_names_in_svg() -> None:
    view = view_of(payload(hostile()))
    for language in ("en", "zh"):
        text = svg(view, language)
        root = ET.fromstring(text)
        tags = {element.tag.removeprefix("{http://www.w3.org/2000/svg}") for element in root.iter()}
        assert tags <= {"svg", "title", "style", "defs", "marker", "path", "rect", "g", "text"}
        assert "<script" not in text
        titles = [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}title")]
        for name in HOSTILE:
            shown = re.sub("[\x00\x07\ufffe]", "\N{REPLACEMENT CHARACTER}", name)
            assert sum(title.startswith(shown) for title in titles) == 1, name


def test_hostile_names_in_dot() -> None:
    view = view_of(payload(hostile()))
    text = dot_text(view)
    # Outside of quoted strings and of the legend, nothing of a name is left.
    rest = re.sub(r'"(?:[^"\\]|\\.)*"', "", re.sub(r"label=<<table.*?</table>>", "", text), flags=re.S)
    assert re.fullmatch(r"[\s\w.\->\[\]{}=]*", rest), rest
    if shutil.which("dot"):
        read = json.loads(
            subprocess.run(["dot", "-Tjson0"], input=text.encode(), capture_output=True, check=True, timeout=30).stdout
        )
        assert read["name"] == hostile().id.replace("\\", "\\\\")
        shown = [name.translate({0: 0xFFFD, 7: 0xFFFD, 0xFFFE: 0xFFFD, 10: 0x20}) for name in HOSTILE]
        details = ["placeholder", *(f"{name} f32[2, 3]" for name in shown[1:])]
        assert [node["label"] for node in read["objects"]] == [
            name.replace("\\", "\\\\") + "\\n" + detail.replace("\\", "\\\\")
            for name, detail in zip(shown, details, strict=True)
        ]
        assert len(read["edges"]) == len(HOSTILE) - 1


def test_without_dot_the_picture_is_the_same_but_for_its_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    view = view_of(payload(FORWARD), payload(BACKWARD))
    places = re.compile(r' (?:x|y|d|width|height|viewBox|transform)="[^"]*"')
    with_dot = places.sub("", svg(view, "en"))
    monkeypatch.setattr(dot.shutil, "which", lambda _name: None)
    own = places.sub("", svg(view, "en"))
    assert own == with_dot
    assert "dot" not in re.sub(r"<style>.*?</style>", "", own).lower()


@pytest.mark.skipif(not dot.dot_installed(), reason="dot is not installed")
def test_dot_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    assert dot_layout(((30, 20),), ()) is not None
    monkeypatch.setattr(dot, "_SECONDS", 1e-6)
    assert dot_layout(((30, 20),), ()) is None
    assert svg(view_of(payload(FORWARD)), "en").startswith("<svg")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with serving(tmp_path_factory.mktemp("pictures")) as one:
        yield one


def hashes(run: str) -> dict[tuple[str, str | None, str], str]:
    """(stage, graph, kind) → hash of the last such artifact of a recorded example."""
    recording = read_recording(FOLDER / "recorded" / f"{run}.json.gz")
    return {
        (event["stage"], event["graph"], event["artifact"]["kind"]): event["artifact"]["hash"]
        for event in recording.events
        if event["type"] == "artifact"
    }


def test_routes(client: Client) -> None:
    known = hashes("two_layer_net")
    base = "/api/v1/runs/example-two-layer-net/artifacts"
    joint = known["joint", "joint", "graph"]
    picture = client.get(f"{base}/{joint}/picture.svg?lang=zh")
    assert (picture.status_code, picture.headers["content-type"]) == (200, "image/svg+xml; charset=utf-8")
    assert picture.headers["cache-control"] == "public, max-age=3600"
    assert "script-src 'self'" in picture.headers["content-security-policy"]
    assert "前向" in picture.text
    again = client.get(f"{base}/{joint}/picture.svg?lang=zh", headers={"if-none-match": picture.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    english = client.get(f"{base}/{joint}/picture.svg", headers={"if-none-match": picture.headers["etag"]})
    assert english.status_code == 200
    text = client.get(f"{base}/{joint}/graph.dot")
    assert (text.status_code, text.headers["content-type"]) == (200, "text/vnd.graphviz; charset=utf-8")
    assert text.text.startswith('digraph "0_0/joint/joint" {')
    forward, backward = known["partition", "forward", "graph"], known["partition", "backward", "graph"]
    both = client.get(f"{base}/{forward}/picture.svg?backward={backward}")
    assert "saved for the backward" in both.text


@pytest.mark.parametrize("name", ["picture.svg", "graph.dot"])
def test_refusals(client: Client, name: str) -> None:
    known = hashes("two_layer_net")
    base = "/api/v1/runs/example-two-layer-net/artifacts"
    code, graph = known["joint", "joint", "code"], known["joint", "joint", "graph"]
    answers = {
        f"{base}/{code}/{name}": (409, "plain.picture_not_graph"),
        f"{base}/{graph}/{name}?backward={code}": (409, "plain.picture_not_graph"),
        f"{base}/{'0' * 64}/{name}": (404, "server.artifact_absent"),
        f"{base}/{graph}/{name}?backward={'0' * 64}": (404, "server.artifact_absent"),
        f"/api/v1/runs/nope/artifacts/{graph}/{name}": (404, "server.run_unknown"),
        f"{base}/x/{name}": (422, "server.invalid_request"),
        f"{base}/{graph}/{name}?lang=fr": (422, "server.invalid_request"),
    }
    for path, expected in answers.items():
        answer = client.get(path)
        assert (answer.status_code, answer.json()["error"]["key"]) == expected, path
    assert "of the kind code." in client.get(f"{base}/{code}/{name}").json()["error"]["text"]


def test_health_says_whether_dot_is_there(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    said = client.get("/api/v1/health").json()
    there = shutil.which("dot") is not None
    assert (said["dot"], said["pictures"]["key"]) == (there, "plain.dot_present" if there else "plain.dot_absent")
    monkeypatch.setattr(dot.shutil, "which", lambda _name: None)
    said = client.get("/api/v1/health").json()
    assert (said["dot"], said["pictures"]) == (False, {"key": "plain.dot_absent", "params": {}})
