"""A GPU that is not there: the real Dynamo, AOTAutograd, Inductor and Triton compile for it, and nothing runs on it.

`install(target)` changes torch for the whole process and for good: one process serves one target, and compiles nothing for the
CPU. Everything in here is private to torch 2.13 and Triton 3.7; what each part replaces is said in its file.
"""

from __future__ import annotations

import sys

import torch

from compiler.errors import AotscopeError
from compiler.targets import BY_ID, TargetId
from compiler.text import message
from compiler.torch_compat.virtual_gpu import device, driver, shim

# at::SDPBackend that is preferred for half types, where the shapes allow it: 1 flash, 2 memory-efficient, 3 cuDNN.
_HALF_ATTENTION = {"sm_75": 2, "sm_80": 1, "sm_89": 1, "sm_90": 3, "sm_100": 3, "gfx942": 1}
_installed: TargetId | None = None


class WrongProcessError(AotscopeError):
    """This process is another target's, or has compiled for the CPU."""


def versions() -> dict[str, str]:
    """The versions of what is not here, as torch was told them."""
    rocm, cuda = torch.version.hip, torch.version.cuda
    return {"rocm": str(rocm)} if rocm else {"cuda": str(cuda)}


def install(target: TargetId) -> None:
    """Make this process compile for a virtual target. Idempotent. Raises WrongProcessError, or `shim.ShimError`."""
    global _installed
    if _installed == target:
        return
    found = BY_ID[target].device
    assert found is not None, "a virtual target has a device"
    if _installed is not None or "torch._inductor.config" in sys.modules:
        raise WrongProcessError(message("virtual.wrong_process", target=target))
    device.versions(found)
    shim.load(_HALF_ATTENTION[target])
    device.torch_cuda(found, target)
    driver.activate(found, target)
    # From here on the compiler is imported.
    from compiler.torch_compat.virtual_gpu import fakes, inductor

    fakes.touch_no_device()
    device.device_interface()
    inductor.fold_constants_on_cpu()
    assert torch.accelerator.current_accelerator().type == "cuda"
    _installed = target


__all__ = ["WrongProcessError", "install", "versions"]
