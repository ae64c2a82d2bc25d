"""Compiling for a GPU that is not there: in processes of their own, because what that needs changes torch for good.

AOTSCOPE_UPDATE_GOLDEN=1 writes the golden figures anew."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from compiler.targets import TARGETS
from tests.compiler.corpus_run import run_corpus

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "tests" / "corpus"
GOLDEN = ROOT / "tests" / "golden" / "virtual_gpu.json"
# Of each target: the cases of the corpus that do not compile there, and why.
LIMITS = ROOT / "tests" / "golden" / "virtual_gpu_limits.json"
NEEDS_VALUES, TWO_DEVICES, SPARSE = "virtual.needs_values", "virtual.two_devices", "virtual.sparse"
# The targets for which the whole corpus is compiled; ten models for each of the others.
WHOLE = ("sm_90",)
# It ran to its end, and Dynamo left all of it to eager.
NO_GRAPH = "no graph"
# Of those that compile on the CPU and ask for no value.
BAR = 0.9

SMALL = ("attention_block", "resnet_block", "two_layer_net", "views_and_mutation")
SMOKE = (
    "mlp", "resnet_block", "gpt2_block", "llama_block", "batchnorm_buffers", "custom_autograd_function", "dynamic_batch",
    "moe_topk", "selective_checkpoint", "gnn_scatter_add",
)  # fmt: skip
# Cases of the corpus that ask for a value as they run, and where; those with a `scenario` do, too.
ASKS = {
    "break_data_dependent_if": "if y.sum() > 0",
    "break_try_except": "h.sum().item()",
    "moe_sparse_loop": "torch.where(idx == e)",
    "boolean_mask_captured": "an index of booleans",
    "boolean_mask_indexing": "an index of booleans",
    "masked_select_fullgraph": "masked_select",
    "tolist_vs_item": "tolist()",
    "break_inside_for_loop": "item()",
    "surrogate_gradient_break": "item() in a backward",
    "while_loop_backward_stride": "while_loop in eager, which Dynamo leaves it to, on the CPU too",
}
FIGURES = (
    "compiled_graphs", "saved_bytes", "scheduler_nodes_after_fusion", "distinct_cpp_kernels", "cpp_kernel_launches",
    "extern_calls", "error",
)  # fmt: skip

SNIPPETS = {
    # Written for the CPU; what it branches on has no value.
    "branch": """
        import torch
        def model(x):
            y = x * 2
            if y.sum() > 0:
                return y.sin()
            return y.cos()
        inputs = (torch.randn(1000),)
    """,
    "nonzero": """
        import torch
        def model(x):
            return torch.nonzero(x.sin()) * 2
        inputs = (torch.randn(1000),)
    """,
    "recurrent": """
        import torch
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.lstm, self.gru = torch.nn.LSTM(8, 8), torch.nn.GRU(8, 8)
            def forward(self, x):
                return self.gru(self.lstm(x)[0])[0]
        model = Net()
        inputs = (torch.randn(4, 2, 8),)
    """,
    # Written for a GPU: it asks whether there is one, moves, trains, and reads the loss at the end.
    "asks": """
        import torch
        device = "cuda" if torch.cuda.is_available() else "cpu"
        print(device, torch.cuda.get_device_capability())
        net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.LayerNorm(8)).to(device)
        optimizer = torch.optim.AdamW(net.parameters())
        compiled = torch.compile(net)
        loss = compiled(torch.randn(4, 8).cuda()).pow(2).mean()
        loss.backward()
        optimizer.step()
        print(loss.item())
    """,
    # What a GPU decides by timing, in a script that times, streams and draws as people do.
    "tuned": """
        import torch
        generator = torch.Generator(device="cuda").manual_seed(3)
        x, w = (torch.randn(256, 256, generator=generator, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        f = torch.compile(lambda x: torch.relu(x @ w), mode="max-autotune")
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        with torch.cuda.stream(torch.cuda.Stream()), torch.inference_mode():
            begin.record()
            f(x)
            end.record()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph), torch.inference_mode():
            f(x)
        graph.replay()
        assert "GPU reserved memory" in torch.cuda.memory_summary()
        print(begin.elapsed_time(end))
    """,
    # A buffer that no constructor of torch's made, and sizes that vary.
    "moved": """
        import numpy, torch
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("w", torch.from_numpy(numpy.ones((4, 4), numpy.float32)))
            def forward(self, x):
                return (x @ self.w).tanh()
        model = Net()
        calls = [(torch.from_numpy(numpy.ones((n, 4), numpy.float32)),) for n in (2, 3, 5)]
        inputs = calls[0]
    """,
    # An array whose operators go through the default device, and a literal of which the trace computes the value.
    "arrays": """
        import numpy, torch
        def model(x):
            a = x.detach().numpy()
            return x * torch.from_numpy(numpy.sqrt(a * a + 1)) + torch.tensor(2)
        inputs = (torch.randn(4, 4, requires_grad=True),)
    """,
    "mixed": """
        import torch
        table = torch.ones(8, device="cpu")
        def model(x):
            return x + table
        inputs = (torch.randn(8),)
    """,
    "sparse": """
        import torch
        model = torch.sparse.mm
        inputs = (torch.sparse_coo_tensor([[0, 1], [1, 0]], torch.ones(2), (4, 4)).coalesce(), torch.randn(4, 4))
    """,
    "wrong": """
        import torch
        model = torch.nn.Linear(8, 8)
        inputs = (torch.randn(4, 9),)
    """,
}


def cause(result: dict[str, Any]) -> str:
    """Why a run gave no whole result: the key of its sentence, with what raised; "" when it gave one."""
    outcome = result["outcome"]
    if outcome is None:
        return f"the process ended: {result['exit']}"
    told = outcome["cause"] if outcome["type"] == "failed" else outcome["error"]
    if told is not None:
        return f"{told['key']} {told['params'].get('error', '')}".strip()
    return "" if result["summary"]["compiled_graphs"] else NO_GRAPH


# A warmed process for each of two targets: a minute on two quiet cores; the limit is for busy ones.
pytestmark = pytest.mark.timeout(900)

# --- the normal tier -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("virtual")
    files = [ROOT / "server" / "examples" / f"{name}.py" for name in SMALL]
    for name, source in SNIPPETS.items():
        (folder / f"{name}.py").write_text(dedent(source), encoding="utf-8")
        files.append(folder / f"{name}.py")
    return {target: run_corpus(target, folder, files, seconds=600) for target in ("sm_90", "gfx942")}


def test_examples_give_the_golden_figures(small: dict[str, dict[str, Any]]) -> None:
    """Written for the CPU, they compile as they stand."""
    found = {
        target: {
            name: {figure: results[name]["summary"][figure] for figure in FIGURES}
            | {"stages": sorted({stage for _, stage in results[name]["stages"]})}
            for name in SMALL
        }
        for target, results in small.items()
    }
    if os.environ.get("AOTSCOPE_UPDATE_GOLDEN"):
        GOLDEN.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    assert found == json.loads(GOLDEN.read_text(encoding="utf-8"))


def test_every_statement_of_triton_is_linked_to_its_node_and_line(small: dict[str, dict[str, Any]]) -> None:
    for results in small.values():
        for name in SMALL:
            statements, with_node, with_line = results[name]["statements"]
            assert statements == with_node == with_line > 0


@pytest.mark.parametrize(
    ("name", "line", "operator"),
    [("branch", 5, "aten._local_scalar_dense.default"), ("nonzero", 4, "aten.nonzero.default")],
)
def test_a_value_that_is_asked_for_is_a_limit_at_its_line(
    small: dict[str, dict[str, Any]], name: str, line: int, operator: str
) -> None:
    for results in small.values():
        assert results[name]["outcome"]["error"] == {"key": NEEDS_VALUES, "params": {"operator": operator}}
        assert [NEEDS_VALUES, line] in results[name]["findings"]
        # What comes before was compiled.
        assert results[name]["summary"]["distinct_cpp_kernels"] == 1


def test_recurrent_layers_run_outside_of_the_compiled_code(small: dict[str, dict[str, Any]]) -> None:
    for results in small.values():
        assert results["recurrent"]["outcome"] == {"type": "finished", "error": None}


def test_a_script_for_the_gpu_runs_as_written(small: dict[str, dict[str, Any]]) -> None:
    for target, capability in (("sm_90", "(9, 0)"), ("gfx942", "(9, 4)")):
        result = small[target]["asks"]
        assert result["printed"].startswith(f"cuda {capability}\n")
        assert result["summary"]["compiled_graphs"] == 1
        assert result["summary"]["bw_nodes"]
        assert result["outcome"]["error"]["key"] == NEEDS_VALUES
        assert [NEEDS_VALUES, 11] in result["findings"]


def test_what_a_gpu_would_time_or_record_is_told_as_unknown(small: dict[str, dict[str, Any]]) -> None:
    for results in small.values():
        assert results["tuned"]["printed"] == "nan\n"
        told = {one["kind"]: one for one in results["tuned"]["decisions"]}
        selection = told["selection"]
        assert selection["count"] == 1
        assert len(selection["details"]) == selection["text"]["params"]["all"] > 3
        (shown,) = (text for text in selection["details"] if text.endswith("←"))
        assert shown.startswith("mm: mm")
        assert any("BLOCK_M" in text for text in selection["details"])
        assert told["cudagraphs"]["text"]["params"] == {"recorded": 1, "skipped": 0}


def test_what_is_declared_is_moved_to_the_gpu(small: dict[str, dict[str, Any]]) -> None:
    for results in small.values():
        assert results["moved"]["outcome"] == {"type": "finished", "error": None}
        # The second size makes it dynamic; the third fits.
        assert results["moved"]["summary"]["compiled_graphs"] == 2


def test_arrays_and_literals_are_compiled(small: dict[str, dict[str, Any]]) -> None:
    for results in small.values():
        assert results["arrays"]["outcome"] == {"type": "finished", "error": None}
        assert results["arrays"]["summary"]["compiled_graphs"] == 1
        assert results["arrays"]["summary"]["bw_nodes"]


def test_what_cannot_be_on_the_gpu_is_a_limit_that_says_where(small: dict[str, dict[str, Any]]) -> None:
    for results in small.values():
        assert results["mixed"]["outcome"]["error"] == {"key": TWO_DEVICES, "params": {"lines": "3"}}
        assert [TWO_DEVICES, 5] in results["mixed"]["findings"]
        assert results["sparse"]["outcome"]["cause"] == {"key": SPARSE, "params": {}}
        assert results["sparse"]["outcome"]["line"] == 4


def test_a_fault_of_the_model_is_no_limit_of_ours(small: dict[str, dict[str, Any]]) -> None:
    for results in small.values():
        assert results["wrong"]["outcome"]["error"]["key"] == "run.raised"


# --- the long tier ---------------------------------------------------------------------------------------------------


def corpus() -> list[Path]:
    return sorted((*(CORPUS / "models").glob("*.py"), *(CORPUS / "issues").glob("*.py")))


def compiled_on_cpu() -> set[str]:
    """By torch's own tools: a graph at least, and no exception."""
    reference = json.loads((CORPUS / "reference.json").read_text(encoding="utf-8"))
    return {
        name
        for folder in ("models", "issues")
        for name, case in reference[folder].items()
        if case["summary"]["error"] is None and case["summary"]["compiled_graphs"] > 0
    }


def asking() -> set[str]:
    """Cases that need a value: by a `scenario` of their own, which reads results, or as ASKS says."""
    return {file.stem for file in corpus() if "def scenario" in file.read_text(encoding="utf-8")} | set(ASKS)


@pytest.mark.long
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("target", WHOLE)
def test_the_corpus_compiles(target: str, tmp_path: Path) -> None:
    """Every case compiles or ends in a limit that is known by its name; and of those that compile on the CPU and need no value,
    at least `BAR` compile."""
    results = run_corpus(target, tmp_path, corpus(), seconds=2900)
    causes = {name: cause(result) for name, result in results.items()}
    for name, why in causes.items():
        kernels = (results[name]["summary"] or {}).get("distinct_cpp_kernels", "-")
        print(f"{name:34s} {kernels!s:>4} kernels  {results[name]['seconds']:6.1f} s  {why or 'compiled'}")
    wanted = compiled_on_cpu() - asking()
    share = sum(not causes[name] for name in wanted) / len(wanted)
    print(f"{target}, of all {len(causes)}, by cause: {dict(Counter(why or 'compiled' for why in causes.values()))}")
    print(f"{target}, of the {len(wanted)} that compile on the CPU and need no value: {share:.1%} compile")
    assert set(causes) == {file.stem for file in corpus()}
    assert all(result["outcome"] is not None and result["exit"] == 0 for result in results.values())
    limits = {name: why for name, why in sorted(causes.items()) if why}
    known = json.loads(LIMITS.read_text(encoding="utf-8")) if LIMITS.exists() else {}
    if os.environ.get("AOTSCOPE_UPDATE_GOLDEN"):
        LIMITS.write_text(json.dumps(known | {target: limits}, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    else:
        assert limits == known[target]
    # None for want of a value that the case does not ask for, and no exception of torch's that the CPU does not raise, too.
    assert {name for name, why in limits.items() if why.startswith(NEEDS_VALUES)} <= asking()
    assert not {name for name, why in limits.items() if why.startswith("run.")} & compiled_on_cpu()
    assert share >= BAR


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("target", [one.id for one in TARGETS if one.kind == "virtual" and one.id not in WHOLE])
def test_the_other_targets_compile_ten_models(target: str, tmp_path: Path) -> None:
    results = run_corpus(target, tmp_path, [CORPUS / "models" / f"{name}.py" for name in SMOKE], seconds=850)
    assert {name: cause(result) for name, result in results.items()} == dict.fromkeys(SMOKE, "")
    assert all(result["summary"]["distinct_cpp_kernels"] for result in results.values())
