"""Breaks, skips, guards and recompiles, from torch's objects, with their lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from compiler.events import Finished
from compiler.text import message
from tests.compiler.capturing import capture_text

BREAK = """
import torch
def model(x):
    y = x.sin()
    if y.sum() > 0:
        return y + 1
    return y - 1
inputs = (torch.ones(3),)
calls = [inputs] * 3
"""

REST = """
import torch
class Guarded(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(6, 6)
    def forward(self, x):
        h = self.a(x).relu()
        try:
            if h.sum().item() < -1:
                raise ValueError("negative")
            h = self.a(h)
        except ValueError:
            h = h * 0
        return h.tanh()
model = Guarded()
inputs = (torch.ones(4, 6),)
"""

WHOLE = """
import torch
def model(x):
    for _ in range(2):
        x = x + 1
        torch._dynamo.graph_break()
    return x
inputs = (torch.ones(3),)
"""

COUNTER = """
import torch
class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = 0
    def forward(self, x):
        self.seen += 1
        return x * self.seen
model = Counter()
inputs = (torch.ones(2),)
calls = [inputs] * 12
"""

BACKEND = """
import torch
def kitchen(gm, inputs):
    raise NotImplementedError("on fire")
def model(x):
    return x.sin()
inputs = (torch.ones(3),)
compile_kwargs = {"backend": kitchen}
"""


@pytest.mark.parametrize(
    ("source", "kind", "gb_id", "line", "function", "fallback"),
    [
        (BREAK, "break", "GB0170", 5, "model", []),
        (REST, "rest_of_function", "GB0124", 10, "forward", ["rest_of_function snippet.py:10"]),
        (WHOLE, "whole_function", "GB7000", 6, "model", ["whole_function snippet.py:6"]),
    ],
)
def test_a_break_has_its_cause_and_its_line(
    source: str, kind: str, gb_id: str, line: int, function: str, fallback: list[str], tmp_path: Path
) -> None:
    captured = capture_text(source, tmp_path)
    (table,) = captured.artifacts("breaks")
    (row,) = (row for row in table["breaks"] if row["kind"] != "skipped")
    assert (row["kind"], row["line"], row["function"]) == (kind, line, function)
    assert row["gb_id"] == gb_id
    assert row["explanation"]
    assert row["stack"][-1]["line"] == line
    (finding,) = captured.bodies("finding")
    assert (finding.message.key, finding.line, finding.entity) == (f"dynamo.{kind}", line, row["id"])
    assert captured.summary()["break_messages"] == 1
    assert captured.summary()["eager_fallback"] == fallback


def test_the_rest_of_a_function_is_called_by_its_own_name(tmp_path: Path) -> None:
    source = """
        import torch
        def model(x):
            torch._dynamo.graph_break()
            x = x + 1
            torch._dynamo.graph_break()
            return x + 2
        inputs = (torch.ones(3),)
    """
    captured = capture_text(source, tmp_path)
    told = [(body.message.params["function"], body.line) for body in captured.bodies("finding")]
    assert told == [("model", 4), ("model", 6)]


def test_a_recompile_names_the_guard_and_both_values(tmp_path: Path) -> None:
    captured = capture_text(COUNTER, tmp_path)
    (table,) = captured.artifacts("recompiles")
    first = table["recompiles"][0]
    assert (first["compile"], first["entry"], first["line"]) == ("0/1", "0/0", 8)
    assert (first["source"], first["old"], first["new"]) == ("L['self'].seen", "0", "1")
    started = captured.bodies("compile_started")
    assert [body.reason is None for body in started] == [True] + [False] * 7
    summary = captured.summary()
    assert summary["recompiles"] == 8
    assert summary["unique_recompile_reasons"] == [f"self.seen == {count}" for count in range(8)]
    # One cause is told once, however often it strikes; the limit is another.
    assert [body.message.key for body in captured.bodies("finding")] == [
        "dynamo.recompile_values",
        "dynamo.recompile_limit",
    ]
    assert summary["eager_fallback"] == ["recompile_limit snippet.py:7"]


def test_guards_have_a_line_and_a_value(tmp_path: Path) -> None:
    captured = capture_text(COUNTER, tmp_path)
    guards = captured.artifacts("guards")
    assert [payload["leaf_guards"] for payload in guards] == captured.summary()["leaf_guards"]
    seen = next(guard for guard in guards[0]["guards"] if guard["source"] == "L['self'].seen")
    assert (seen["type"], seen["value"], seen["line"]) == ("EQUALS_MATCH", "0", 8)
    assert all(
        "GuardManager" in line or "GUARD" in line or "MATCH" in line for line in guards[0]["tree"].split("\n")[2:4]
    )


def test_a_backend_that_raises_ends_the_run_with_its_words(tmp_path: Path) -> None:
    captured = capture_text(BACKEND, tmp_path, until=None)
    assert captured.outcome == Finished(error=message("run.raised", error="BackendCompilerFailed"))
    (failed,) = captured.bodies("stage_failed")
    assert "on fire" in failed.error
    assert captured.summary()["compiled_graphs"] == 0


def test_the_graph_is_linked_to_its_lines(tmp_path: Path) -> None:
    captured = capture_text(BREAK, tmp_path)
    graph = captured.artifacts("graph")[0]
    nodes, strings = graph["nodes"], graph["strings"]
    lines = {strings[name]: line for name, line in zip(nodes["name"], nodes["line"], strict=True)}
    assert lines["y"] == 4
    links = captured.artifacts("links")[0]
    pairs = {
        (links["strings"][source], links["strings"][target])
        for source, target in zip(links["links"]["source"], links["links"]["target"], strict=True)
    }
    assert ("line/4", "0_0/dynamo/dynamo/y") in pairs


def test_a_second_life_of_an_id_has_its_own_name(tmp_path: Path) -> None:
    source = """
        import torch
        for _ in range(2):
            print(torch.compile(lambda x: x + 1)(torch.ones(1)).item())
            torch._dynamo.reset()
    """
    captured = capture_text(source, tmp_path)
    assert [frame.compile for frame in captured.events if frame.body.type == "compile_started"] == ["0/0", "0/0.2"]
