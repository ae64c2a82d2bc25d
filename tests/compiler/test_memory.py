"""The memory stage of the capture phase: the dry run, without any C++ compiler."""

from __future__ import annotations

from typing import Any

import pytest

from compiler.ir.memory import MemoryTimelinePayload
from tests.compiler.phases_run import MODELS, run_jobs
from tests.compiler.test_timeline import check, words

TRAINED = ("mlp", "llama_block", "resnet_block", "moe_topk", "complex_fft")
OTHERS = ("dynamic_batch", "break_logging", "selective_checkpoint")
INFERENCE = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).requires_grad_(False)
inputs = (torch.randn(16, 64),)
"""
NOTHING = """
import torch
def model(x):
    return x + 1
inputs = (torch.randn(4),)
compile_kwargs = {"backend": "eager"}
"""
CONSTANT = """
import torch
TABLE = torch.arange(6.0)
def model(x):
    return x * TABLE + torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
inputs = (torch.randn(5, 6),)
"""
KILLS = """
import torch, os
count = [0]
class M(torch.nn.Module):
    def forward(self, x):
        y = (x * 2).sum()
        torch._dynamo.graph_break()
        count[0] += 1
        if count[0] > 1:
            os._exit(7)
        return y + 1
model = M()
inputs = (torch.randn(4, requires_grad=True),)
"""
SCRIPT = '''
import torch
model = torch.nn.Linear(32, 16)
compiled = torch.compile(model)
compiled(torch.randn(8, 32)).sum().backward()
print("done")
'''  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    jobs = [{"name": name, "phase": "capture", "file": str(MODELS / f"{name}.py")} for name in (*TRAINED, *OTHERS)]
    texts = {"inference": INFERENCE, "nothing": NOTHING, "constant": CONSTANT, "kills": KILLS, "script": SCRIPT}
    jobs += [{"name": name, "phase": "capture", "source": text} for name, text in texts.items()]
    return run_jobs(jobs, tmp_path_factory.mktemp("memory"), 200)


def memory_events(run: dict[str, Any]) -> list[dict[str, Any]]:
    return [event for event in run["events"] if event["stage"] == "memory"]


def payload(run: dict[str, Any], kind: str, name: str | None = None) -> dict[str, Any]:
    made = [made for made in run["artifacts"] if made["artifact"]["kind"] == kind and made["name"] == (name or kind)]
    (found,) = [one["payload"] for one in made]
    return found  # type: ignore[no-any-return]


def dry_run(run: dict[str, Any]) -> MemoryTimelinePayload:
    return MemoryTimelinePayload.model_validate(payload(run, "timeline", "dry_run"))


def plans(run: dict[str, Any]) -> list[tuple[str | None, str | None, MemoryTimelinePayload]]:
    return [
        (made["compile"], made["graph"], MemoryTimelinePayload.model_validate(made["payload"]))
        for made in run["artifacts"]
        if made["name"] == "plan"
    ]


@pytest.mark.parametrize("name", [*TRAINED, *OTHERS, "inference", "constant", "script"])
def test_the_timeline_is_consistent_and_the_stage_ends(runs: dict[str, Any], name: str) -> None:
    run = runs[name]
    assert run["outcome"] == {"type": "finished", "error": None}
    assert [event["type"] for event in memory_events(run) if event["type"] != "finding"] == [
        "stage_started",
        "stage_finished",
    ]
    found = dry_run(run)
    check(found)
    assert found.peak_bytes > 0
    figures = payload(run, "memory")
    whole = [plan.peak_bytes for compile_id, _, plan in plans(run) if compile_id is None]
    assert figures["peaks"] == {"dry_run": found.peak_bytes} | ({"plan": whole[0]} if whole else {})


@pytest.mark.parametrize("name", TRAINED)
def test_the_partitions_bytes_are_what_autograd_really_holds(runs: dict[str, Any], name: str) -> None:
    saved = payload(runs[name], "memory")["saved"]
    assert saved["partition_bytes"] == saved["kept_tensor_bytes"] > 0


def test_the_partitions_bytes_are_those_of_the_steps_sizes(runs: dict[str, Any]) -> None:
    """Four calls with other sizes, one of them compiled with symbols; the step is the first."""
    saved = payload(runs["dynamic_batch"], "memory")["saved"]
    assert saved["partition_bytes"] == saved["kept_tensor_bytes"] == 512
    assert saved["partition_activation_bytes"] == saved["kept_storages_bytes"] == 256


def test_a_channels_last_copy_makes_compiled_keep_more_than_eager_and_the_partition_say(runs: dict[str, Any]) -> None:
    saved = payload(runs["resnet_block"], "memory")["saved"]
    assert saved["partition_activation_bytes"] == 35_200
    assert saved["kept_storages_bytes"] == 65_408
    assert saved["eager_storages_bytes"] == 41_344
    (said,) = [event for event in memory_events(runs["resnet_block"]) if event["type"] == "finding"]
    assert said["message"]["params"] == {"compiled": 65_408, "eager": 41_344}


def test_what_a_checkpoint_keeps_in_eager_is_seen(runs: dict[str, Any]) -> None:
    saved = payload(runs["selective_checkpoint"], "memory")["saved"]
    assert saved["eager_storages_bytes"] >= saved["kept_storages_bytes"] > 0


def test_mlp_block_by_block(runs: dict[str, Any]) -> None:
    found = dry_run(runs["mlp"])
    assert (found.peak_bytes, found.end_bytes, found.forward_end) == (35_360, 27_680, 5)
    names, kinds = words(found, found.blocks.name), words(found, found.blocks.kind)
    assert list(zip(names, found.blocks.bytes, kinds, strict=True)) == [
        ("buf0", 4096, "saved"),
        ("buf1", 4096, "saved"),
        ("buf2", 4096, "saved"),
        ("buf3", 4096, "saved"),
        ("buf4", 512, "output"),
        ("buf0, buf3", 4096, "temporary"),
        ("buf1", 2048, "gradient"),
        ("buf2", 32, "gradient"),
        ("buf4, buf7", 4096, "temporary"),
        ("buf5", 16384, "gradient"),
        ("buf6", 256, "gradient"),
        ("buf8", 8192, "gradient"),
        ("buf9", 256, "gradient"),
    ]
    assert found.blocks.line == [14, 14, 15, 15, 16, 16, 16, 16, 15, 15, 15, 14, 14]
    modules = words(found, found.blocks.module)
    assert [modules[index] for index in (0, 2, 4, 6, 9, 11)] == ["fc1", "fc2", "head", "head", "fc2", "fc1"]
    entities = words(found, found.blocks.entity)
    assert all(entity.startswith("0_0/codegen/forward/@") for entity in entities[:5])
    assert all(entity.startswith("0_0/codegen/backward/@") for entity in entities[5:])


def owners(plan: MemoryTimelinePayload) -> list[list[tuple[str, int, int]]]:
    """Of each block: the buffers that it belongs to, from which point on, and how they came by it."""
    assert plan.owners is not None
    found: list[list[tuple[str, int, int]]] = [[] for _ in plan.blocks.name]
    names = [plan.strings[index] for index in plan.owners.name]
    for block, name, point, how in zip(plan.owners.block, names, plan.owners.point, plan.owners.how, strict=True):
        found[block].append((name, point, how))
    return found


def test_inductors_plan_of_mlp_is_the_dry_run_with_its_owners(runs: dict[str, Any]) -> None:
    ((_, _, plan),) = plans(runs["mlp"])
    check(plan)
    dry = dry_run(runs["mlp"])
    for column in ("bytes", "line"):
        assert getattr(plan.blocks, column) == getattr(dry.blocks, column)
    assert words(plan, plan.blocks.name) == words(dry, dry.blocks.name)
    assert words(plan, plan.blocks.kind) == words(dry, dry.blocks.kind)
    assert (plan.peak_bytes, plan.end_bytes, plan.forward_end) == (35_360, 27_680, 5)
    of = owners(plan)
    assert [[name for name, _, _ in block] for block in of] == [
        name.split(", ") if len(block) > 1 else [name.split(", ")[0]]
        for name, block in zip(words(plan, plan.blocks.name), of, strict=True)
    ]
    assert [(block[0][0], block[1][0], block[1][2]) for block in of if len(block) > 1] == [
        ("buf0", "buf3", 2),
        ("buf4", "buf7", 2),
    ]


@pytest.mark.parametrize(
    "name", ["llama_block", "moe_topk", "complex_fft", "selective_checkpoint", "inference", "script"]
)
def test_inductors_plan_has_the_dry_runs_peak(runs: dict[str, Any], name: str) -> None:
    ((_, _, plan),) = plans(runs[name])
    check(plan)
    assert plan.peak_bytes == dry_run(runs[name]).peak_bytes


def test_what_a_kernel_allocates_for_itself_is_in_no_plan(runs: dict[str, Any]) -> None:
    ((_, _, plan),) = plans(runs["resnet_block"])
    assert (plan.peak_bytes, dry_run(runs["resnet_block"]).peak_bytes) == (90_368, 99_840)
    beyond = payload(runs["resnet_block"], "memory")["beyond_plan"]
    assert beyond == {"planned_peak": 90_368, "workspace": 18_432, "outside": 0, "bodies": 0}


def test_several_graphs_have_a_plan_each(runs: dict[str, Any]) -> None:
    assert [(compile_id, graph, plan.peak_bytes) for compile_id, graph, plan in plans(runs["dynamic_batch"])[:4]] == [
        ("0/0", "forward", 288),
        ("0/0", "backward", 712),
        ("0/1", "forward", 432),
        ("0/1", "backward", 1096),
    ]


def test_inference_has_no_backward_and_keeps_its_output(runs: dict[str, Any]) -> None:
    found = dry_run(runs["inference"])
    assert found.forward_end is None
    assert found.end_bytes == 16 * 8 * 4
    assert payload(runs["inference"], "memory")["saved"]["kept_tensor_bytes"] is None


def test_a_scripts_first_call_is_its_step(runs: dict[str, Any]) -> None:
    found = dry_run(runs["script"])
    assert found.end_bytes == 8 * 16 * 4 + 32 * 16 * 4 + 16 * 4
    assert [note["key"] for note in payload(runs["script"], "memory")["notes"]] == ["memory.script_step"]


def test_without_a_graph_the_stage_is_skipped_with_the_reason(runs: dict[str, Any]) -> None:
    (skipped,) = [event for event in memory_events(runs["nothing"]) if event["type"] == "stage_skipped"]
    assert skipped["reason"]["key"] == "memory.nothing_compiled"


def test_a_dry_run_that_kills_its_process_is_only_the_stages_failure(runs: dict[str, Any]) -> None:
    assert runs["kills"]["outcome"] == {"type": "finished", "error": None}
    (failed,) = [event for event in memory_events(runs["kills"]) if event["type"] == "stage_failed"]
    assert failed["cause"] == {"key": "aside.died", "params": {"how": "exit 7"}}
