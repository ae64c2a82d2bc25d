"""One step of a snippet, as `compiler/ir/memory.py` defines it: what is called, measured and kept from forward to backward."""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from compiler.timeline import Allocation
from compiler.torch_compat.profiler import mark, module_paths, record, user_lines


@dataclass(frozen=True)
class Measured:
    """The allocator's events of one step, and the addresses of the storages that it returned and left in `.grad`."""

    allocations: list[Allocation]
    outputs: frozenset[int]
    gradients: frozenset[int]


@dataclass(frozen=True)
class Saved:
    """What autograd kept from forward to backward. `tensor_bytes` sums the elements of every kept tensor; `storage_bytes` the
    distinct storages among them that are no parameter, buffer or input. `nodes` counts compiled graphs."""

    tensor_bytes: int
    storage_bytes: int
    nodes: int = 0


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in a value: of containers that torch knows, and of dataclasses' fields."""
    for leaf in pytree.tree_leaves(value):
        if isinstance(leaf, torch.Tensor):
            yield leaf
        elif dataclasses.is_dataclass(leaf) and not isinstance(leaf, type):
            for item in dataclasses.fields(leaf):
                yield from tensors(getattr(leaf, item.name))


class Step:
    """The forward of `function` on the first inputs and, when `training`, the backward with tangents made beforehand. A
    snippet's `scenario` is itself the step: then what is forward and what backward is its own affair."""

    def __init__(self, loaded: Any, function: Callable[..., Any], *, training: bool) -> None:
        self._loaded = loaded
        self._function = function
        self._training = training and loaded.scenario is None
        self._tangents: list[torch.Tensor] | None = None
        self.model: torch.nn.Module | None = loaded.model if isinstance(loaded.model, torch.nn.Module) else None

    def forward(self) -> Any:
        if self._loaded.scenario is not None:
            return self._loaded.scenario(self._function)
        return self._function(*self._loaded.inputs, **(self._loaded.kwargs or {}))

    def once(self) -> Any:
        """One step. Its outputs, which keep what they reach alive."""
        output = self.forward()
        if self._training:
            roots = [tensor for tensor in tensors(output) if tensor.requires_grad]
            if self._tangents is None:
                self._tangents = [torch.ones_like(tensor) for tensor in roots]
            mark("phase", "backward")
            torch.autograd.backward(roots, self._tangents)
        return output

    def clear(self) -> None:
        for tensor in (*self._parameters(), *tensors((self._loaded.inputs, self._loaded.kwargs))):
            if tensor.is_leaf:
                tensor.grad = None

    def _parameters(self) -> Iterator[torch.Tensor]:
        if self.model is not None:
            yield from self.model.parameters()

    def given(self) -> frozenset[int]:
        """Addresses of the storages that exist before the step: parameters, buffers, inputs."""
        buffers = self.model.buffers() if self.model is not None else ()
        inputs = tensors((self._loaded.inputs, self._loaded.kwargs))
        return frozenset(address for address, _ in storages((*self._parameters(), *buffers, *inputs)))

    def gradients(self) -> Iterator[torch.Tensor]:
        for tensor in (*self._parameters(), *tensors((self._loaded.inputs, self._loaded.kwargs))):
            if tensor.is_leaf and tensor.grad is not None:
                yield tensor.grad


def storages(values: Any) -> Iterator[tuple[int, int]]:
    """Address and bytes of each tensor's storage. A sparse tensor's are those of its indices and values."""
    for tensor in values:
        if tensor.layout == torch.strided:
            storage = tensor.untyped_storage()
            yield storage.data_ptr(), storage.nbytes()
        elif tensor.layout == torch.sparse_coo:
            yield from storages((tensor._indices(), tensor._values()))


def measure(
    step: Step, *, file: str, before: Callable[[], None] = lambda: None, eager: bool = False
) -> Measured:
    """The third of three steps, gradients cleared before each, under the profiler. `before` is called ahead of each.
    `file` is the snippet's, whose lines are marked; in eager execution modules are marked too."""
    for _ in range(2):
        before()
        step.clear()
        step.once()
    before()
    step.clear()
    gc.collect()
    paths: AbstractContextManager[None] = module_paths(step.model) if eager and step.model is not None else nullcontext()
    with paths, user_lines(file):
        output, allocations = record(step.once)
    outputs = frozenset(address for address, _ in storages(tensors(output)))
    gradients = frozenset(address for address, _ in storages(step.gradients()))
    return Measured(allocations, outputs, gradients)


def saved_by_eager(step: Step) -> Saved:
    """What eager autograd saves in one forward. Tensors saved inside a checkpoint are not kept, and not counted."""
    kept: list[torch.Tensor] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        kept.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        output = step.forward()
    result = _saved(kept, step.given())
    del output
    return result


def saved_by_compiled(step: Step) -> Saved:
    """What the compiled graphs' backward nodes really hold after one forward: the tensors with and without version check."""
    output = step.forward()
    seen: set[Any] = set()
    todo = [tensor.grad_fn for tensor in tensors(output)]
    kept: list[torch.Tensor] = []
    nodes = 0
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        todo += [following for following, _ in node.next_functions]
        if "CompiledFunction" in node.name():
            nodes += 1
            kept += [tensor for tensor in node.saved_tensors if tensor is not None]
            kept += list(getattr(node, "_tensors_no_vc_check", None) or ())
    return _saved(kept, step.given(), nodes)


def _saved(kept: list[torch.Tensor], given: frozenset[int], nodes: int = 0) -> Saved:
    distinct = {address: size for address, size in storages(kept) if address not in given}
    return Saved(
        tensor_bytes=sum(tensor.numel() * tensor.element_size() for tensor in kept if tensor.layout == torch.strided),
        storage_bytes=sum(distinct.values()),
        nodes=nodes,
    )
