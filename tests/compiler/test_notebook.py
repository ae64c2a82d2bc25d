"""`explore` on a live model: what it gives back, and what it leaves alone."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from compiler import Explored, explore
from compiler.errors import AotscopeError
from compiler.fork import AsideError
from compiler.ir.graph import GraphPayload
from compiler.ir.source import SourcePayload


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(4, 8)
        self.drop = torch.nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.drop(self.first(x)))


LINE = next(i for i, line in enumerate(Path(__file__).read_text().splitlines(), 1) if "torch.relu(self.drop" in line)


@pytest.fixture(scope="module")
def net() -> Net:
    torch.manual_seed(0)
    return Net()


@pytest.fixture(scope="module")
def explored(net: Net) -> Explored:
    return explore(net, (torch.randn(3, 4),))


def test_the_payloads_are_the_pipelines_own(explored: Explored) -> None:
    assert explored.outcome.type == "finished"
    (source,) = explored.payloads("source")
    assert isinstance(source, SourcePayload)
    assert (source.model, source.mode) == ("Net", "training")
    (joint,) = explored.payloads("graph", "joint")
    assert isinstance(joint, GraphPayload)
    assert explored.summary["joint_nodes_before_passes"] == [len(joint.nodes.name)]
    assert LINE in joint.nodes.line
    stages = {stage["name"] for compiled in explored.document()["compiles"] for stage in compiled["stages"]}
    assert {"dynamo", "joint", "partition", "post_grad", "schedule", "fusion", "codegen"} <= stages


def test_nothing_of_this_process_is_touched(net: Net) -> None:
    net.zero_grad()
    x = torch.randn(3, 4, requires_grad=True)
    random, parameters = torch.get_rng_state(), [p.detach().clone() for p in net.parameters()]
    threads, counters = torch.get_num_threads(), dict(torch._dynamo.utils.counters)
    explore(net, x, until="joint")
    assert torch.equal(random, torch.get_rng_state())
    assert all(torch.equal(one, other) for one, other in zip(parameters, net.parameters(), strict=True))
    assert [p.grad for p in net.parameters()] == [None, None]
    assert x.grad is None
    assert (threads, counters) == (torch.get_num_threads(), dict(torch._dynamo.utils.counters))


def test_what_a_model_raises_is_told(net: Net) -> None:
    found = explore(net, (torch.randn(3, 5),), until="joint")
    assert found.outcome.error is not None


def test_inference_and_a_function() -> None:
    found = explore(lambda x: x.sin() + 1, [torch.randn(3)], mode="inference", until="joint")
    assert found.payloads("source")[0].mode == "inference"  # type: ignore[union-attr]


def test_a_device_that_a_fork_cannot_use_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Away:
        device = torch.device("cuda", 0)

    def reachable(_model: Any) -> Any:
        return iter((Away(),))

    monkeypatch.setattr("compiler.live.reachable", reachable)
    with pytest.raises(AotscopeError) as refused:
        explore(torch.sin, torch.randn(2))
    assert refused.value.cause.params == {"device": "cuda:0"}


def test_a_fork_that_takes_too_long_is_ended(net: Net) -> None:
    with pytest.raises(AsideError):
        explore(net, (torch.randn(3, 4),), limit_seconds=0.01)


def test_a_notebook_shows_the_page_in_a_frame_that_reaches_nothing(explored: Explored) -> None:
    shown = explored._repr_html_()
    (sandbox,) = re.findall(r'sandbox="([^"]*)"', shown.split("srcdoc")[0])
    assert "allow-same-origin" not in sandbox
    (inside,) = re.findall(r'srcdoc="([^"]*)"', shown)
    assert html.unescape(inside) == explored.html()
