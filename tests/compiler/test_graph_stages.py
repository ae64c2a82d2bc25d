"""What must hold of the graph stages on models of the corpus."""

from __future__ import annotations

from typing import Any

import pytest

from compiler.events import StageName, StageStatus
from compiler.ir.encode import decode
from compiler.ir.graph import Graph
from compiler.ir.verify import verify
from tests.compiler.graph_cases import Seen, captured, model

MODELS = ("resnet_block", "moe_topk", "dynamic_batch", "selective_checkpoint", "batchnorm_buffers", "hop_cond")
HALVES = ("forward", "backward")

each_model = pytest.mark.parametrize("name", MODELS)


def graphs(seen: Seen, stage: StageName, graph: str | None = None) -> list[Graph]:
    return [decode(payload) for payload in seen.artifacts(stage, "graph", graph)]


@each_model
def test_every_graph_is_sound_and_no_stage_failed(name: str) -> None:
    seen = model(name)
    for payload in seen.all("graph"):
        verify(decode(payload))
    assert seen.bodies("stage_failed") == []


@each_model
def test_stages_begin_and_end_in_order(name: str) -> None:
    """Of each compile: every stage that begins ends before the next begins, but for the partition's own passes."""
    running: dict[str | None, StageName] = {}
    ended: dict[str | None, list[str]] = {}
    for frame in model(name).events:
        if frame.body.type == "stage_started" and frame.compile is not None:
            assert frame.compile not in running
            running[frame.compile] = frame.stage  # type: ignore[assignment]
        elif frame.body.type in ("stage_finished", "stage_skipped") and frame.compile in running:
            assert running.pop(frame.compile) == frame.stage
            ended.setdefault(frame.compile, []).append(str(frame.stage))
    assert running == {}
    first = ended["0/0"]
    assert first[:5] == ["dynamo", "pre_grad", "joint", "joint_passes", "partition"]
    assert [stage for stage in first[5:] if stage == "codegen"] == ["codegen", "codegen"]


@each_model
def test_each_backward_node_has_a_twin_or_sums_gradients(name: str) -> None:
    for graph in graphs(model(name), StageName.JOINT, "joint"):
        forward = {node.name for node in graph.nodes if node.phase == "forward"}
        for node in graph.nodes:
            if node.phase == "backward" and node.op == "call_function":
                assert node.twin in forward or "accumulation" in node.roles, node.name
            else:
                assert node.twin is None


@each_model
def test_each_forward_node_is_decided_as_the_graphs_say(name: str) -> None:
    seen = model(name)
    joints = graphs(seen, StageName.JOINT_PASSES, "joint")
    halves = [graphs(seen, StageName.PARTITION, half) for half in HALVES]
    partitions = seen.artifacts(StageName.PARTITION, "partition")
    assert len(joints) == len(partitions) == len(halves[0]) == len(halves[1]) > 0
    for joint, forward, backward, partition in zip(joints, *halves, partitions, strict=True):
        decided = {decision.node: decision.verdict for decision in partition.decisions}
        assert list(decided) == [node.name for node in joint.nodes if node.phase == "forward" and node.op != "output"]
        again = [node.name for node in backward.nodes if node.op.startswith("call") and "recomputed" in node.roles]
        assert again == partition.recomputed
        assert {node for node, verdict in decided.items() if verdict == "recomputed"} <= set(again)
        read = [
            node.name
            for node in backward.nodes
            if node.op == "placeholder" and "tangent" not in node.roles and node.value.kind == "tensor"
        ]
        assert [tensor.node for tensor in partition.saved] == read
        returned = set(forward.nodes[-1].inputs) | {node.name for node in forward.nodes if node.op == "placeholder"}
        assert set(read) <= returned
        assert {decided[name] for name in read if name in decided} <= {"saved", "input"}


@each_model
def test_summary_is_the_sum_of_what_was_shown(name: str) -> None:
    seen = model(name)
    partitions = seen.artifacts(StageName.PARTITION, "partition")
    schedules, fusions = seen.artifacts(StageName.SCHEDULE, "schedule"), seen.artifacts(StageName.FUSION, "fusion")
    kernels = seen.artifacts(StageName.CODEGEN, "kernels")
    summary = seen.summary
    shown = {
        "joint_nodes": [len(graph.nodes) for graph in graphs(seen, StageName.JOINT_PASSES, "joint")],
        "fw_nodes": [len(graph.nodes) for graph in graphs(seen, StageName.PARTITION, "forward")],
        "bw_nodes": [len(graph.nodes) for graph in graphs(seen, StageName.PARTITION, "backward")],
        "saved_tensors": [len(partition.saved) for partition in partitions],
        "saved_bytes": [sum(tensor.bytes for tensor in partition.saved) for partition in partitions],
        "recomputed_ops": [len(partition.recomputed) for partition in partitions],
        "ir_nodes_pre_fusion": sum(len(payload.nodes) for payload in schedules),
        "scheduler_nodes_after_fusion": sum(len(payload.groups) for payload in fusions),
        "cpp_kernel_launches": sum(len(k.launches) for p in kernels for k in p.kernels if k.kind == "cpp"),
        "extern_calls": sum(k.kind == "extern" for p in kernels for k in p.kernels),
        "distinct_cpp_kernels": len({k.name for p in kernels for k in p.kernels if k.kind == "cpp"}),
    }
    assert shown == {key: summary[key] for key in shown}


@each_model
def test_statements_of_kernels_are_linked(name: str) -> None:
    payloads = model(name).artifacts(StageName.CODEGEN, "kernels")
    total = sum(payload.statements for payload in payloads)
    assert total > 0
    assert sum(payload.statements_with_node for payload in payloads) >= 0.98 * total
    assert sum(payload.statements_with_line for payload in payloads) <= total


@each_model
def test_links_join_entities_that_exist(name: str) -> None:
    seen = model(name)
    known = _entities(seen)
    for payload in seen.all("links"):
        ends = [payload.strings[code] for code in (*payload.links.source, *payload.links.target)]
        assert [end for end in ends if not end.startswith("line/") and end not in known] == []


def _entities(seen: Seen) -> set[str]:
    known: set[str] = set()
    for payload in seen.all("graph"):
        known |= {f"{payload.id}/{payload.strings[code]}" for code in payload.nodes.name}
    for payload in seen.all("schedule"):
        known |= {f"{payload.id}/{node.name}" for node in payload.nodes}
    for payload in seen.all("fusion"):
        known |= {f"{payload.id}/{group.name}" for group in payload.groups}
    for payload in seen.all("kernels"):
        known |= {f"{payload.id}/{kernel.name}" for kernel in payload.kernels}
    for payload in seen.all("code"):
        known |= {f"{payload.id}/@{line}" for line in range(1, payload.text.count("\n") + 2)}
    return known


def closure(seen: Seen, start: str) -> set[str]:
    following: dict[str, set[str]] = {}
    for payload in seen.all("links"):
        for source, target in zip(payload.links.source, payload.links.target, strict=True):
            following.setdefault(payload.strings[source], set()).add(payload.strings[target])
    found, todo = {start}, [start]
    while todo:
        new = following.get(todo.pop(), set()) - found
        found |= new
        todo += new
    return found


def test_a_line_leads_to_kernels_of_both_halves() -> None:
    """`y = self.b2(self.c2(y))` of resnet_block: through every stage, to lines of generated code."""
    seen = model("resnet_block")
    reached = closure(seen, "line/19")
    stages = {tuple(entity.split("/")[1:3]) for entity in reached if not entity.startswith("line/")}
    assert stages >= {
        (stage, half) for half in HALVES for stage in ("partition", "post_grad", "schedule", "fusion", "codegen")
    } | {("dynamo", "dynamo"), ("joint", "joint"), ("joint_passes", "joint")}
    assert any("/codegen/backward/@" in entity for entity in reached)


def test_modules_are_named_as_the_user_names_them() -> None:
    (joint,) = graphs(model("resnet_block"), StageName.JOINT, "joint")
    by_half: dict[str, set[str]] = {half: set() for half in HALVES}
    for node in joint.nodes:
        if node.op == "call_function":
            by_half[node.phase].add(node.module)
    assert by_half["forward"] == {"", "c1", "b1", "c2", "b2", "short.0", "short.1"}
    assert by_half["backward"] == by_half["forward"]
    updates = {node.args.split(",")[0]: node.module for node in joint.nodes if "mutation" in node.roles}
    owners = {node.name: node.module for node in joint.nodes if "buffer" in node.roles}
    assert updates
    assert updates == {name: owners[name] for name in updates}


def test_symbolic_sizes_keep_their_hint() -> None:
    nodes = [node for joint in graphs(model("dynamic_batch"), StageName.JOINT) for node in joint.nodes]
    tensors = [node.value for node in nodes if node.value is not None and node.value.kind == "tensor"]
    sizes = [size for tensor in tensors for size in tensor.shape if not isinstance(size, int)]
    assert sizes
    assert all(size.hint is not None for size in sizes)


def test_checkpoint_policy_is_the_reason() -> None:
    (partition,) = model("selective_checkpoint").artifacts(StageName.PARTITION, "partition")
    keys: dict[str, set[str]] = {}
    for decision in partition.decisions:
        keys.setdefault(decision.verdict, set()).add(decision.sentence.key)
    assert keys["saved"] == {"partition.saved.must_save"}
    assert keys["recomputed"] == {"partition.recomputed.checkpoint"}


def test_a_pass_is_marked_when_it_changed_the_graph() -> None:
    seen = model("moe_topk")
    (passes,) = seen.artifacts(StageName.JOINT_PASSES, "passes", "joint")
    changed = [step for step in passes.steps if step.changed]
    assert "remove_noop_ops" in [step.name for step in changed]
    assert passes.unchanged == len(passes.steps) - len(changed)
    for step in changed:
        before, after = decode(seen.payloads[step.before]), decode(seen.payloads[step.after])
        assert (len(before.nodes), len(after.nodes)) == (step.nodes_before, step.nodes_after)
        assert before != after
    assert decode(seen.payloads[changed[-1].after]) == graphs(seen, StageName.JOINT_PASSES, "joint")[0]
    statuses = {body.status for body in seen.bodies("stage_finished", StageName.JOINT_PASSES)}
    assert statuses == {StageStatus.CHANGED}


def test_fused_pairs_are_in_one_group() -> None:
    for payload in model("resnet_block").artifacts(StageName.FUSION, "fusion"):
        group_of: dict[str, Any] = {member: group.name for group in payload.groups for member in group.members}
        assert any(decision.fused for decision in payload.decisions)
        for decision in payload.decisions:
            ends = {group_of[name] for side in (decision.first, decision.second) for name in side.split("_")}
            if decision.fused or decision.asked == "again":
                assert decision.fused == (len(ends) == 1)
            assert decision.fused or decision.reason or decision.explanation
        for group in payload.groups:
            assert group.bytes_after <= group.bytes_before


def test_the_flow_network_is_the_one_that_was_cut() -> None:
    """Of every partition that solved one: its cut separates source from sink, and weighs what the solution says."""
    for name in MODELS:
        seen = model(name)
        partitions = [one for one in seen.artifacts(StageName.PARTITION, "partition") if one.network_nodes]
        networks = seen.artifacts(StageName.PARTITION, "network")
        assert len(networks) == len(partitions) > 0
        for network, partition in zip(networks, partitions, strict=True):
            nodes, edges = network.nodes, network.edges
            assert (len(nodes.name), network.edges_in_all) == (partition.network_nodes, partition.network_edges)
            assert len(edges.source) == network.edges_in_all
            side = dict(zip(nodes.name, nodes.source_side, strict=True))
            assert (side["source"], side["sink"]) == (True, False)
            across = [
                nodes.source_side[source] and not nodes.source_side[target]
                for source, target in zip(edges.source, edges.target, strict=True)
            ]
            assert edges.cut == across
            weights = [weight for weight, cut in zip(edges.capacity, edges.cut, strict=True) if cut]
            assert None not in weights
            assert sum(weights) == pytest.approx(partition.cut_value)


def test_checkpointed_regions_and_what_runs_twice() -> None:
    seen = captured(
        """
import torch
from torch.utils.checkpoint import checkpoint

first, second = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)


def block(x):
    return second(first(x).relu()).sin()


def model(x):
    for _ in range(2):
        x = checkpoint(block, x, use_reentrant=False)
    return x


inputs = (torch.randn(4, 8, requires_grad=True),)
"""
    )
    (partition,) = seen.artifacts(StageName.PARTITION, "partition")
    assert [(one.region, one.lines, list(one.policies)) for one in partition.regions] == [
        (1, [9], ["PREFER_RECOMPUTE"]),
        (2, [9], ["PREFER_RECOMPUTE"]),
    ]
    for region in partition.regions:
        inside = [one for one in partition.decisions if one.region == region.region]
        assert region.nodes == len(inside) == sum(region.policies.values())
        assert region.recomputed == sum(one.verdict == "recomputed" for one in inside)
    assert set(partition.recomputed_heavy) == {name for name in partition.recomputed if name.startswith("addmm")}
    (finding,) = [one for one in seen.bodies("finding") if one.message.key == "partition.heavy_again"]
    assert (finding.line, finding.message.params["count"]) == (9, len(partition.recomputed_heavy))
    assert finding.entity == f"0_0/partition/backward/{partition.recomputed_heavy[0]}"


@pytest.mark.parametrize(("budget", "again"), [(0.0, True), (1.0, False)])
def test_random_operators_that_draw_again_are_told(budget: float, again: bool) -> None:
    seen = captured(
        f"""
import torch
config = {{"functorch": {{"activation_memory_budget": {budget}}}}}
def model(x):
    return torch.nn.functional.dropout(x * 1.5, 0.5, True)
inputs = (torch.ones(256, requires_grad=True),)
"""
    )
    (partition,) = seen.artifacts(StageName.PARTITION, "partition")
    assert bool(partition.drawn_again) == again
    told = [(one.message.key, one.line) for one in seen.bodies("finding")]
    assert told == ([("partition.draws_again", 5)] if again else [])
