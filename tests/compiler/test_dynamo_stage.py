"""Breaks, skips, guards and recompiles, from torch's objects, with their lines."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import torch

from compiler.events import Finished, RunRequest
from compiler.snippet import load, understand
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

# A backend's failure that torch takes for a break, and tells as a warning.
FAKE = """
import torch
from torch._subclasses.fake_tensor import UnsupportedFakeTensorException
def kitchen(gm, inputs):
    raise UnsupportedFakeTensorException("no such oven")
def model(x):
    return x.sin()
inputs = (torch.ones(3),)
compile_kwargs = {"backend": kitchen}
"""

# Frames that torch enters in the middle of another break.
INSIDE = (Path(__file__).parents[1] / "corpus" / "issues" / "autograd_function_setup_context.py").read_text("utf-8")


@pytest.mark.parametrize(
    ("source", "kind", "cause", "gb_id", "line", "function", "fallback"),
    [
        (BREAK, "break", "", "GB0170", 5, "model", []),
        (REST, "rest_of_function", "", "GB0124", 10, "forward", ["rest_of_function snippet.py:10"]),
        (WHOLE, "whole_function", "GB0025", "GB7000", 6, "model", ["whole_function snippet.py:6"]),
    ],
)
def test_a_break_has_its_cause_and_its_line(
    source: str, kind: str, cause: str, gb_id: str, line: int, function: str, fallback: list[str], tmp_path: Path
) -> None:
    captured = capture_text(source, tmp_path)
    (table,) = captured.artifacts("breaks")
    (row,) = (row for row in table["breaks"] if row["kind"] != "skipped")
    assert (row["kind"], row["line"], row["function"]) == (kind, line, function)
    assert (row["gb_id"], row["cause_gb_id"], row["library"]) == (gb_id, cause, "")
    assert row["explanation"]
    assert row["stack"][-1]["line"] == line
    (finding,) = captured.bodies("finding")
    key = f"dynamo.{kind}_after" if cause else f"dynamo.{kind}"
    assert (finding.message.key, finding.line, finding.entity) == (key, line, row["id"])
    assert captured.summary()["break_messages"] == 1
    assert captured.summary()["eager_fallback"] == fallback


def logged(source: str, file: Path, monkeypatch: pytest.MonkeyPatch) -> list[logging.LogRecord]:
    """What torch's log `graph_breaks` has of a snippet, compiled and called with nothing of ours in place."""
    from torch._dynamo import convert_frame, exc, symbolic_convert

    loaded = load(understand(RunRequest(source=source), file))
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    monkeypatch.setattr(handler, "emit", records.append)
    logs = (convert_frame.graph_break_log, exc.graph_breaks_log, symbolic_convert.graph_break_log)
    torch._dynamo.reset()
    torch._logging.set_logs(graph_breaks=True)
    for log in logs:
        log.addHandler(handler)
    try:
        compiled = torch.compile(loaded.model, **loaded.compile_kwargs)
        for arguments in loaded.calls:
            compiled(*arguments)
    finally:
        for log in logs:
            log.removeHandler(handler)
        torch._logging.set_logs()
        torch._dynamo.reset()
    return records


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("source", "by"),
    [
        (BREAK, ["symbolic_convert"]),
        (REST, ["symbolic_convert"]),
        (WHOLE, ["symbolic_convert"]),
        (COUNTER, []),  # the recompile limit has a log of its own
        (FAKE, ["exc", "symbolic_convert"]),
        (INSIDE, ["symbolic_convert"] * 2 + ["convert_frame"] * 5),
    ],
)
def test_messages_are_those_of_torchs_log(
    source: str, by: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the log is off, as it is in a run, or a snippet turns it on."""
    said = logged(source, tmp_path / "plain.py", monkeypatch)
    assert [record.module for record in said] == by
    assert capture_text(source, tmp_path, until=None).summary()["break_messages"] == len(said)
    turned_on = source.replace("import torch\n", "import torch\ntorch._logging.set_logs(graph_breaks=True)\n", 1)
    try:
        assert capture_text(turned_on, tmp_path, until=None).summary()["break_messages"] == len(said)
    finally:
        torch._logging.set_logs()


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
        "dynamo.recompile_limit_values",
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


LIBRARY = """
import torch
import uuid
def model(x):
    y = x.sin()
    tag = uuid.uuid4().hex
    return y + len(tag)
inputs = (torch.ones(3),)
"""

PRINTS = """
import torch
def log(x):
    print(x.shape)
def inner(x):
    log(x)
    return x.sin()
def model(x):
    log(x)
    return inner(x) * 2
inputs = (torch.ones(3),)
"""

MODE = """
import torch
from torch.utils._python_dispatch import TorchDispatchMode
class Counting(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))
def model(x):
    return x.sin()
inputs = (torch.ones(3),)
def scenario(fn):
    with Counting():
        fn(*inputs)
    return {}
"""

MARKED = """
import torch
def model(x):
    y = x * 3
    if y.size(0) == 6:
        y = y + 1
    return y
x = torch.randn(6)
torch._dynamo.mark_dynamic(x, 0)
inputs = (x,)
"""

HOOKS = """
import torch
model = torch.nn.Linear(2, 2)
inputs = (torch.ones(1, 2),)
def hook(module, gradients, outputs):
    return tuple(gradient * 5 for gradient in gradients)
def scenario(fn):
    fn(*inputs)
    model.register_full_backward_hook(hook)
    fn(*inputs)
    return {}
"""

MODES = """
import torch
def model(x):
    return x * 2
inputs = (torch.ones(3),)
def scenario(fn):
    x = torch.ones(3)
    fn(x)
    with torch.no_grad():
        fn(x)
    fn(x.requires_grad_())
    return {}
"""


@pytest.mark.filterwarnings("ignore:Dynamo does not know how to trace")
def test_a_break_inside_a_library_is_told_at_the_users_line(tmp_path: Path) -> None:
    captured = capture_text(LIBRARY, tmp_path)
    (row,) = (row for row in captured.artifacts("breaks")[0]["breaks"] if row["kind"] == "break")
    assert (row["line"], row["function"], row["library"].split(":")[0]) == (6, "model", "uuid.py")
    assert [frame["user"] for frame in row["stack"]] == [True, False]
    (finding,) = captured.bodies("finding")
    assert (finding.message.key, finding.line) == ("dynamo.break_in_library", 6)
    assert "posix.urandom" in finding.message.params["what"]


def test_one_cause_is_told_once_wherever_it_is_called_from(tmp_path: Path) -> None:
    captured = capture_text(PRINTS, tmp_path)
    rows = [row for row in captured.artifacts("breaks")[0]["breaks"] if row["kind"] == "break"]
    assert [(row["line"], row["function"], row["count"]) for row in rows] == [(4, "log", 4)]
    assert [(body.message.key, body.line) for body in captured.bodies("finding")] == [("dynamo.break", 4)]


def test_an_active_mode_is_told(tmp_path: Path) -> None:
    captured = capture_text(MODE, tmp_path)
    (finding,) = captured.bodies("finding")
    assert finding.message == message("dynamo.mode_active", mode="Counting", function="model")
    assert (finding.line, finding.hint) == (7, message("dynamo.mode_active_hint"))


def test_the_line_that_fixes_a_marked_size(tmp_path: Path) -> None:
    captured = capture_text(MARKED, tmp_path)
    told, failure = captured.bodies("finding")
    source = "L['x'].size()[0]"
    assert told.message == message("dynamo.specialised", source=source, value="6", code="if y.size(0) == 6:")
    assert (told.line, failure.line) == (5, 5)
    assert captured.outcome == Finished(error=message("run.raised", error="ConstraintViolationError"))
    (failed,) = captured.bodies("stage_failed")
    assert 'File "snippet.py", line 5' in failed.error
    assert str(tmp_path) not in failed.error


def test_hooks_added_after_the_compile(tmp_path: Path) -> None:
    captured = capture_text(HOOKS, tmp_path)
    (finding,) = captured.bodies("finding")
    assert finding.message == message("dynamo.hooks_added", owner="L['fn']", hooks="backward_hooks", count=1)
    assert finding.line == 5


def test_recompiles_for_what_is_no_value_of_an_input(tmp_path: Path) -> None:
    captured = capture_text(MODES, tmp_path)
    rows = [(row["source"], row["old"], row["new"]) for row in captured.artifacts("recompiles")[0]["recompiles"]]
    assert rows[0] == ("grad_mode", "True", "False")
    assert ("L['x'].requires_grad", "False", "True") in rows
    lines = [row["line"] for row in captured.artifacts("recompiles")[0]["recompiles"]]
    assert lines[0] == 10


def test_a_size_out_of_its_range_has_both_values(tmp_path: Path) -> None:
    source = """
        import torch
        def model(x):
            return x * 2
        inputs = (torch.ones(4, 3),)
        calls = [(torch.ones(rows, 3),) for rows in (4, 6, 1)]
    """
    rows = capture_text(source, tmp_path).artifacts("recompiles")[0]["recompiles"]
    found = [(row["entry"], row["source"], row["old"], row["new"], row["line"]) for row in rows]
    assert found == [
        ("0/0", "L['x'].size()[0]", "4", "6", 4),
        ("0/1", "L['x'].size()[0]", "6", "1", 4),
        ("0/0", "L['x'].size()[0]", "4", "1", 4),
    ]


def test_files_in_the_texts_of_torch_are_named_as_they_are_shown(tmp_path: Path) -> None:
    (row,) = capture_text(WHOLE, tmp_path).artifacts("breaks")[0]["breaks"]
    assert row["context"] == "frame skipped: model (snippet.py line 3)"
    assert str(tmp_path) not in str(row)


def test_files_beside_guards_are_named_as_they_are_shown(tmp_path: Path) -> None:
    captured = capture_text(COUNTER, tmp_path)
    texts = [str(payload) for kind in ("guards", "recompiles") for payload in captured.artifacts(kind)]
    texts += [body.reason for body in captured.bodies("compile_started") if body.reason]
    for text in texts:
        assert "# snippet.py:" in text
        assert f"{tmp_path.name}/snippet.py" not in text


def test_a_module_of_torchs_own_is_told_at_the_line_that_makes_it(tmp_path: Path) -> None:
    source = """
        import torch
        inputs = (torch.ones(1, 2),)

        model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    """
    (started,) = capture_text(source, tmp_path).bodies("compile_started")
    assert (started.file, started.line) == ("snippet.py", 5)
