"""The native phase: what g++ makes of a snippet, run, compared, timed, measured, and found in the caches again."""

from __future__ import annotations

from typing import Any

import pytest

from compiler.ir.execution import CachePayload, Divergence, ExecutionPayload
from compiler.ir.memory import MemoryTimelinePayload
from compiler.timeline import GeneratedCode
from compiler.torch_compat.wrapper import code_digest, kernel_lines
from tests.compiler.phases_run import MODELS, run_jobs
from tests.compiler.test_timeline import check, words

# Compiled, it is not what it says: the deliberate error that the comparison must find.
WRONG = '''
import torch


class Odd(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)

    def forward(self, x):
        y = self.fc(x)
        return y * 1.01 if torch.compiler.is_compiling() else y


model = Odd()
compiled = torch.compile(model)
x = torch.randn(3, 4, requires_grad=True)
print("shape", tuple(x.shape))
out = compiled(x)
print("sum", round(float(out.sum()), 3))
print("grad", torch.autograd.grad(out.sum(), x)[0].shape)
'''  # fmt: skip
TANH = """
import torch


class Squash(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(64, 64)

    def forward(self, x):
        y = self.fc(x)
        return torch.tanh(y).square()


model = Squash()
inputs = (torch.randn(32, 64, requires_grad=True),)
"""
MASKS = """
import torch

config = {"functorch": {"activation_memory_budget": 0.0}}


def model(x):
    return torch.nn.functional.dropout(x * 1.5, 0.5, True)


inputs = (torch.ones(256, requires_grad=True),)
"""
OUT_OF_BOUNDS = """
import torch


def model(i, table):
    j = i + 3
    rows = table[j]
    return rows.sin()


inputs = (torch.tensor([0, 1, 2]), torch.randn(5, 4))
"""
RAISES = """
import torch


def model(x):
    torch._dynamo.graph_break()
    return x


inputs = (torch.randn(3),)
compile_kwargs = {"fullgraph": True}
"""
LONG = (
    "llama_block", "resnet_block", "convnext_channels_last", "complex_fft", "moe_topk", "gpt2_block", "vit_block",
    "batchnorm_buffers", "break_logging", "lora_linear", "dlrm_embedding_bag", "train_step_manual_sgd",
)  # fmt: skip


EXECUTE = {"until": "execute"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    jobs = [
        {"name": "captured", "phase": "capture", "file": str(MODELS / "mlp.py")},
        {"name": "mlp", "phase": "native", "file": str(MODELS / "mlp.py"), "captured": "captured"},
        {"name": "wrong", "phase": "native", "source": WRONG, "captured": {"digests": ["0" * 16]}},
        {"name": "wrong_kernel", "phase": "native_with_a_wrong_kernel", "source": TANH, "options": EXECUTE},
        {"name": "masks", "phase": "native", "source": MASKS, "options": EXECUTE},
        {"name": "out_of_bounds", "phase": "native", "source": OUT_OF_BOUNDS, "options": EXECUTE},
        {"name": "raises", "phase": "native", "source": RAISES},
        {"name": "no_compiler", "phase": "native_without_compiler", "file": str(MODELS / "mlp.py")},
        {"name": "until", "phase": "native", "source": RAISES, "options": {"until": "codegen"}},
    ]
    return run_jobs(jobs, tmp_path_factory.mktemp("native"), 250)


def payloads(run: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {made["name"]: made["payload"] for made in run["artifacts"]}


def endings(run: dict[str, Any]) -> list[tuple[str, str]]:
    return [(event["stage"], event["type"]) for event in run["events"] if event["type"].startswith("stage_")]


def test_every_stage_runs_in_order(runs: dict[str, Any]) -> None:
    assert runs["mlp"]["outcome"] == {"type": "finished", "error": None}
    assert endings(runs["mlp"]) == [
        (stage, end) for stage in ("execute", "memory", "cache") for end in ("stage_started", "stage_finished")
    ]


def test_the_graphs_are_those_that_were_captured(runs: dict[str, Any]) -> None:
    assert len(runs["captured"]["captured"]["digests"]) == 2
    assert payloads(runs["mlp"])["execution"]["graphs_differ"] is None


def test_mlp_agrees_and_is_timed_by_kernel(runs: dict[str, Any]) -> None:
    found = ExecutionPayload.model_validate(payloads(runs["mlp"])["execution"])
    assert found.compared
    assert [(one.kind, one.name, one.agrees) for one in found.comparisons] == [
        ("output", "out", True),
        *(("gradient", f"{layer}.{part}", True) for layer in ("fc1", "fc2", "head") for part in ("weight", "bias")),
        ("buffer", "inputs[0]", True),
    ]
    assert found.timing is not None
    assert len(found.timing.eager) == len(found.timing.compiled) >= 10
    assert found.timing.low <= found.timing.ratio <= found.timing.high
    entities = {kernel.entity for kernel in found.kernels}
    assert {"0_0/codegen/forward/cpp_fused_gelu_0", "0_0/codegen/forward/extern_kernels.addmm#3"} <= entities
    calls = {kernel.entity: kernel.calls for kernel in found.kernels}
    assert calls["0_0/codegen/forward/cpp_fused_gelu_0"] == 2
    assert found.compile_seconds is not None
    assert found.native_seconds is not None
    assert 0 < found.native_seconds < found.compile_seconds


def check_memory(run: dict[str, Any]) -> None:
    found = payloads(run)
    series = {name: MemoryTimelinePayload.model_validate(found[name]) for name in ("eager", "compiled")}
    for timeline in series.values():
        check(timeline)
    peaks = found["memory"]["peaks"]
    assert peaks == {
        "eager": series["eager"].peak_bytes,
        "dry_run": series["compiled"].peak_bytes,
        "compiled": series["compiled"].peak_bytes,
    }
    assert found["memory"]["notes"] == []


def test_the_dry_runs_peak_is_the_measured_one(runs: dict[str, Any]) -> None:
    check_memory(runs["mlp"])
    found = payloads(runs["mlp"])
    assert found["memory"]["peaks"] == {"eager": 35_616, "dry_run": 35_360, "compiled": 35_360}
    saved = found["memory"]["saved"]
    assert saved == {
        "partition_bytes": 36_864,
        "partition_activation_bytes": 16_384,
        "kept_tensor_bytes": 36_864,
        "kept_storages_bytes": 16_384,
        "eager_storages_bytes": 16_384,
    }


def test_blocks_have_the_line_of_the_snippet_forward_and_backward(runs: dict[str, Any]) -> None:
    eager = MemoryTimelinePayload.model_validate(payloads(runs["mlp"])["eager"])
    modules, kinds = words(eager, eager.blocks.module), words(eager, eager.blocks.kind)
    found = list(zip(eager.blocks.line, modules, kinds, strict=True))
    # fc1 and its gelu are line 14, fc2's 15, head's 16; the gradients are those of the same lines.
    assert {line for line, _, _ in found} == {14, 15, 16}
    assert {(14, "fc1", "gradient"), (15, "fc2", "gradient"), (16, "head", "gradient")} <= set(found)
    compiled = MemoryTimelinePayload.model_validate(payloads(runs["mlp"])["compiled"])
    assert set(compiled.blocks.line) == {14, 15, 16}


def test_another_batch_size_misses_both_caches_because_of_its_inputs(runs: dict[str, Any]) -> None:
    found = CachePayload.model_validate(payloads(runs["mlp"])["cache"])
    changed = [one for one in found.probes if one.what == "changed"]
    assert sorted((one.cache, one.outcome) for one in changed) == [
        ("aot_autograd", "miss"),
        ("fx_graph", "miss"),
        ("fx_graph", "miss"),
    ]
    differing = [change for one in changed for change in one.changes]
    assert {change.name.partition("[")[0] for change in differing} == {"example_inputs"}
    assert all("Size([16" in change.before and "Size([17" in change.after for change in differing)
    forward = next(one for one in found.probes if one.what == "cold" and one.cache == "fx_graph")
    assert [part.name for part in forward.parts][:2] == ["gm", "example_inputs[0]"]
    assert len(forward.parts) <= 80
    assert all(len(part.text) <= 162 for part in forward.parts)


def test_the_second_compile_hits_both_caches(runs: dict[str, Any]) -> None:
    found = CachePayload.model_validate(payloads(runs["mlp"])["cache"])
    assert sorted((one.what, one.cache, one.outcome) for one in found.probes if one.what != "changed") == [
        ("cold", "aot_autograd", "miss"),
        ("cold", "fx_graph", "miss"),
        ("cold", "fx_graph", "miss"),
        ("warm", "aot_autograd", "hit"),
        ("warm", "fx_graph", "hit"),
        ("warm", "fx_graph", "hit"),
    ]
    keys = {what: {one.key for one in found.probes if one.what == what} for what in ("cold", "warm")}
    assert keys["cold"] == keys["warm"]
    assert "" not in keys["cold"]
    assert found.warm_seconds is not None
    assert found.cold_seconds is not None
    assert found.warm_seconds < found.cold_seconds / 2


def test_a_wrong_script_is_found_by_its_output_and_its_print(runs: dict[str, Any]) -> None:
    run = runs["wrong"]
    found = ExecutionPayload.model_validate(payloads(run)["execution"])
    by_name = {one.name: one for one in found.comparisons}
    assert by_name["Odd #1 out"].agrees is False
    relative = by_name["Odd #1 out"].max_rel
    assert relative is not None
    assert 0.009 < relative < 0.011
    assert by_name["line 1"].agrees is True
    assert by_name["line 2"].agrees is None  # a number that is not close: it may have been a time
    assert by_name["line 3"].agrees is True
    (said, differ) = [event for event in run["events"] if event["type"] == "finding" and event["severity"] != "note"]
    assert differ["message"] == {
        "key": "execute.graphs_differ",
        "params": {"captured": 1, "built": 2, "different": 2},
    }
    assert said["message"]["key"] == "execute.diverges"
    assert said["message"]["params"]["name"] == "Odd #1 out"
    assert endings(run)[-1] == ("cache", "stage_finished")
    assert not [event for event in run["events"] if event["type"] == "printed"]


def ladder(run: dict[str, Any]) -> tuple[Divergence, list[tuple[str, int]]]:
    found = ExecutionPayload.model_validate(payloads(run)["execution"]).divergence
    assert found is not None
    return found, [(step.backend, step.disagree) for step in found.steps]


def test_dynamo_is_the_first_stage_that_differs(runs: dict[str, Any]) -> None:
    found, steps = ladder(runs["wrong"])
    assert steps == [
        ("eager (no compile)", 0),
        ("eager", 1),
        ("aot_eager", 0),
        ("aot_eager_decomp_partition", 0),
        ("inductor", 0),
    ]
    assert (found.first, found.own, found.buffer) == ("eager", False, None)


def test_the_first_wrong_buffer_of_inductor_has_its_line(runs: dict[str, Any]) -> None:
    run = runs["wrong_kernel"]
    found, steps = ladder(run)
    assert [step for step in steps if step[1]] == [("inductor", 4)]
    assert found.first == "inductor"
    buffer = found.buffer
    assert buffer is not None
    # The kernel does not store tanh itself, only its square.
    assert (buffer.entity, buffer.line) == ("0_0/post_grad/forward/pow_1", 12)
    assert buffer.kernel.startswith("0_0/codegen/forward/cpp_fused_")
    assert buffer.difference == pytest.approx((1.01**2 - 1) * buffer.scale, rel=1e-3)
    assert buffer.own is not None
    assert buffer.own < 1e-5
    (said,) = [event for event in run["events"] if event.get("severity") == "error"]
    assert (said["line"], said["entity"], said["hint"]["key"]) == (12, buffer.entity, "execute.first_buffer")


def test_a_backward_that_draws_another_mask_is_found_by_its_slope(runs: dict[str, Any]) -> None:
    run = runs["masks"]
    found = ExecutionPayload.model_validate(payloads(run)["execution"])
    assert found.slope is not None
    assert max(found.slope.eager) < 0.002
    assert min(found.slope.compiled) > 0.02
    assert found.slope.agrees is False
    (said,) = [event for event in run["events"] if event.get("severity") == "error"]
    assert said["message"]["key"] == "execute.masks_differ"


def test_generated_code_that_raises_is_told_with_its_line_and_the_snippets(runs: dict[str, Any]) -> None:
    events = runs["out_of_bounds"]["events"]
    (said,) = [event for event in events if event["type"] == "finding"]
    (failed,) = [event for event in events if event["type"] == "stage_failed" and event["stage"] == "execute"]
    assert (said["severity"], said["line"], failed["line"]) == ("error", 8, 8)
    assert said["entity"].startswith("0_0/codegen/inference/@")
    assert said["hint"]["params"]["code"].startswith("cpp_fused_")
    assert "index out of bounds" in failed["error"]


def test_a_compile_that_raises_fails_execute_with_the_line_and_memory_goes_on(runs: dict[str, Any]) -> None:
    run = runs["raises"]
    assert run["outcome"] == {
        "type": "finished",
        "error": {"key": "execute.raised", "params": {"error": "Unsupported"}},
    }
    assert endings(run) == [
        ("execute", "stage_started"),
        ("execute", "stage_failed"),
        ("memory", "stage_started"),
        ("memory", "stage_finished"),
        ("cache", "stage_skipped"),
    ]
    (failed,) = [event for event in run["events"] if event["type"] == "stage_failed"]
    assert (failed["cause"]["key"], failed["line"]) == ("execute.raised", 6)


def test_without_a_compiler_execute_and_cache_say_what_to_install(runs: dict[str, Any]) -> None:
    run = runs["no_compiler"]
    assert run["outcome"] == {"type": "finished", "error": None}
    skipped = {event["stage"]: event["reason"]["key"] for event in run["events"] if event["type"] == "stage_skipped"}
    assert skipped == {"execute": "execute.no_compiler", "cache": "execute.no_compiler"}
    assert payloads(run)["memory"]["peaks"] == {"eager": 35_616}


def test_nothing_runs_when_only_earlier_stages_are_wanted(runs: dict[str, Any]) -> None:
    nothing = {"events": [], "artifacts": [], "captured": None}
    assert runs["until"] == {"outcome": {"type": "finished", "error": None}, **nothing}


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_the_dry_runs_peak_is_the_measured_one_over_the_corpus(tmp_path: Any) -> None:
    jobs = [{"name": name, "phase": "native", "file": str(MODELS / f"{name}.py")} for name in LONG]
    for name, run in run_jobs(jobs, tmp_path, 1100).items():
        check_memory(run)
        assert [finding for finding in run["events"] if finding.get("severity") == "error"] == [], name


def test_kernel_lines_and_digests() -> None:
    text = (
        "# AOT ID: ['0_forward']\n"
        "cpp_fused_add_0 = async_compile.cpp_pybinding(['float*'], r'''\n"
        "  cpp_fused_add_0(not, code)\n''')\n"
        "    def call(self, args):\n"
        "        extern_kernels.mm(a, b, out=buf0)\n"
        "        cpp_fused_add_0(buf0)\n"
        "        buf1 = torch.ops.aten.topk.default(buf0, 2)\n"
        "        extern_kernels.mm(buf0, b, out=buf2)\n"
    )
    assert kernel_lines(text) == {
        6: "extern_kernels.mm#1",
        7: "cpp_fused_add_0",
        8: "torch.ops.aten.topk.default#1",
        9: "extern_kernels.mm#2",
    }
    assert code_digest(text) == code_digest(text.replace("0_forward", "7_forward"))
    assert code_digest(text) != code_digest(text.replace("topk", "sort"))
    assert GeneratedCode("0/0", "forward", text, lambda *_: None).site(8).name == "buf1"
