"""The hooks of the graph stages change nothing of what they watch, and leave torch as they found it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from itertools import pairwise
from typing import Any

import networkx
import pytest
import torch
import torch._functorch._aot_autograd.graph_compile as graph_compile
import torch._functorch.partitioners as partitioners
import torch._inductor.compile_fx as compile_fx
import torch._inductor.ir as ir
from torch._dynamo.utils import compilation_time_metrics
from torch._inductor.codegen.common import CSE
from torch._inductor.codegen.cpp import CppScheduling
from torch._inductor.graph import GraphLowering
from torch._inductor.loop_body import LightTracer
from torch._inductor.scheduler import Scheduler, WhyNoFuse
from torch._inductor.utils import IndentedBuffer
from torch.fx.passes.graph_transform_observer import GraphTransformObserver

from compiler import snippet, stages
from compiler.events import Mode, Options, RunRequest, StageName
from compiler.session import Session
from compiler.stages import joint
from compiler.torch_compat import settings
from compiler.torch_compat.compiles import current_compile, tracking
from compiler.torch_compat.interpreter import interpreted
from tests.compiler.graph_cases import MODELS, Seen, captured, model

TOUCHED = (
    (graph_compile, ("aot_dispatch_autograd_graph", "aot_dispatch_base_graph", "_partition_joint_graph_into_fw_bw")),
    (partitioners, ("solve_min_cut", "choose_saved_values_set")),
    (compile_fx, ("_recursive_pre_grad_passes", "_recursive_joint_graph_passes", "_recursive_post_grad_passes")),
    (networkx, ("minimum_cut",)),
    (GraphTransformObserver, ("apply_graph_pass", "apply_gm_pass")),
    (Scheduler, ("fuse_nodes", "can_fuse", "will_fusion_create_cycle", "codegen")),
    (WhyNoFuse, ("__call__",)),
    (GraphLowering, ("codegen", "codegen_subgraph")),
    (ir.Loops, ("__post_init__",)),
    (ir.Pointwise, ("store_output",)),
    (LightTracer, ("create_node",)),
    (IndentedBuffer, ("writeline",)),
    (CSE, ("augment_key",)),
    (CppScheduling, ("define_kernel",)),
)


def touched() -> list[object]:
    return [vars(owner).get(name) for owner, names in TOUCHED for name in names]


def generated(name: str, watched: bool) -> list[str]:
    """The files that Inductor generates for a model of the corpus, with or without our stages."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    request = RunRequest(source=(MODELS / f"{name}.py").read_text(encoding="utf-8"))
    understood = snippet.understand(request, MODELS / f"{name}.py")
    loaded = snippet.load(understood)
    session = Session(Seen(), Options(), understood.sources(), current_compile)
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        stack.enter_context(tracking())
        stack.enter_context(settings.no_caches())
        stack.enter_context(interpreted(current_compile, session.modules.append))
        for stage in stages.until(StageName.CODEGEN) if watched else ():
            stack.enter_context(stage.install(session))
        snippet.run_calls(loaded, torch.compile(loaded.model), Mode.AUTO, keep=False)
    return [re.sub(r"# AOT ID: .*", "", module.code) for module in session.modules]


@pytest.mark.parametrize(
    "name", ["mlp", "batchnorm_buffers", "moe_topk", "selective_checkpoint", "dynamic_batch", "hop_cond"]
)
def test_generated_code_is_the_same_with_and_without(name: str) -> None:
    before = touched()
    plain = generated(name, watched=False)
    assert plain
    assert generated(name, watched=True) == plain
    assert [ours is theirs for ours, theirs in zip(touched(), before, strict=True)] == [True] * len(before)


# What Inductor does to a graph without an observer of its own around it: the steps that have a name of ours or of the function.
UNOBSERVED = {
    "canonicalize_aten_ir_passes",
    "early_patterns",
    "joint_graph_passes",
    "post_grad_passes",
    "pre_grad_passes",
    "replace_random_passes",
    "stable_topological_sort",
}


# Of models without higher-order operators: the passes over their bodies are not shown.
@pytest.mark.parametrize(("name", "changes"), [("mlp", False), ("moe_topk", True), ("dynamic_batch", True)])
def test_every_pass_that_torch_ran_is_a_step(name: str, changes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """In torch's order and number, and changed where the printed graph is another: as a compile without us shows."""
    ran: list[tuple[str, bool]] = []

    def printing(original: Callable[..., Any]) -> Callable[..., Any]:
        def apply(self: Any, pass_fn: Any) -> Any:
            before = str(self.gm.graph)
            result = original(self, pass_fn)
            ran.append((self.passname, before != str(self.gm.graph)))
            return result

        return apply

    with monkeypatch.context() as patched:
        for method in ("apply_graph_pass", "apply_gm_pass"):
            original = getattr(GraphTransformObserver, method)
            patched.setattr(GraphTransformObserver, method, printing(original))
        generated(name, watched=False)
    timed = sum(len(times) for key, times in compilation_time_metrics.items() if key.startswith("pass."))
    assert len(ran) == timed > 10
    shown: list[tuple[str, bool]] = []
    seen = model(name)
    for payload in seen.all("passes"):
        shown += [(step.name, step.changed) for step in payload.steps if step.name not in UNOBSERVED]
        changed = [step for step in payload.steps if step.changed]
        assert payload.unchanged == len(payload.steps) - len(changed)
        for before, after in pairwise(changed):
            assert before.after == after.before
        for step in changed:
            assert step.diff
    assert shown == ran
    assert any(changed for _, changed in ran) == changes


def test_no_mark_is_left_in_what_is_shown() -> None:
    for payload in model("moe_topk").artifacts(StageName.CODEGEN, "code"):
        assert "/*@" not in payload.text


def test_a_fault_of_ours_ends_the_stage_and_not_the_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object, **kwargs: object) -> None:
        raise RuntimeError("ours")

    monkeypatch.setattr(joint, "lift_graph", broken)
    seen = captured((MODELS / "mlp.py").read_text(encoding="utf-8"))
    (failure,) = seen.bodies("stage_failed")
    assert (failure.cause.key, failure.error) == ("stage.internal", "RuntimeError: ours")
    assert seen.outcome is not None
    assert seen.outcome.type == "finished"
    assert len(seen.bodies("stage_finished", StageName.CODEGEN)) == 2


CUSTOM = """
import torch
import torch._functorch.partitioners as partitioners
from torch._inductor.custom_graph_pass import CustomGraphPass, CustomPartitionerFn


class KeepAll(CustomPartitionerFn):
    def __call__(self, gm, joint_inputs, **kwargs):
        kwargs.pop("compiler")
        return partitioners.default_partition(gm, joint_inputs, **kwargs)

    def uuid(self):
        return None


class SinToCos(CustomGraphPass):
    def __call__(self, graph):
        for node in graph.find_nodes(op="call_function", target=torch.ops.aten.sin.default):
            node.target = torch.ops.aten.cos.default

    def uuid(self):
        return None


config = {"inductor": {"custom_partitioner_fn": KeepAll(), "post_grad_custom_post_pass": SinToCos()}}
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh())
inputs = (torch.randn(2, 4),)
net = model
model = lambda x: net(x).sin()
"""


def test_the_users_own_hooks_stay_in_force_and_are_shown() -> None:
    seen = captured(CUSTOM)
    (partition,) = seen.artifacts(StageName.PARTITION, "partition")
    assert partition.partitioner == "KeepAll"
    assert {d.sentence.key for d in partition.decisions if d.verdict == "saved"} == {"partition.custom"}
    (passes,) = seen.artifacts(StageName.POST_GRAD, "passes", "forward")
    assert [step.name for step in passes.steps if step.changed] == ["post_grad_custom_post_pass"]


def test_a_backend_without_inductor_is_split_by_the_default_partitioner() -> None:
    source = (MODELS / "mlp.py").read_text(
        encoding="utf-8"
    ) + '\ncompile_kwargs = {"backend": "aot_eager_default_partitioner"}\n'
    seen = captured(source)
    (partition,) = seen.artifacts(StageName.PARTITION, "partition")
    assert partition.partitioner == "default_partition"
    assert partition.network_nodes is None
    assert {d.sentence.key for d in partition.decisions if d.verdict == "saved"} == {"partition.saved.default"}
    assert partition.recomputed == []


def test_an_inference_graph_has_no_partition() -> None:
    source = (MODELS / "mlp.py").read_text(encoding="utf-8") + "\nmodel.requires_grad_(False)\n"
    seen = captured(source)
    (skipped,) = seen.bodies("stage_skipped", StageName.PARTITION)
    assert skipped.reason.key == "partition.no_backward"
    graphs = [frame.body.graph for frame in seen.events if frame.body.type == "artifact" and frame.stage == "post_grad"]
    assert set(graphs) == {"inference"}
    assert seen.summary["joint_nodes"] == []


def test_a_memory_budget_of_zero_recomputes_from_the_inputs() -> None:
    source = (MODELS / "mlp.py").read_text(encoding="utf-8")
    seen = captured(source + '\nconfig = {"functorch": {"activation_memory_budget": 0.0}}\n')
    (partition,) = seen.artifacts(StageName.PARTITION, "partition")
    assert partition.memory_budget == 0.0
    assert [d.node for d in partition.decisions if d.verdict == "saved"] == []
    assert {d.sentence.key for d in partition.decisions if d.verdict == "recomputed"} == {"partition.recomputed.budget"}
