"""The world in which a snippet runs for a GPU that is not there: all its tensors are fake. They have a shape, a dtype and a device, and
no values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch._inductor.config as inductor_config
import torch._subclasses.fake_tensor as fake_tensor
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
    UnsupportedOperatorException,
)

from compiler.torch_compat.virtual_gpu.inductor import settings


def touch_no_device() -> None:
    FakeTensorMode.avoid_device_init = property(lambda _: True)
    fake_tensor.init_gpu_context = lambda _: None


@contextmanager
def fake_world() -> Iterator[None]:
    """Until it ends, tensors are made on the GPU unless the snippet says otherwise, and all are fake. Backwards run in this thread,
    because the modes are a thread's own."""
    with (
        FakeTensorMode(allow_non_fake_inputs=True),
        torch.device("cuda"),
        torch.autograd.set_multithreading_enabled(False),
        inductor_config.patch(settings()),
    ):
        yield


def needs_values(error: BaseException) -> str | None:
    """The operator that could not go on without values, when that is why it was raised; else None."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, (DataDependentOutputException, DynamicOutputShapeException, UnsupportedOperatorException)):
            return str(seen.func)
        seen = seen.__cause__ or seen.__context__
    return None
