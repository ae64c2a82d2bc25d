"""The world in which a snippet runs for a GPU that is not there: all its tensors are fake. They have a shape, a dtype and a
device, and no values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
import torch._inductor.config as inductor_config
import torch._subclasses.fake_tensor as fake_tensor
from torch._C._dynamo.eval_frame import _FrameAction, _FrameExecStrategy, set_code_exec_strategy
from torch._dynamo.variables import torch_function
from torch._dynamo.variables.optimizer import OptimizerVariable
from torch._dynamo.variables.tensor import NumpyNdarrayVariable
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental import proxy_tensor
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils import _pytree as pytree

from compiler.ir.execution import CudaGraphEvent
from compiler.torch_compat.hooks import replaced
from compiler.torch_compat.logs import cuda_graph_records
from compiler.torch_compat.virtual_gpu.inductor import OnCpu, Untimed, settings, unrecorded, untimed

_REFUSED = {"allow_scalar_outputs": False, "allow_dynamic_output_shape_ops": False}


def touch_no_device() -> None:
    FakeTensorMode.avoid_device_init = property(lambda _: True)
    fake_tensor.init_gpu_context = lambda _: None


@dataclass
class Unknown:
    """What the real device would have decided by timing or recording. `graphs` is how many graphs would be recorded."""

    untimed: list[Untimed] = field(default_factory=list)
    graphs: int = 0
    skipped: list[str] = field(default_factory=list)


@contextmanager
def fake_world() -> Iterator[Unknown]:
    """Until it ends, tensors are made on the GPU unless the snippet says otherwise, and all are fake. Backwards run in this
    thread, because the modes are a thread's own. What it gives fills up as things are compiled."""
    unknown = Unknown()

    def recorded(count: int) -> None:
        unknown.graphs += count

    def said(event: CudaGraphEvent) -> None:
        if event.kind == "skipped":
            unknown.skipped.append(event.text)

    # Higher-order operators want a shape environment; a value that is asked for stays refused.
    mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=ShapeEnv(**_REFUSED))
    with (
        _movable(mode),
        _recurrent_layers(),
        _fallbacks_on_cpu(),
        _optimizer_state(mode),
        _constants_on_cpu(),
        _numpy_arrays(),
        untimed(unknown.untimed.append),
        unrecorded(recorded),
        cuda_graph_records(said),
        mode,
        torch.device("cuda"),
        torch.autograd.set_multithreading_enabled(False),
        inductor_config.patch(settings()),
    ):
        yield unknown


@contextmanager
def _movable(mode: FakeTensorMode) -> Iterator[None]:
    """`module.to(...)` swaps the insides of its parameters, which must not be known elsewhere; the mode's own memo of what it has
    made is no reason to refuse."""

    def forgetting(original: Callable[..., None]) -> Callable[..., None]:
        def swap(one: torch.Tensor, other: torch.Tensor) -> None:
            mode.fake_tensor_converter.meta_converter.tensor_memo.clear()
            original(one, other)

        return swap

    with replaced(torch.utils, "swap_tensors", forgetting):
        yield


@contextmanager
def _recurrent_layers() -> Iterator[None]:
    """Eager recurrent layers choose their kernels below the dispatcher, where a fake tensor is taken for a real one. On the CPU
    they are operators like any other, and the results' shapes are the same."""

    def moved(value: Any, device: str) -> Any:
        return pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.to(device), value)

    def on_cpu(original: Callable[..., Any]) -> Callable[..., Any]:
        def layer(*args: Any, **kwargs: Any) -> Any:
            with torch.backends.mkldnn.flags(enabled=False):
                return moved(original(*moved(args, "cpu"), **moved(kwargs, "cpu")), "cuda")

        # Else Dynamo would compile it, and what it calls, as if it were the snippet's.
        set_code_exec_strategy(layer.__code__, _FrameExecStrategy(_FrameAction.SKIP, _FrameAction.SKIP))
        return layer

    with ExitStack() as stack:
        for name in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
            stack.enter_context(replaced(torch._VF, name, on_cpu))
        yield


@contextmanager
def _fallbacks_on_cpu() -> Iterator[None]:
    """An operator without a fake kernel is run on zeros, to see what shapes it gives: those of the CPU's kernel."""

    def on_cpu(original: Callable[..., Any]) -> Callable[..., Any]:
        def run(mode: FakeTensorMode, func: Any, flat_args: Any, *rest: Any) -> Any:
            there = [arg for arg in flat_args if isinstance(arg, FakeTensor) and arg.fake_device.type == "cuda"]
            devices = [arg.fake_device for arg in there]
            here = [torch.device("cpu") if isinstance(arg, torch.device) else arg for arg in flat_args]
            for arg in there:
                arg.fake_device = torch.device("cpu")
            try:
                result = original(mode, func, here, *rest)
            finally:
                for arg, device in zip(there, devices, strict=True):
                    arg.fake_device = device
            for made in pytree.tree_leaves(result) if there else ():
                if isinstance(made, FakeTensor):
                    made.fake_device = devices[0]
            return result

        return run

    with replaced(fake_tensor, "run_fallback_kernel", on_cpu):
        yield


@contextmanager
def _optimizer_state(mode: FakeTensorMode) -> Iterator[None]:
    """Dynamo lets an optimizer make its state while it traces the step, with all modes off."""

    def in_mode(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Any, tx: Any, name: str, *args: Any) -> Any:
            with mode if name == "_init_group" else nullcontext():
                return original(self, tx, name, *args)

        return call

    with replaced(OptimizerVariable, "call_method", in_mode):
        yield


@contextmanager
def _constants_on_cpu() -> Iterator[None]:
    """While a graph is traced, small tensors that come of literals (`torch.tensor(0)`) are computed for real beside it, so that a
    value that is asked of them is known. That is done on the CPU."""

    def on_cpu(original: Callable[..., Any]) -> Callable[..., Any]:
        @contextmanager
        def unset() -> Iterator[Any]:
            with original() as before, OnCpu():
                yield before

        return unset

    with replaced(proxy_tensor, "unset_fake_temporarily", on_cpu):
        yield


@contextmanager
def _numpy_arrays() -> Iterator[None]:
    """Dynamo hands an operator to the modes that are in force (the default device is one) by the tensor's method, which an array
    of NumPy's need not have. Those modes never see arrays."""

    def of_tensors(original: Callable[..., bool]) -> Callable[..., bool]:
        def dispatched(tx: Any, args: Any, kwargs: Any) -> bool:
            arrays = any(isinstance(arg, NumpyNdarrayVariable) for arg in (*args, *kwargs.values()))
            return not arrays and original(tx, args, kwargs)

        return dispatched

    with replaced(torch_function, "can_dispatch_torch_function", of_tensors):
        yield
