"""One step of a snippet, as `compiler/ir/memory.py` defines it: what is called, measured and kept from forward to backward."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import torch.utils._pytree as pytree

from compiler.events import Mode
from compiler.snippet import Loaded, named_tensors
from compiler.text import Message, message
from compiler.timeline import Allocation
from compiler.torch_compat import real_gpu
from compiler.torch_compat.hooks import replaced
from compiler.torch_compat.profiler import mark, module_paths, record, user_lines

# Runs a step: its result, and what the allocator did in it.
Recorder = Callable[[Callable[[], Any]], tuple[Any, list[Allocation]]]


@dataclass(frozen=True)
class Measured:
    """The allocator's events of one step, and the addresses of the storages that it returned and left in `.grad`."""

    allocations: list[Allocation]
    outputs: frozenset[int]
    gradients: frozenset[int]


@dataclass(frozen=True)
class Saved:
    """What autograd kept from forward to backward. `tensor_bytes` sums the elements of every kept tensor (of compiled graphs
    only, where there are any); `storage_bytes` the distinct storages that are no parameter, buffer or input, of everything.
    `nodes` counts compiled graphs."""

    tensor_bytes: int
    storage_bytes: int
    nodes: int = 0


@dataclass(frozen=True)
class Subject:
    """What a step runs: `model` on `args` and `kwargs`, with a backward when `training`; `file` is the snippet's. A `scenario` is
    itself the step: what is forward in it and what backward is its own affair. `no_grad` where the snippet's own calls are made
    so: in another grad mode a compiled function is compiled again."""

    file: str
    model: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    training: bool
    no_grad: bool = False
    compile_kwargs: dict[str, Any] = field(default_factory=dict)
    scenario: Callable[[Callable[..., Any]], Any] | None = None
    note: Message | None = None

    @property
    def backward(self) -> bool:
        return self.training and self.scenario is None


def subject_of(loaded: Loaded, mode: Mode, asked: Mode) -> Subject:
    """The step of a declared snippet: its first call. `mode` is the one that was `asked` for, resolved, not auto."""
    return Subject(
        file=str(loaded.snippet.file),
        model=loaded.model,
        args=loaded.calls[0],
        kwargs=loaded.kwargs,
        training=mode is Mode.TRAINING,
        no_grad=asked is Mode.INFERENCE,
        compile_kwargs=loaded.compile_kwargs,
        scenario=loaded.scenario,
        note=message("memory.scenario_step") if loaded.scenario is not None else None,
    )


def in_float64(loaded: Loaded) -> Loaded:
    """The same snippet with its model, its calls and its keyword arguments in float64, leaves being leaves again. Changes the
    model in place."""

    def wide(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or not (value.is_floating_point() or value.is_complex()):
            return value
        exact = value.detach().to(torch.complex128 if value.is_complex() else torch.float64)
        return exact.requires_grad_(value.requires_grad)

    model = loaded.model.double() if isinstance(loaded.model, torch.nn.Module) else loaded.model
    calls, kwargs = pytree.tree_map(wide, (loaded.calls, loaded.kwargs))
    return replace(loaded, model=model, calls=calls, kwargs=kwargs)


def other_batch(subject: Subject) -> Subject | None:
    """The same step for one more in the batch: in every tensor whose first size is that of the first tensor with a size, the last
    row comes twice. None when there is no such tensor, or the step is a scenario's."""
    given = [tensor for tensor in tensors((subject.args, subject.kwargs)) if tensor.dim() and tensor.shape[0]]
    if not given or subject.scenario is not None:
        return None
    size = given[0].shape[0]

    def longer(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or not value.dim() or value.shape[0] != size:
            return value
        return torch.cat([value.detach(), value.detach()[-1:]]).requires_grad_(value.requires_grad)

    args, kwargs = pytree.tree_map(longer, (subject.args, subject.kwargs))
    return replace(subject, args=args, kwargs=kwargs)


FirstCall = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any], bool]


def script_subject(first: FirstCall | None, file: str, compile_kwargs: dict[str, Any] | None = None) -> Subject | None:
    """The step of a script: its first call of something that it compiled, and the backward where gradients were recorded. None
    when it made no such call."""
    if first is None:
        return None
    model, args, kwargs, training = first
    return Subject(
        file, model, args, kwargs, training, not training, compile_kwargs or {}, note=message("memory.script_step")
    )


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in a value, dataclasses' fields among them."""
    return (tensor for _, tensor in named_tensors(value, ""))


class Step:
    """One step of `subject` with `function`: its model, or the compiled one. The tangents of the backward are made once,
    ahead of every step but the first, so that they count as nothing."""

    def __init__(self, subject: Subject, function: Callable[..., Any]) -> None:
        self._subject = subject
        self._function = function
        self._tangents: list[torch.Tensor] | None = None
        self.model: torch.nn.Module | None = subject.model if isinstance(subject.model, torch.nn.Module) else None

    def forward(self) -> Any:
        subject = self._subject
        if subject.scenario is not None:
            return subject.scenario(self._function)
        with torch.no_grad() if subject.no_grad else nullcontext():
            return self._function(*subject.args, **subject.kwargs)

    def once(self) -> Any:
        """One step. Its outputs, which keep what they reach alive."""
        output = self.forward()
        if self._subject.backward:
            roots = [tensor for tensor in tensors(output) if tensor.requires_grad]
            if self._tangents is None:
                self._tangents = [torch.ones_like(tensor) for tensor in roots]
            mark("phase", "backward")
            if roots:
                torch.autograd.backward(roots, self._tangents)
        return output

    def _leaves(self) -> Iterator[torch.Tensor]:
        if self.model is not None:
            yield from self.model.parameters()
        for tensor in tensors((self._subject.args, self._subject.kwargs)):
            if tensor.is_leaf:
                yield tensor

    def clear(self) -> None:
        if real_gpu.in_use():
            # What a CUDA graph gave in the step before may be overwritten from here on.
            torch.compiler.cudagraph_mark_step_begin()
        for tensor in self._leaves():
            tensor.grad = None

    def gradients(self) -> list[torch.Tensor]:
        return [tensor.grad for tensor in self._leaves() if tensor.grad is not None]

    def given(self) -> frozenset[int]:
        """Addresses of the storages that exist before the step: parameters, buffers, inputs."""
        buffers = self.model.buffers() if self.model is not None else ()
        inputs = tensors((self._subject.args, self._subject.kwargs))
        return frozenset(address for address, _ in storages((*self._leaves(), *buffers, *inputs)))


def storages(values: Any) -> Iterator[tuple[int, int]]:
    """Address and bytes of each tensor's storage. A sparse tensor's are those of its indices and values. Tensors that are not
    what they seem (fakes of a compile under way, subclasses that wrap others) have none."""
    for tensor in values:
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
            continue
        if tensor.layout == torch.strided:
            storage = tensor.untyped_storage()
            yield storage.data_ptr(), storage.nbytes()
        elif tensor.layout == torch.sparse_coo:
            yield from storages((tensor._indices(), tensor._values()))


def measure(
    step: Step,
    *,
    file: str,
    before: Callable[[bool], None] = lambda measured: None,
    eager: bool = False,
    recorder: Recorder = record,
) -> Measured:
    """The third of three steps, gradients cleared before each, under the profiler. `before` is called ahead of each, and told
    whether it is the measured one. `file` is the snippet's, whose lines are marked; in eager execution modules are marked too.
    `recorder` runs the step and says what the allocator did: the CPU's by default."""
    for _ in range(2):
        before(False)
        step.clear()
        step.once()
    before(True)
    step.clear()
    gc.collect()
    paths: AbstractContextManager[None] = (
        module_paths(step.model) if eager and step.model is not None else nullcontext()
    )
    with paths, user_lines(file):
        output, allocations = recorder(step.once)
    outputs = frozenset(address for address, _ in storages(tensors(output)))
    gradients = frozenset(address for address, _ in storages(step.gradients()))
    return Measured(allocations, outputs, gradients)


def saved_by_eager(step: Step) -> Saved:
    """What eager autograd saves in one forward. A checkpoint hides what it keeps from us: then it is what the forward leaves
    allocated besides its outputs, the generator states that a checkpoint keeps among it."""
    kept: list[torch.Tensor] = []
    others = 0

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        kept.append(tensor)
        return tensor

    def counting(enter: Callable[..., None]) -> Callable[..., None]:
        def entered(self: Any) -> None:
            nonlocal others
            others += 1
            enter(self)

        return entered

    with (
        torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor),
        replaced(torch.autograd.graph.saved_tensors_hooks, "__enter__", counting),
    ):
        output = step.forward()
    found = _saved(kept, step.given())
    del output
    return Saved(found.tensor_bytes, _left_by_forward(step)) if others else found


def _left_by_forward(step: Step) -> int:
    output, allocations = record(step.forward)
    alive: dict[int, int] = {}
    for event in allocations:
        if event.bytes > 0:
            alive[event.ptr] = event.bytes
        else:
            alive.pop(event.ptr, None)
    outputs = {address for address, _ in storages(tensors(output))}
    return sum(size for address, size in alive.items() if address not in outputs)


def saved_by_compiled(step: Step) -> Saved:
    """What the autograd nodes really hold after one compiled forward: compiled graphs' tensors, with and without version check,
    and, after a graph break, those that eager operators saved. The former are noted when they are saved: a forward may run a
    backward of its own, after which they are gone."""
    contexts: list[tuple[Any, tuple[Any, ...]]] = []

    def noting(save: Callable[..., Any]) -> Callable[..., Any]:
        def save_for_backward(self: Any, *kept: Any) -> Any:
            if "CompiledFunction" in type(self).__name__:
                contexts.append((self, kept))
            return save(self, *kept)

        return save_for_backward

    with replaced(torch.autograd.function.FunctionCtx, "save_for_backward", noting):
        output = step.forward()
    seen: set[Any] = set()
    todo = [tensor.grad_fn for tensor in tensors(output)]
    compiled = [
        tensor
        for context, kept in contexts
        for tensor in (*kept, *(getattr(context, "_tensors_no_vc_check", None) or ()))
        if tensor is not None
    ]
    others: list[torch.Tensor] = []
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        todo += [following for following, _ in node.next_functions]
        if "CompiledFunction" in node.name():
            continue
        if hasattr(node, "saved_tensors"):
            others += [tensor for tensor in node.saved_tensors if tensor is not None]
        else:
            saved = (getattr(node, name) for name in dir(node) if name.startswith("_saved_"))
            others += [tensor for value in saved for tensor in tensors(value)]
    given = step.given()
    total = _saved(compiled + others, given)
    return Saved(_saved(compiled, given).tensor_bytes, total.storage_bytes, len(contexts))


def _saved(kept: list[torch.Tensor], given: frozenset[int]) -> Saved:
    distinct = {address: size for address, size in storages(kept) if address not in given}
    return Saved(
        tensor_bytes=sum(tensor.numel() * tensor.element_size() for tensor in kept if tensor.layout == torch.strided),
        storage_bytes=sum(distinct.values()),
    )
