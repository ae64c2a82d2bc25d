"""What each graph stage says of one small model, as text. AOTSCOPE_UPDATE_GOLDEN=1 writes the files anew."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from compiler.events import StageName
from compiler.ir.diff import print_graph
from compiler.ir.encode import decode
from compiler.text import render
from tests.compiler.graph_cases import Seen, captured

GOLDEN = Path(__file__).parents[1] / "golden" / "graphs"

SNIPPET = """\
import torch
import torch.nn as nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(8, 8)
        self.norm = nn.BatchNorm1d(8)

    def forward(self, x):
        return x + torch.tanh(self.norm(self.mix(x)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        x = self.block(x)
        x = self.block(x)
        return torch.softmax(self.head(x), -1)


model = Net()
inputs = (torch.randn(4, 8),)
"""


@cache
def seen() -> Seen:
    return captured(SNIPPET)


def graph_text(payload: Any) -> str:
    """The printed graph, and what is known of each node."""
    graph = decode(payload)
    rows = [
        f"{node.name:28} {node.phase:9} {node.module or '-':12} {node.module_type or '-':12} call={node.call}"
        f" line={node.line} twin={node.twin} {node.grad_fn} {' '.join(node.roles)}".rstrip()
        for node in graph.nodes
    ]
    return "\n".join([graph.id, *(line.text for line in print_graph(graph)), "", *rows])


def passes_text(payload: Any) -> str:
    rows = [payload.id]
    for step in payload.steps:
        mark = "changed" if step.changed else "-"
        rows.append(f"{step.name}: {mark} {step.nodes_before} -> {step.nodes_after}")
        if step.changed:
            rows += [f"  added {step.added}", f"  removed {step.removed}", step.diff]
    return "\n".join([*rows, f"unchanged {payload.unchanged}"])


def partition_text(payload: Any) -> str:
    rows = [f"{payload.id} {payload.partitioner} budget={payload.memory_budget} options={payload.options}"]
    rows.append(f"network {payload.network_nodes} nodes, {payload.network_edges} edges, cut {payload.cut_value}")
    rows.append(
        f"saved {payload.saved_bytes}, activations {payload.saved_activation_bytes}, everything {payload.save_everything_bytes}"
    )
    rows += [
        f"saved {t.node} bytes={t.bytes} input={t.is_input} line={t.line} readers={t.readers}" for t in payload.saved
    ]
    for decision in payload.decisions:
        rows.append(
            f"{decision.node:22} {decision.verdict:13} bytes={decision.bytes} capacity={decision.capacity} "
            f"banned={decision.banned} line={decision.line} {decision.reasons}\n    {render(decision.sentence)}"
        )
    return "\n".join([*rows, f"recomputed {payload.recomputed}"])


def schedule_text(payload: Any) -> str:
    rows = [payload.id]
    for node in payload.nodes:
        rows.append(
            f"{node.name} {node.kind} {node.buffers} {node.shape} {node.dtype} line={node.line}\n"
            f"  origins {node.origins}\n  reads {node.reads} writes {node.writes}"
        )
        rows += [f"    {line}" for line in node.ir.split("\n")]
    return "\n".join(rows)


def fusion_text(payload: Any) -> str:
    rows = [f"{payload.id}: {payload.nodes_before} -> {payload.nodes_after}"]
    rows += [f"{g.name} {g.kind} {g.members} {g.bytes_before} -> {g.bytes_after}" for g in payload.groups]
    for decision in payload.decisions:
        why = decision.reason or (render(decision.explanation) if decision.explanation else "")
        rows.append(f"{decision.first} + {decision.second}: {decision.asked} {decision.fused} {why}".rstrip())
    return "\n".join(rows)


def kernels_text(payload: Any) -> str:
    rows = [payload.id]
    for kernel in payload.kernels:
        rows.append(
            f"{kernel.name} {kernel.kind} group={kernel.group} lines={kernel.lines} launches={len(kernel.launches)}"
        )
        rows += [f"  {node} {op}" for node, op in zip(kernel.nodes, kernel.ops, strict=True)]
        rows.append(f"  recomputed {kernel.recomputed}")
    return "\n".join(rows)


TEXTS: dict[str, Callable[[Any], str]] = {
    "graph": graph_text,
    "passes": passes_text,
    "partition": partition_text,
    "schedule": schedule_text,
    "fusion": fusion_text,
    "kernels": kernels_text,
}


@pytest.mark.parametrize(
    ("stage", "kind"),
    [
        (StageName.PRE_GRAD, "passes"),
        (StageName.JOINT, "graph"),
        (StageName.JOINT_PASSES, "passes"),
        (StageName.JOINT_PASSES, "graph"),
        (StageName.PARTITION, "partition"),
        (StageName.PARTITION, "graph"),
        (StageName.POST_GRAD, "passes"),
        (StageName.POST_GRAD, "graph"),
        (StageName.SCHEDULE, "schedule"),
        (StageName.FUSION, "fusion"),
        (StageName.CODEGEN, "kernels"),
    ],
)
def test_stage_text(stage: StageName, kind: str) -> None:
    text = "\n\n".join(TEXTS[kind](payload) for payload in seen().artifacts(stage, kind)) + "\n"
    file = GOLDEN / f"{stage.value}.{kind}.txt"
    if os.environ.get("AOTSCOPE_UPDATE_GOLDEN"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")
