"""What is understood of a snippet, how it is loaded, and how it is called."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
import torch

from compiler.errors import SnippetError
from compiler.events import Mode, RunRequest
from compiler.snippet import Loaded, load, named_tensors, requires_grad, run_calls, run_script, understand
from compiler.text import message


def read(source: str, folder: Path):
    file = folder / "snippet.py"
    file.write_text(dedent(source), encoding="utf-8")
    return understand(RunRequest(source=dedent(source)), file)


def loaded(source: str, folder: Path) -> Loaded:
    return load(read(source, folder))


@pytest.mark.parametrize(
    ("source", "form"),
    [
        ("model = f\ninputs = (1,)", "declared"),
        ("import re\nmodel = re.compile('a')\ninputs = ('a',)", "declared"),
        ("def scenario(fn):\n    torch.compile(fn)\nmodel = f\ninputs = ()", "declared"),
        ("model = f\ninputs = (1,)\ntorch.compile(model)(*inputs)", "script"),
        ("model = f\ntorch.compile(model)(1)", "script"),
        ("if __name__ == '__main__':\n    model = f\n    inputs = (1,)\n    model.compile()", "script"),
        ("@torch.compile\ndef f(x): return x\nf(1)", "script"),
        ("print(1)", "script"),
    ],
)
def test_form(source: str, form: str, tmp_path: Path) -> None:
    assert read(source, tmp_path).form == form


@pytest.mark.parametrize(
    ("source", "cause", "line"),
    [
        ("x = 1\ndef f(:\n  pass", message("snippet.syntax", text="invalid syntax"), 2),
        ("import torch\nmodel = torch.nn.ReLU()\n", message("snippet.no_inputs"), 2),
        ("\n\ninputs = (1,)\n", message("snippet.no_model"), 3),
        (
            "import torch\nimport no_such_thing\nmodel = 1\ninputs = ()",
            message("snippet.import", module="no_such_thing"),
            2,
        ),
        ("model = 1\ninputs = ()", message("snippet.model_not_callable", type="int"), 1),
        ("model = print\ninputs = 3", message("snippet.wrong_type", name="inputs", wanted="tuple", type="int"), 2),
        (
            "model = print\ninputs = ()\ndef f():\n    return 1 / 0\nf()",
            message("snippet.raised", error="ZeroDivisionError"),
            4,
        ),
        ("import sys\nmodel = print\ninputs = ()\nsys.exit(3)", message("snippet.exit", code="3"), 4),
    ],
)
def test_faults(source: str, cause: object, line: int, tmp_path: Path) -> None:
    with pytest.raises(SnippetError) as caught:
        loaded(source, tmp_path)
    assert (caught.value.cause, caught.value.line) == (cause, line)


LINEAR = """
    import torch
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    inputs = (torch.randn(4, 3, requires_grad=True),)
"""


def test_a_call_leaves_outputs_gradients_and_buffers(tmp_path: Path) -> None:
    snippet = loaded(LINEAR, tmp_path)
    (result,) = run_calls(snippet, snippet.model, Mode.AUTO, keep=True)
    assert set(result.outputs) == {"out"}
    assert set(result.gradients) == {"0.weight", "0.bias", "1.weight", "1.bias", "inputs[0]"}
    assert set(result.buffers) == {"1.running_mean", "1.running_var", "1.num_batches_tracked", "inputs[0]"}


def test_loading_and_calling_again_gives_the_same(tmp_path: Path) -> None:
    first, second = (loaded(LINEAR, tmp_path) for _ in range(2))
    one = run_calls(first, first.model, Mode.AUTO, keep=True)
    two = run_calls(second, second.model, Mode.AUTO, keep=True)
    torch.testing.assert_close(one[0].gradients, two[0].gradients, rtol=0, atol=0)


def test_inference_records_no_gradient(tmp_path: Path) -> None:
    snippet = loaded(LINEAR, tmp_path)
    (result,) = run_calls(snippet, snippet.model, Mode.INFERENCE, keep=True)
    assert result.gradients == {}


def test_training_is_forced_on_inputs(tmp_path: Path) -> None:
    snippet = loaded("import torch\nmodel = torch.sin\ninputs = (torch.ones(2),)", tmp_path)
    assert not requires_grad(snippet)
    (result,) = run_calls(snippet, snippet.model, Mode.TRAINING, keep=True)
    torch.testing.assert_close(result.gradients, {"inputs[0]": torch.ones(2).cos()})


def test_a_function_requires_grad_through_what_it_names(tmp_path: Path) -> None:
    source = "import torch\nnet = torch.nn.Linear(2, 2)\ndef model(x): return net(x)\ninputs = (torch.ones(2),)"
    assert requires_grad(loaded(source, tmp_path))


def test_names_look_into_containers_and_dataclasses(tmp_path: Path) -> None:
    source = """
        import dataclasses, torch
        @dataclasses.dataclass
        class Out:
            logits: torch.Tensor
            rest: dict
        def model(x): return Out(x, {"a": [x, 1, (x,)]})
        inputs = (torch.ones(1),)
    """
    snippet = loaded(source, tmp_path)
    names = [name for name, _ in named_tensors(snippet.model(*snippet.calls[0]), "out")]
    assert names == ["out.logits", "out.rest['a'][0]", "out.rest['a'][2][0]"]


SCRIPT = """
    import sys, torch
    @torch.compile(backend="eager")
    def f(x):
        return x + 1
    class Net(torch.nn.Module):
        def forward(self, x):
            return f(x) * 2
    net = torch.compile(Net(), backend="eager")
    inner = Net()
    inner.compile(backend="eager")
    print(__name__, sys.argv[0] == __file__, list(net.state_dict()))
    print(f(torch.ones(1)).item(), net(torch.ones(1)).item(), inner(torch.ones(1)).item())
    torch.manual_seed(0)
    print(isinstance(net, torch.nn.Module), type(net).__name__)
"""


def test_the_eager_twin_does_and_says_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    snippet = read(SCRIPT, tmp_path)
    runs, texts = [], []
    for identity in (False, True):
        torch._dynamo.reset()
        runs.append(run_script(snippet, compile_identity=identity))
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1] == "__main__ True []\n2.0 4.0 4.0\nTrue OptimizedModule\n"
    calls = [[(call.name, call.index, call.outputs["out"].item()) for call in run.calls] for run in runs]
    assert calls[0] == calls[1] == [("f", 0, 2.0), ("Net", 0, 4.0), ("Net", 1, 4.0)]
    assert [run.compiled for run in runs] == [3, 3]


def test_torch_is_left_as_it_was(tmp_path: Path) -> None:
    before = torch.compile
    with pytest.raises(ZeroDivisionError):
        run_script(read("1 / 0", tmp_path), compile_identity=False)
    assert torch.compile is before
