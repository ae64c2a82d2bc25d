"""Where Inductor would touch the device while it compiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode


class _OnCpu(TorchDispatchMode):  # type: ignore[misc]
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
            with _OnCpu():
                return original(*args, **kwargs)

        return folded

    for name in ("run", "_add_peephole_patterns"):
        setattr(UniformValueConstantFolder, name, on_cpu(getattr(UniformValueConstantFolder, name)))


def settings() -> dict[str, Any]:
    """Inductor's settings that keep it from timing anything on the device. What they decide is told as a fact of the run."""
    return {"shape_padding": False, "use_static_triton_launcher": False}
