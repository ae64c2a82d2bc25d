"""AOTAutograd: where it traces a graph, and where it splits a joint one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch._functorch._aot_autograd.graph_capture_wrappers as graph_capture_wrappers
import torch._functorch._aot_autograd.graph_compile as graph_compile
import torch.fx as fx

from compiler.torch_compat.hooks import replaced

Kind = Literal["joint", "inference"]


@contextmanager
def around_trace(handle: Callable[[Kind, Callable[[], Any]], Any]) -> Iterator[None]:
    """`handle(kind, run)` around the tracing of each graph; `run()` gives torch's result, whose first item is the
    GraphModule, and which `handle` returns."""

    def as_kind(kind: Kind) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            return lambda *args, **kwargs: handle(kind, lambda: original(*args, **kwargs))

        return make

    with (
        replaced(graph_compile, "aot_dispatch_autograd_graph", as_kind("joint")),
        replaced(graph_compile, "aot_dispatch_base_graph", as_kind("inference")),
    ):
        yield


@contextmanager
def grad_fn_names(found: dict[int, str]) -> Iterator[None]:
    """Fill `found` with the names of the autograd nodes that a traced backward goes through, by their numbers."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def setup(roots: Any) -> Any:
            found.update(_names(roots))
            return original(roots)

        return setup

    with replaced(graph_capture_wrappers, "setup_stacktrace_preservation_hooks", make):
        yield


def _names(roots: Any) -> dict[int, str]:
    names: dict[int, str] = {}
    seen: set[Any] = set()
    todo = list(roots)
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        names[node._sequence_nr()] = node.name()
        todo += [following for following, _ in node.next_functions]
    return names


@contextmanager
def around_partition(handle: Callable[[fx.GraphModule, str, Callable[[], Any]], Any]) -> Iterator[None]:
    """`handle(joint module, partitioner, run)` around the split; `run()` gives torch's result, forward and backward
    module first. `partitioner` is the name of the function that AOTAutograd was given."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def partition(fx_g: Any, joint_inputs: Any, inner: Any, metadata: Any, config: Any, partition_fn: Any) -> Any:
            name = getattr(partition_fn, "__name__", type(partition_fn).__name__)
            return handle(fx_g, name, lambda: original(fx_g, joint_inputs, inner, metadata, config, partition_fn))

        return partition

    with replaced(graph_compile, "_partition_joint_graph_into_fw_bw", make):
        yield


@contextmanager
def around_subgraphs(entered: Callable[[bool], None]) -> Iterator[None]:
    """`entered(True)` before, `entered(False)` after AOTAutograd splits the bodies of higher-order operators, which it
    does with the same functions as the whole graph."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            entered(True)
            try:
                return original(*args, **kwargs)
            finally:
                entered(False)

        return run

    with replaced(graph_compile, "run_joint_graph_passes_on_hops", make):
        yield
