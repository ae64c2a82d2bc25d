"""Torch's first-use work, and how to forget that it was used."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator

import torch
import torch._inductor.codecache
import torch._inductor.codegen.cpp
import torch._inductor.codegen.cpp_wrapper_cpu
import torch._inductor.compile_fx
from torch._dynamo.utils import counters
from torch._inductor import metrics
from torch._inductor.cpu_vec_isa import pick_vec_isa
from torch._inductor.fx_passes import joint_graph, post_grad, pre_grad
from torch.utils import _pytree as pytree

from compiler.torch_compat.interpreter import interpreted
from compiler.torch_compat.settings import no_caches


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Torch's warnings about trivial models are no one's concern."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)


def probe_cpu() -> None:
    pick_vec_isa()


def vector_instructions() -> str:
    """The instruction set that Inductor compiles for, "" if it knows none."""
    isa = pick_vec_isa()
    return str(isa).lower().replace(" ", "_") if isa else ""


def build_pattern_tables(device: str) -> None:
    pre_grad.lazy_init()
    joint_graph.lazy_init(torch.device(device))
    # No argument: the table is cached by it, and torch later asks without.
    post_grad.lazy_init()


def compile_trivial_models() -> None:
    """An inference, a training, one with dynamic shapes and random numbers, and one that Dynamo traces through pytree: torch
    remembers for the process the source of pytree's table, and guards `torch` itself in the compile that first asks for it. So
    each run's guards are those of a process that has compiled before, whatever the run compiles first."""

    def pointwise(x: torch.Tensor) -> torch.Tensor:
        return (x.sin() * 2).sum(0)

    def random(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.softmax(torch.nn.functional.dropout(x @ w.t(), 0.1), -1).view(-1)

    def nested(x: torch.Tensor) -> torch.Tensor:
        leaves, _ = pytree.tree_flatten([x])
        return torch.sin(leaves[0])

    with no_caches(), interpreted(lambda: None, lambda _: None):
        for function in (pointwise, nested):
            with torch.no_grad():
                torch.compile(function)(torch.ones(4, 4))
            torch._dynamo.reset()
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.LayerNorm(4), torch.nn.GELU())
        torch.compile(model)(torch.ones(2, 4, requires_grad=True)).sum().backward()
        torch._dynamo.reset()
        x, w = torch.ones(5, 8, requires_grad=True), torch.ones(8, 8, requires_grad=True)
        torch.compile(random, dynamic=True)(x, w).sum().backward()
        torch._dynamo.reset()


def forget() -> None:
    torch._dynamo.reset()
    counters.clear()
    metrics.reset()
