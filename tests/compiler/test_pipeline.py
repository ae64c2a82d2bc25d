"""A phase as a whole: both forms, its endings, and its frames."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest
import torch

from compiler.events import Failed, Finished, Mode, Options, RunRequest, StageName
from compiler.pipeline import capture
from compiler.text import Message, message
from tests.compiler.capturing import Captured, capture_text
from tests.compiler.corpus_run import read_frames

ROOT = Path(__file__).parents[2]

SIGMOID = """
    import torch


    class Small(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = torch.nn.Linear(4, 2)

        def forward(self, x):
            return torch.sigmoid(self.fc(x))


    if __name__ == "__main__":
        model = Small()
        x = torch.randn(8, 4, requires_grad=True)
        for node in torch.fx.symbolic_trace(model).graph.nodes:
            print(node.name)
        compiled = torch.compile(model)
        with torch.no_grad():
            print(torch.allclose(model(x), compiled(x)))
        out = compiled(x)
        (grad,) = torch.autograd.grad(out.sum(), x)
        print(tuple(grad.shape))
"""

COMPILE_STAGES = (
    "pre_grad", "joint", "joint_passes", "partition", "post_grad", "schedule", "fusion", "codegen",
)  # fmt: skip


def test_a_script_works_as_it_stands(tmp_path: Path) -> None:
    captured = capture_text(SIGMOID, tmp_path, until=None)
    assert captured.outcome == Finished()
    assert captured.printed() == "x\nfc\nsigmoid\noutput\nTrue\n(8, 4)\n"
    assert captured.printed("stderr") == ""
    (source,) = captured.artifacts("source")
    assert (source["form"], source["model"]) == ("script", "Small")
    ended = {(frame.compile, frame.stage) for frame in captured.events if frame.body.type == "stage_finished"}
    assert {("0/1", stage) for stage in COMPILE_STAGES} <= ended
    assert ("0/0", "partition") not in ended
    assert captured.summary()["compiled_graphs"] == 2
    assert len(captured.summary()["bw_nodes"]) == 1
    assert captured.bodies("stage_failed") == []


def test_another_backend_stays_in_force(tmp_path: Path) -> None:
    source = """
        import torch
        model = torch.nn.Linear(2, 2)
        inputs = (torch.ones(1, 2),)
        compile_kwargs = {"backend": "aot_eager"}
    """
    captured = capture_text(source, tmp_path, until=StageName.CODEGEN)
    assert captured.outcome == Finished()
    dynamo = [
        frame.body for frame in captured.events if frame.body.type == "stage_finished" and frame.stage == "dynamo"
    ]
    assert dynamo[0].facts["backend"] == "aot_eager"
    skipped = {frame.stage for frame in captured.events if frame.body.type == "stage_skipped"}
    assert {"pre_grad", "schedule", "fusion", "codegen"} <= skipped


def test_until_stops_there(tmp_path: Path) -> None:
    source = "import torch\nmodel = torch.nn.ReLU()\ninputs = (torch.ones(2),)\nprint('loaded')"
    only = capture_text(source, tmp_path, until=StageName.SOURCE)
    assert only.story() == ["- source stage_started", "- source stage_finished"]
    assert only.printed() == "loaded\n"
    dynamo = capture_text(source, tmp_path, until=StageName.DYNAMO)
    assert dynamo.story() == [
        "- source stage_started",
        "- source stage_finished",
        "0/0 - compile_started",
        "0/0 dynamo stage_started",
        "0/0 dynamo stage_finished",
    ]
    assert dynamo.summary()["joint_nodes"] == []


@pytest.mark.parametrize(
    ("source", "outcome"),
    [
        (
            "def f(:",
            Failed(
                cause=message("snippet.syntax", text="invalid syntax"),
                error="invalid syntax (snippet.py, line 1)",
                line=1,
            ),
        ),
        (
            "class Net(__import__('torch').nn.Module):\n    pass\n",
            Failed(cause=message("snippet.never_compiled", name="Net"), line=1),
        ),
        ("import torch\ntorch.compile(torch.sin)\n", Failed(cause=message("snippet.never_called"))),
        ("x = 1\n", Failed(cause=message("snippet.nothing"))),
        (
            "import torch\ndef g():\n    raise KeyError('k')\ng()\n",
            Failed(
                cause=message("snippet.raised", error="KeyError"),
                error="KeyError: 'k'",
                line=3,
                traceback=(
                    '  File "snippet.py", line 4, in <module>\n    g()\n'
                    "  File \"snippet.py\", line 3, in g\n    raise KeyError('k')"
                ),
            ),
        ),
        (
            "import torch\ng = torch.compile(torch.sin)\n1 / 0\n",
            Failed(
                cause=message("snippet.raised", error="ZeroDivisionError"),
                error="ZeroDivisionError: division by zero",
                line=3,
                traceback='  File "snippet.py", line 3, in <module>\n    1 / 0',
            ),
        ),
        (
            "model = print\ninputs = ()\nconfig = {'inductor': {'no_such': 1}}",
            Failed(cause=message("snippet.unknown_setting", name="inductor.no_such"), line=3),
        ),
    ],
)
def test_a_fault_of_the_snippet_fails_the_run(source: str, outcome: Failed, tmp_path: Path) -> None:
    captured = capture_text(source, tmp_path)
    assert captured.outcome == outcome
    (failed,) = captured.bodies("stage_failed")
    assert (failed.cause, failed.line) == (outcome.cause, outcome.line)


@pytest.mark.parametrize(
    ("body", "calls", "cause"),
    [
        ("x", "g(1)", message("snippet.raised_after_call", error="ZeroDivisionError")),
        (
            "x + 1",
            "g(torch.ones(2)), g(torch.ones(2, 2))",
            message("snippet.raised_after_compile", error="ZeroDivisionError", count=2),
        ),
    ],
)
def test_a_script_that_raises_after_a_compile_is_told_so(body: str, calls: str, cause: Message, tmp_path: Path) -> None:
    source = f"import torch\n@torch.compile\ndef g(x):\n    return {body}\n{calls}\n1 / 0\n"
    captured = capture_text(source, tmp_path)
    assert captured.outcome == Failed(
        cause=cause,
        error="ZeroDivisionError: division by zero",
        line=6,
        traceback='  File "snippet.py", line 6, in <module>\n    1 / 0',
    )
    # The stages that were done were done.
    assert captured.bodies("stage_failed") == []


def test_a_fault_of_the_model_is_a_finished_run(tmp_path: Path) -> None:
    source = """\
        import torch
        def model(x):
            return x @ torch.ones(5, 5)
        inputs = (torch.ones(2, 3),)
    """
    captured = capture_text(source, tmp_path)
    assert isinstance(captured.outcome, Finished)
    assert captured.outcome.error is not None
    (place,) = [(f.compile, f.stage, f.body.line) for f in captured.events if f.body.type == "stage_failed"]
    assert place == ("0/0", "dynamo", 3)
    assert captured.summary()["error"] == captured.outcome.error.params["error"]


def test_a_fault_while_running_belongs_to_the_execution(tmp_path: Path) -> None:
    source = """\
        import torch
        def model(x):
            torch._dynamo.graph_break()
            return x[torch.zeros(1, dtype=torch.long) + 7]
        inputs = (torch.ones(2),)
        def loss(out):
            raise ValueError("mine")
    """
    captured = capture_text(source.replace("+ 7", "+ 1"), tmp_path)
    (place,) = [(f.stage, f.body.line) for f in captured.events if f.body.type == "stage_failed"]
    assert place == ("execute", 7)


def test_a_graph_that_fails_when_it_runs_is_told_with_its_operators_line(tmp_path: Path) -> None:
    source = """
        import torch
        def model(i, table):
            j = i + 3
            return table[j].sin()
        inputs = (torch.tensor([0, 1, 2]), torch.randn(5, 4))
    """
    captured = capture_text(source, tmp_path, until=None)
    (failed,) = captured.bodies("stage_failed")
    (finding,) = captured.bodies("finding")
    assert failed.line == finding.line == 5
    assert finding.entity == "0_0/post_grad/inference/index"
    assert finding.hint == message("run.raised_at", node="index", graph="inference", compile="0/0")
    assert failed.cause == message("run.raised", error="IndexError")


def test_modes(tmp_path: Path) -> None:
    source = "import torch\nmodel = torch.nn.Linear(2, 2)\ninputs = (torch.ones(1, 2),)"
    shown = [capture_text(source, tmp_path, mode=mode).artifacts("source")[0] for mode in Mode]
    assert [payload["mode"] for payload in shown] == ["training", "training", "inference"]
    assert [text["key"] for text in shown[0]["assumed"]] == ["source.mode_training", "source.default_loss"]
    assert [value["name"] for value in shown[0]["inputs"]] == ["input"]


def test_a_users_own_file_finds_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "layers.py").write_text("def double(x):\n    print('in layers')\n    return x * 2\n", encoding="utf-8")
    file = tmp_path / "train.py"
    file.write_text(
        "import torch, layers\ndef model(x):\n    return layers.double(x)\ninputs = (torch.ones(2),)\n",
        encoding="utf-8",
    )
    captured = Captured()
    request = RunRequest(source=file.read_text(encoding="utf-8"), options=Options(until=StageName.DYNAMO))
    torch._dynamo.reset()
    assert capture(request, captured, path=file, root=tmp_path) == Finished()
    (started,) = {(body.file, body.line) for body in captured.bodies("compile_started")[:1]}
    assert started == ("train.py", 2)
    frames = [
        (frame["file"], frame["line"]) for row in captured.artifacts("breaks")[0]["breaks"] for frame in row["stack"]
    ]
    assert ("layers.py", 2) in frames


def test_a_module_of_torchs_own_is_shown_at_its_call(tmp_path: Path) -> None:
    source = """
        import torch
        model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
        compiled = torch.compile(model)
        compiled(torch.ones(1, 2))
    """
    (started,) = capture_text(source, tmp_path).bodies("compile_started")
    assert (started.file, started.line) == ("snippet.py", 5)


SURROGATES = """
import torch
model = torch.sin
inputs = (torch.ones(1),)
def scenario(fn):
    raise KeyError("a\\udc80b")
"""


@pytest.mark.parametrize(
    ("source", "type_"),
    [(SURROGATES, "finished"), ("import torch\nraise ValueError('a\\udc80b')\n", "failed")],
    ids=["of the model", "of the script"],
)
def test_any_text_of_an_exception_reaches_the_reader(tmp_path: Path, source: str, type_: str) -> None:
    """A lone surrogate is not UTF-8: it is shown as its escape."""
    request = RunRequest(source=source, options=Options(until=StageName.DYNAMO)).model_dump_json()
    events, done = read_frames(spawned(request, tmp_path))
    assert done is not None
    assert done.outcome.type == type_
    told = [event.body.error for event in events if event.body.type == "stage_failed"]
    assert any("a\\udc80b" in text for text in told)


def spawned(request: str, folder: Path) -> bytes:
    """The frames of a capture phase in a process of its own."""
    frames = folder / "frames"
    command = ["bash", "-c", 'exec 3>"$0"; exec "$@"', str(frames), sys.executable, "-m", "compiler.child"]
    subprocess.run([*command, "capture", "", str(folder)], input=request, cwd=ROOT, text=True, check=True)
    return frames.read_bytes()


def test_output_is_cut(tmp_path: Path) -> None:
    source = "import torch\nmodel = torch.sin\ninputs = (torch.ones(1),)\nfor _ in range(300): print('x' * 9999)"
    captured = capture_text(source, tmp_path)
    assert captured.outcome == Finished()
    assert len(captured.printed()) == 1_000_000
    assert [body.limit_bytes for body in captured.bodies("output_cut")] == [1_000_000]


def test_a_spawned_child_speaks_frames(tmp_path: Path) -> None:
    source = """
        import sys, torch
        print("out")
        print("err", file=sys.stderr)
        model = torch.nn.ReLU()
        inputs = (torch.ones(2),)
    """
    request = RunRequest(source=dedent(source), options=Options(until=StageName.DYNAMO)).model_dump_json()
    events, done = read_frames(spawned(request, tmp_path))
    assert done is not None
    assert done.outcome == Finished()
    printed = [(event.body.stream, event.body.text) for event in events if event.body.type == "printed"]
    assert printed == [("stdout", "out\n"), ("stderr", "err\n")]
    assert json.loads((ROOT / "compiler/messages/en/run.json").read_text())["run.internal"]
