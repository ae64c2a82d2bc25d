"""Where Inductor would touch the device while it compiles, or right after: what it would time there, and what it would record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from compiler.torch_compat.autotuning import described
from compiler.torch_compat.hooks import replaced


class OnCpu(TorchDispatchMode):  # type: ignore[misc]
    """Whatever is made for the device is made on the CPU."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        def here(device: torch.device) -> torch.device:
            return torch.device("cpu") if device.type == "cuda" else device

        args, kwargs = pytree.tree_map_only(torch.device, here, (args, kwargs or {}))
        return func(*args, **kwargs)


def fold_constants_on_cpu() -> None:
    """Inductor's folding of uniform values makes real tensors of one element on the graph's device, to see what they come to."""
    from torch._inductor.fx_passes.joint_graph import UniformValueConstantFolder

    def on_cpu(original: Callable[..., Any]) -> Callable[..., Any]:
        def folded(*args: Any, **kwargs: Any) -> Any:
            with OnCpu():
                return original(*args, **kwargs)

        return folded

    for name in ("run", "_add_peephole_patterns"):
        setattr(UniformValueConstantFolder, name, on_cpu(getattr(UniformValueConstantFolder, name)))


@dataclass(frozen=True)
class Untimed:
    """A choice that Inductor makes by timing: the operator, torch's descriptions of the candidates in its own order, and the one
    that it falls back to when nothing could be timed."""

    operator: str
    candidates: tuple[str, ...]
    shown: str


@contextmanager
def untimed(told: Callable[[Untimed], None]) -> Iterator[None]:
    """Let Inductor find no timings. It has a way for that, which takes the library's call where there is one, else the first
    candidate (`AlgorithmSelectorCache.__call__`); `told` is given what could have been chosen."""
    from torch._inductor.select_algorithm import AlgorithmSelectorCache

    def no_timings(original: Callable[..., Any]) -> Callable[..., Any]:
        del original
        return lambda *_, **__: {}

    def no_precompiling(original: Callable[..., Any]) -> Callable[..., Any]:
        del original
        return lambda *_, **__: dict

    def telling(original: Callable[..., Any]) -> Callable[..., Any]:
        def choose(self: Any, name: str, choices: list[Any], *args: Any, **kwargs: Any) -> Any:
            found = original(self, name, choices, *args, **kwargs)
            if len(choices) > 1:
                shown = found[1] if isinstance(found, tuple) else None
                told(Untimed(name, tuple(map(described, choices)), "" if shown is None else described(shown)))
            return found

        return choose

    with (
        replaced(AlgorithmSelectorCache, "do_autotuning", no_timings),
        replaced(AlgorithmSelectorCache, "make_precompile_fn", no_precompiling),
        replaced(AlgorithmSelectorCache, "__call__", telling),
    ):
        yield


@contextmanager
def unrecorded(told: Callable[[int], None]) -> Iterator[None]:
    """Record no CUDA graph: what would be recorded is run as it is, and `told` how many graphs that were. Why others would not be
    is in torch's log (`torch_compat/logs.py`)."""
    from torch._inductor import compile_fx, output_code

    def as_it_is(original: Callable[..., Any]) -> Callable[..., Any]:
        del original

        def cudagraphify(model: Callable[..., Any], *_: Any, **__: Any) -> Callable[..., Any]:
            told(1)
            return model

        return cudagraphify

    def counted(original: Callable[..., Any]) -> Callable[..., Any]:
        def partitions(example_inputs: Any, compiled_graph: Any, *rest: Any) -> None:
            compiled_graph.recursively_apply_fns = lambda parts: told(len(parts))
            original(example_inputs, compiled_graph, *rest)

        return partitions

    with (
        replaced(compile_fx, "cudagraphify", as_it_is),
        replaced(output_code, "cudagraph_partition_post_compile", counted),
        # Of graphs that are not recorded; it wants the manager of those that are.
        replaced(output_code, "maybe_handle_backward_generation", lambda _: lambda *_, **__: None),
    ):
        yield


def settings() -> dict[str, Any]:
    """Inductor's settings that keep it from timing anything on the device. What they decide is told as a fact of the run."""
    return {
        "shape_padding": False,
        "use_static_triton_launcher": False,
        "benchmark_epilogue_fusion": False,
        "benchmark_fusion": False,
        "benchmark_combo_kernel": False,
    }
