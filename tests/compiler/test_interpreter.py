"""Inductor without its native compiler gives what the native code gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from compiler.torch_compat.interpreter import InterpretedModule, interpreted
from compiler.torch_compat.settings import no_caches


def run(fn: Callable[..., Any], *args: torch.Tensor, made: list[InterpretedModule] | None = None) -> tuple[Any, ...]:
    """One training step, compiled; interpreted when `made` is given."""
    torch._dynamo.reset()
    inputs = [arg.detach().clone().requires_grad_(arg.is_floating_point()) for arg in args]
    torch.manual_seed(7)
    with no_caches():
        if made is None:
            out = torch.compile(fn)(*inputs)
            torch.manual_seed(3)
            out.sum().backward()
        else:
            with interpreted(lambda: "0/0", made.append):
                out = torch.compile(fn)(*inputs)
                torch.manual_seed(3)
                out.sum().backward()
    return (out.detach(), *(arg.grad for arg in inputs))


def noisy(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = torch.nn.functional.dropout(x @ w, 0.3) + 0.1 * torch.randn_like(x) + torch.rand(x.shape[0], 1)
    return y * torch.randint(0, 5, (x.shape[1],))


def test_random_numbers_are_those_of_the_native_code() -> None:
    args = torch.linspace(-1, 1, 120).view(12, 10), torch.eye(10)
    made: list[InterpretedModule] = []
    torch.testing.assert_close(run(noisy, *args, made=made), run(noisy, *args), rtol=0, atol=0)
    assert [(module.graph, module.is_backward, module.compile) for module in made] == [
        ("forward", False, "0/0"),
        ("backward", True, "0/0"),
    ]
    assert all("def call(" in module.code or "def call(self" in module.code for module in made)


def test_outputs_have_the_strides_of_the_plan() -> None:
    def fn(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.conv2d(x, w, padding=1).relu()

    x = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)
    w = torch.randn(4, 3, 3, 3).to(memory_format=torch.channels_last)
    interpreted_out, native_out = (run(fn, x, w, made=made)[0] for made in ([], None))
    assert interpreted_out.stride() == native_out.stride()
    torch.testing.assert_close(interpreted_out, native_out)


def test_symbolic_strides_are_read_off_the_inputs() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return (x.t() * 2).contiguous().sin()

    torch._dynamo.reset()
    made: list[InterpretedModule] = []
    with no_caches(), interpreted(lambda: "0/0", made.append):
        compiled = torch.compile(fn, dynamic=True)
        for rows in (5, 7):
            x = torch.randn(rows, 3)
            torch.testing.assert_close(compiled(x), fn(x))
            assert compiled(x).stride() == fn(x).stride()
    assert len(made) == 1
    assert made[0].graph == "inference"


def test_inputs_are_checked_as_the_wrapper_does() -> None:
    torch._dynamo.reset()
    made: list[InterpretedModule] = []
    with no_caches(), interpreted(lambda: None, made.append):
        torch.compile(lambda x: x + 1)(torch.ones(2, 3))
    with pytest.raises(AssertionError, match="expected size"):
        made[0].call([torch.ones(3, 2)])


def test_gradients_are_taken_and_not_copied() -> None:
    """Whoever keeps the outputs of a backward makes autograd copy them."""
    torch._dynamo.reset()
    made: list[InterpretedModule] = []
    with no_caches(), interpreted(lambda: None, made.append):
        x = torch.ones(3, requires_grad=True)
        torch.compile(lambda x: (x * x).sum())(x).backward()
    assert made[-1]._interpreter.env == {}
