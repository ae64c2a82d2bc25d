"""Encoding, verifying, printing and comparing graphs; no torch."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from compiler.ir.diff import GraphDiff, diff, print_graph, value_text
from compiler.ir.encode import decode, encode
from compiler.ir.graph import (
    Graph,
    GraphPayload,
    Node,
    ScalarValue,
    StackFrame,
    SymbolicSize,
    TensorValue,
    TupleValue,
)
from compiler.ir.verify import problems, verify

S0 = SymbolicSize(expr="s0", hint=3)
FRAMES = (
    StackFrame(file="torch/nn/modules/container.py", line=9, function="forward", code="x = module(x)"),
    StackFrame(file="snippet.py", line=7, function="forward", code="y = f(x)", user=True),
)
X = Node("x", "placeholder", "x", "fc.weight", (), TensorValue(shape=(2, S0), dtype="float32", device="cpu", bytes=24))
PAIR = Node(
    name="pair",
    op="call_function",
    target="aten.var_mean.correction",
    args="x, [1]",
    inputs=("x",),
    value=TupleValue(items=(TensorValue(shape=(), dtype="int64", device="cpu", stride=(), bytes=8), None)),
    phase="forward",
    module="layers.0",
    module_type="LayerNorm",
    call=2,
    line=7,
    stack=FRAMES,
    seq_nr=0,
    grad_fn="VarMeanBackward0",
    roles=("saved", "output"),
)
GRAD = Node(
    "grad", "call_method", "view", "pair, -1", ("pair", "x"), ScalarValue(type="SymInt", value=S0), "backward",
    twin="pair", stack=FRAMES, line=7,
)  # fmt: skip
OUT = Node("output", "output", "output", "(pair, grad),", ("pair", "grad"))
GRAPH = Graph("0_0/joint/joint", (X, PAIR, GRAD, OUT))


def test_encoding_loses_nothing() -> None:
    payload = encode(GRAPH)
    assert decode(payload) == GRAPH
    assert decode(GraphPayload.model_validate_json(payload.model_dump_json())) == GRAPH


def test_columns_are_as_the_contract_says() -> None:
    payload = encode(GRAPH)
    text = payload.strings
    assert text[0] == ""
    assert [text[code] for code in payload.nodes.name] == ["x", "pair", "grad", "output"]
    assert payload.nodes.line == [0, 7, 7, 0]
    assert payload.nodes.stack == [-1, 0, 0, -1]
    assert payload.nodes.seq_nr == [-1, 0, -1, -1]
    assert [code if code < 0 else text[code] for code in payload.nodes.twin] == [-1, -1, "pair", -1]
    assert payload.nodes.bytes == [24, 8, -1, -1]
    assert (payload.edges.source, payload.edges.target) == ([0, 1, 0, 1, 2], [1, 2, 2, 3, 3])
    assert len(payload.stacks) == 1


@pytest.mark.parametrize(
    ("graph", "problem"),
    [
        (Graph("0_0/joint", GRAPH.nodes), "id '0_0/joint' is not compile/stage/graph"),
        (Graph(GRAPH.id, (X, X)), "'x': name is empty or used twice"),
        (Graph(GRAPH.id, (replace(X, op="call"),)), "x: 'call' is no FX op"),
        (Graph(GRAPH.id, (PAIR,)), "pair: reads x, which is not before it"),
        (Graph(GRAPH.id, (X, replace(PAIR, inputs=("x", "x")))), "pair: reads a node twice"),
        (Graph(GRAPH.id, (X, PAIR, replace(X, name="y"))), "y: a placeholder after the first computing node"),
        (Graph(GRAPH.id, (X, replace(X, name="y", inputs=("x",)))), "y: a placeholder that reads"),
        (Graph(GRAPH.id, (X, PAIR, replace(OUT, inputs=()), GRAD)), "output: an output that is not last"),
        (
            Graph(GRAPH.id, (replace(X, phase="forward"), replace(PAIR, phase="backward"), GRAD)),
            "grad: its twin pair is a backward node",
        ),
        (
            Graph(GRAPH.id, (replace(X, value=X.value.model_copy(update={"stride": (1,)})),)),  # type: ignore[union-attr]
            "x: 1 strides for another number of dimensions",
        ),
    ],
)
def test_each_rule_is_checked(graph: Graph, problem: str) -> None:
    assert problems(graph) == [problem]
    with pytest.raises(ValueError, match=re.escape(problem)):
        verify(graph)


def test_a_sound_graph_passes() -> None:
    assert verify(GRAPH) is GRAPH


def test_printing() -> None:
    assert [line.text for line in print_graph(GRAPH)] == [
        "def joint(",
        "    x: f32[2, s0],  # fc.weight",
        "):",
        "    # snippet.py:7 in forward: y = f(x)",
        "    pair: (i64[], None) = aten.var_mean.correction(x, [1])",
        "    grad: SymInt s0 = pair.view(-1)",
        "    return (pair, grad)",
    ]
    assert [(line.node, line.source_line) for line in print_graph(GRAPH)][3:6] == [("", 7), ("pair", 7), ("grad", 7)]


def test_values_in_short() -> None:
    assert value_text(None) == ""
    assert value_text(ScalarValue(type="float", value=0.5)) == "float"
    assert value_text(TensorValue(shape=(1,), dtype="float8_e4m3fn", device="cpu")) == "float8_e4m3fn[1]"


def test_difference_of_two_graphs() -> None:
    after = Graph(GRAPH.id, (X, replace(PAIR, name="other"), replace(OUT, args="other,", inputs=("other",))))
    assert diff(GRAPH, GRAPH) == GraphDiff((), (), "")
    delta = diff(GRAPH, after)
    assert (delta.added, delta.removed) == (("other",), ("pair", "grad"))
    assert "-    pair: (i64[], None) = aten.var_mean.correction(x, [1])" in delta.text.split("\n")
    assert "+    return other" in delta.text.split("\n")
