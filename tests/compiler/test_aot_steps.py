"""AOTAutograd one transform at a time, and its ledger. AOTSCOPE_UPDATE_GOLDEN=1 writes the golden files anew."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from compiler.events import ArtifactMade, StageName
from compiler.ir.aot import (
    AotStep,
    Decomposition,
    LedgerPayload,
    MutatedInput,
    Mutation,
    NodeOp,
    OpCount,
    OutputAlias,
    Rng,
    Subclass,
    SyntheticBase,
    TrackedView,
)
from compiler.stages import aot_steps
from compiler.text import message
from tests.compiler.graph_cases import MODELS, Seen, captured

GOLDEN = Path(__file__).parents[1] / "golden" / "aot"

MUTATING = """\
import torch
import torch.nn as nn


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x):
        self.seen.add_(1)
        self.mean.mul_(0.9).add_(x.detach().mean(0), alpha=0.1)
        y = x.sin()
        y.add_(1)
        y[1].mul_(2)
        z = torch.softmax(y, -1)
        return torch.dropout(z, 0.5, True), z.t(), x.view(-1)


model = Counting()
inputs = (torch.randn(3, 4, requires_grad=True),)
"""


@cache
def mutating() -> Seen:
    return captured(MUTATING, until=StageName.JOINT)


def ledger_of(source: str) -> LedgerPayload:
    (ledger,) = captured(source, until=StageName.JOINT).artifacts(StageName.JOINT, "ledger")
    assert isinstance(ledger, LedgerPayload)
    return ledger


def check_golden(name: str, text: str) -> None:
    file = GOLDEN / name
    if os.environ.get("AOTSCOPE_UPDATE_GOLDEN"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def step_text(step: AotStep) -> str:
    changes = [f"-{one.count} {one.op}" for one in step.lost] + [f"+{one.count} {one.op}" for one in step.gained]
    head = (
        f"{step.name}: {step.nodes} nodes, {step.forward} forward, {step.backward} backward, equal={step.equal_to_real}"
    )
    return "\n".join([head, *changes, step.diff])


def test_ledger_of_a_model_that_writes_in_place() -> None:
    (ledger,) = mutating().artifacts(StageName.JOINT, "ledger")
    check_golden("ledger.json", ledger.model_dump_json(indent=1) + "\n")


def test_steps_of_a_model_that_writes_in_place() -> None:
    (payload,) = mutating().artifacts(StageName.JOINT, "aot_steps")
    assert payload.skipped is None
    check_golden("steps.txt", "\n".join(map(step_text, payload.steps)) + "\n")


def test_each_step_has_its_graph_and_the_last_is_the_stage_s_own() -> None:
    (payload,) = mutating().artifacts(StageName.JOINT, "aot_steps")
    (joint,) = mutating().artifacts(StageName.JOINT, "graph")
    graphs = [mutating().payloads[step.graph] for step in payload.steps]
    assert [graph.id for graph in graphs] == [
        "0_0/joint/traced",
        "0_0/joint/functionalized",
        "0_0/joint/decomposed",
        "0_0/joint/joint",
    ]
    assert [len(graph.nodes.name) for graph in graphs] == [step.nodes for step in payload.steps]
    assert graphs[-1] == joint


def test_inputs_that_share_memory_have_a_synthetic_base() -> None:
    ledger = ledger_of("""\
import torch


def model(a, b):
    a.mul_(2)
    return a + b.sum()


whole = torch.ones(8)
inputs = (whole[:6], whole[2:])
""")
    assert ledger.synthetic_bases == [SyntheticBase(base_of="a", made=False)]
    assert [(one.op, one.through_view, one.line) for one in ledger.mutations] == [("aten.mul_.Tensor", True, 5)]


def test_a_subclass_is_its_inner_tensors() -> None:
    ledger = ledger_of("""\
import torch
from torch.testing._internal.two_tensor import TwoTensor


def model(x):
    return x.sin()


inputs = (TwoTensor(torch.randn(3), torch.randn(3)),)
""")
    assert ledger.subclasses == [
        Subclass(side="input", index=0, tensor="x", type="TwoTensor", attrs=["a", "b"], first=0, count=2),
        Subclass(side="output", index=0, tensor="", type="TwoTensor", attrs=["a", "b"], first=0, count=2),
    ]


def test_an_input_written_through_a_view_is_written_back_and_is_the_base_of_the_output() -> None:
    assert ledger_of("""\
import torch


def model(x):
    y = x.t()
    y.mul_(2)
    return y


inputs = (torch.ones(2, 3),)
""") == LedgerPayload(
        id="0_0/joint/inference",
        exact=True,
        mutations=[
            Mutation(
                op="aten.mul_.Tensor",
                what="input",
                tensor="x",
                through_view=True,
                line=6,
                functional=[
                    NodeOp(node="mul", op="aten.mul.Tensor"),
                    NodeOp(node="t_1", op="aten.t.default"),
                    NodeOp(node="t_2", op="aten.t.default"),
                ],
                nodes=["mul", "permute_1", "permute_2"],
                copy_node="copy_",
            )
        ],
        mutated_inputs=[
            MutatedInput(
                tensor="x",
                what="input",
                type="MUTATED_IN_GRAPH",
                data=True,
                metadata=False,
                requires_grad=False,
                hidden_from_autograd=False,
                under_no_grad=False,
                copy_node="copy_",
                value="permute_1",
                line=6,
            )
        ],
        views=[TrackedView(op="aten.t.default", what="input", tensor="x", line=5, nodes=["permute"])],
        outputs=[OutputAlias(output=0, type="alias_of_input", base="x", views=["t"])],
        decompositions=[
            Decomposition(
                op="aten.t.default",
                into=[OpCount(op="aten.permute.default", count=1)],
                count=3,
                examples=["permute"],
                lines=[5, 6],
            )
        ],
        rng=Rng(functionalized=False),
    )


def test_an_input_that_gets_another_storage() -> None:
    seen = captured(
        """\
import torch


def model(x):
    y = x[:]
    x.data = torch.zeros(2, 2)
    return y + 1


inputs = (torch.ones(2, 3),)
""",
        until=StageName.JOINT,
    )
    (ledger,) = seen.artifacts(StageName.JOINT, "ledger")
    assert ledger.exact  # each trace sets the storage of what it is given
    assert ledger.mutations == [
        Mutation(op="aten.set_.source_Tensor", what="input", tensor="x", line=6, copy_node="set_")
    ]
    assert [(one.data, one.metadata, one.copy_node, one.value) for one in ledger.mutated_inputs] == [
        (False, True, "set_", "full")
    ]


def test_a_graph_above_the_limit_is_not_traced_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aot_steps, "GRAPH_LIMIT", 10)
    seen = captured(MUTATING, until=StageName.JOINT)
    (payload,) = seen.artifacts(StageName.JOINT, "aot_steps")
    assert (payload.steps, payload.skipped.key, payload.skipped.params["limit"]) == ([], "aot.too_big", 10)
    assert seen.artifacts(StageName.JOINT, "ledger") == []


def test_a_run_has_a_limit_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aot_steps, "RUN_LIMIT", 10)
    (payload,) = captured(MUTATING, until=StageName.JOINT).artifacts(StageName.JOINT, "aot_steps")
    assert payload.skipped == message("aot.too_many", limit=10)


def test_a_step_that_cannot_be_traced_is_unknown_and_the_others_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    original = aot_steps.replay

    def failing(held: Any, which: Any) -> Any:
        if which == "traced":
            raise RuntimeError("not today")
        return original(held, which)

    monkeypatch.setattr(aot_steps, "replay", failing)
    seen = captured(MUTATING, until=StageName.JOINT)
    (payload,) = seen.artifacts(StageName.JOINT, "aot_steps")
    assert [(step.name, step.graph is None, step.equal_to_real) for step in payload.steps] == [
        ("traced", True, None),
        ("functionalized", False, None),
        ("decomposed", False, True),
        ("joint", False, None),
    ]
    assert payload.steps[0].unknown == message("aot.replay_raised", error="RuntimeError: not today")
    assert seen.artifacts(StageName.JOINT, "ledger") == mutating().artifacts(StageName.JOINT, "ledger")
    assert seen.bodies("stage_failed") == []


def test_what_the_user_s_code_prints_in_a_trace_is_not_said_again() -> None:
    source = """\
import torch


@torch.library.custom_op("aot_steps::loud", mutates_args=())
def loud(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


@loud.register_fake
def _(x):
    print("traced")
    return torch.empty_like(x)


model = lambda x: torch.ops.aot_steps.loud(x)
inputs = (torch.ones(2),)
"""
    printed = "".join(body.text for body in captured(source, until=StageName.JOINT).bodies("printed"))
    with_replay = printed.count("traced")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aot_steps, "tell", lambda session: None)
        printed = "".join(body.text for body in captured(source, until=StageName.JOINT).bodies("printed"))
    assert with_replay == printed.count("traced") > 0


# --- nothing perturbed

COMPARED = ("graph", "code", "links", "guards", "recompiles", "breaks", "partition", "schedule", "fusion", "kernels")


def _ranked(column: re.Match[str]) -> str:
    """Numbers of autograd nodes count on through a process."""
    numbers = [int(number) for number in column[1].split(",")]
    order = {number: place for place, number in enumerate(sorted(set(numbers)))}
    return str([order[number] for number in numbers])


def told(seen: Seen) -> tuple[list[tuple[str, ...]], dict[str, Any]]:
    """Every artifact of the compiles as text, without what names this process: addresses, folders, counters of torch's."""
    rows = []
    for frame in seen.events:
        made = frame.body
        if isinstance(made, ArtifactMade) and made.artifact.kind in COMPARED and frame.stage is not None:
            if frame.stage is StageName.JOINT and made.name == "step":
                continue
            text = seen.payloads[made.artifact.hash].model_dump_json()
            text = re.sub(r"AOT ID: \[[^\]]*\]|\b\d{9,}\b|0x[0-9a-f]+|aotscope-\w+|(?<=___)\d+", "…", text)
            text = re.sub(r'"seq_nr":\[([^\]]*)\]', _ranked, text)
            rows.append((str(frame.compile), frame.stage.value, made.artifact.kind, made.name, made.graph or "", text))
    return rows, seen.summary


@contextmanager
def _nothing(session: Any) -> Any:
    yield


@pytest.mark.parametrize("name", ["batchnorm_buffers", "views_aliasing_outputs", "dynamic_batch"])
def test_a_run_is_the_same_without(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = (MODELS / f"{name}.py").read_text(encoding="utf-8")
    captured(source)  # what torch does once in a process is done
    with_replay = captured(source)
    assert with_replay.artifacts(StageName.JOINT, "aot_steps") != []
    monkeypatch.setattr(aot_steps, "keeping", _nothing)
    without = captured(source)
    assert without.artifacts(StageName.JOINT, "aot_steps") == []
    rows, summary = told(with_replay)
    rows_without, summary_without = told(without)
    assert [row[:-1] for row in rows] == [row[:-1] for row in rows_without]
    assert [row for row in rows if row not in rows_without] == []
    assert summary == summary_without
