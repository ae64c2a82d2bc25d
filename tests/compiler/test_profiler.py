"""Allocation events of a step: sizes, marks, operators, and the forward that a gradient belongs to."""

from __future__ import annotations

from typing import Any

import torch

from compiler.compare import compare_tensor
from compiler.step import Step, Subject, measure, saved_by_compiled, saved_by_eager
from compiler.torch_compat.profiler import mark, record, user_lines
from compiler.torch_compat.wrapper import dry


def two_lines(x: torch.Tensor) -> torch.Tensor:
    first = x * 2
    return first.exp()


FIRST = two_lines.__code__.co_firstlineno + 1


def test_events_carry_the_marks_that_were_last_and_the_operators_around() -> None:
    def step() -> torch.Tensor:
        mark("wrapper", "0:7")
        made = torch.empty(100)
        mark("wrapper", "")
        del made
        return torch.ones(3)

    result, events = record(step)
    assert result.sum() == 3
    assert [(event.bytes, event.marks.get("wrapper")) for event in events] == [(400, "0:7"), (-400, ""), (12, "")]
    assert events[0].operators == ("aten::empty",)
    assert events[0].ptr == events[1].ptr
    assert {event.marks["phase"] for event in events} == {"forward"}


def test_lines_are_those_of_the_file_and_come_back_in_the_backward() -> None:
    x = torch.ones(64, requires_grad=True)

    def step() -> torch.Tensor:
        out = two_lines(x)
        mark("phase", "backward")
        out.backward(tangent)
        return out

    tangent = torch.ones(64)
    with user_lines(__file__):
        _, events = record(step)
    forward = [event for event in events if event.marks["phase"] == "forward" and event.bytes == 256]
    assert [event.marks["user"] for event in forward] == [str(FIRST), str(FIRST + 1)]
    backward = [event for event in events if event.marks["phase"] == "backward" and event.bytes == 256]
    assert {event.forward["user"] for event in backward} == {str(FIRST), str(FIRST + 1)}


def subject(model: Any, *args: torch.Tensor) -> Subject:
    return Subject(__file__, model, args, {}, training=True)


def test_a_step_counts_outputs_and_gradients_and_not_its_tangents() -> None:
    model = torch.nn.Linear(8, 4)
    found = measure(Step(subject(model, torch.ones(2, 8)), model), file=__file__, eager=True)
    left = sum(event.bytes for event in found.allocations)
    assert left == 2 * 4 * 4 + 8 * 4 * 4 + 4 * 4  # output, gradients of weight and bias
    assert len(found.outputs) == 1
    assert len(found.gradients) == 2


def two(x: torch.Tensor) -> torch.Tensor:
    return x.exp().sin()


def test_what_the_nodes_hold_is_what_the_hooks_saw() -> None:
    step = Step(subject(two, torch.ones(16, requires_grad=True)), two)
    assert saved_by_compiled(step).storage_bytes == saved_by_eager(step).storage_bytes == 64


WRAPPER = """\
import torch
from torch._inductor.async_compile import AsyncCompile
empty_strided_cpu = torch._C._dynamo.guards._empty_strided_cpu
async_compile = AsyncCompile()
cpp_fused_0 = async_compile.cpp_pybinding(['float*'], 'this is no C++')
class Runner:
    def call(self, args):
        x, = args
        args.clear()
        buf0 = empty_strided_cpu((4, ), (1, ), torch.float32)
        cpp_fused_0(x, buf0)
        return (buf0 + seven, )
runner = Runner()
call = runner.call
"""


def test_a_dry_wrapper_allocates_zeros_marks_its_lines_and_leaves_torch_as_it_was() -> None:
    empty = torch._C._dynamo.guards._empty_strided_cpu
    call = dry(WRAPPER, {"seven": torch.tensor(7.0)}, "3")
    assert torch._C._dynamo.guards._empty_strided_cpu is empty
    (out,), events = record(lambda: call([torch.ones(4)]))
    assert compare_tensor("out", "output", 0, torch.full((4,), 7.0), out).agrees
    assert [event.marks.get("wrapper") for event in events if event.bytes == 16 and event.marks.get("wrapper")] == [
        "3:10",
        "3:12",
    ]
