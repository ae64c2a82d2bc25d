"""What happens inside a trace: each call that functionalization takes in, and each decomposition, with the nodes it made."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.fx as fx
import torch.fx.traceback as fx_traceback
from torch._subclasses.functional_tensor import FunctionalTensor, FunctionalTensorMode
from torch.fx.experimental.proxy_tensor import get_proxy_mode, get_proxy_slot

from compiler.torch_compat.fx import half, stack_trace
from compiler.torch_compat.hooks import replaced


@dataclass(frozen=True)
class Memory:
    """A piece of memory that functional tensors share, by the node that they were first seen as."""

    node: fx.Node | None


@dataclass
class Call:
    """One operator as functionalization saw it, before it made it functional.

    `writes` are the pieces of memory that it writes, each with whether that was by way of a view; `views` the memory of
    which it returned a view. `backward`: autograd called it. `nodes` are what was traced for it, those that are dead
    afterwards left out."""

    op: str
    writes: list[tuple[Memory, bool]] = field(default_factory=list)
    views: Memory | None = None
    stack: str = ""
    backward: bool = False
    nodes: list[fx.Node] = field(default_factory=list)


@dataclass
class Decomposed:
    """One operator that a decomposition took the place of, not within another one, and the nodes that it made."""

    op: str
    nodes: list[fx.Node]


class Record:
    """Filled while a trace runs; `finish` tells it the graph that came of it."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.decomposed: list[Decomposed] = []
        self._open: list[set[fx.Node]] = []
        self._decomposing = 0
        # By the address of a storage, which is kept alive so that the address stays its own.
        self._memory: dict[int, tuple[Any, Memory]] = {}
        self._views: set[int] = set()
        self._kept: list[Any] = []

    def decompositions(self, table: Mapping[Any, Callable[..., Any]]) -> dict[Any, Callable[..., Any]]:
        """The table, each entry telling of its calls."""
        return {op: self._told(op, function) for op, function in table.items()}

    def _told(self, op: Any, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            graph = _graph()
            if graph is None or self._decomposing:
                return function(*args, **kwargs)
            before = _last(graph)
            self._decomposing += 1
            try:
                result = function(*args, **kwargs)
            finally:
                self._decomposing -= 1
            if result is not NotImplemented:
                self.decomposed.append(Decomposed(str(op), _since(graph, before)))
            return result

        return run

    def call(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], run: Callable[[], Any]) -> Any:
        graph = _graph()
        if graph is None or op in FunctionalTensor.metadata_fns:
            return run()
        call = Call(
            str(op), self._writes(op, args, kwargs), stack=fx_traceback.get_current_meta().get("stack_trace") or ""
        )
        sources = [self._of(tensor) for tensor in _functional((args, kwargs))]
        before = _last(graph)
        self._open.append(set())
        try:
            result = run()
        finally:
            inner = self._open.pop()
        made = _since(graph, before)
        if self._open:
            self._open[-1].update(made)
        outputs = _functional(result)
        for tensor in outputs:
            self._of(tensor)
        if getattr(op, "is_view", False) and outputs and sources:
            call.views = sources[0]
            self._kept += outputs
            self._views.update(map(id, outputs))
        call.nodes = [node for node in made if node not in inner]
        if call.nodes or not inner:
            self.calls.append(call)
        return result

    def _writes(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[Memory, bool]]:
        schema = getattr(op, "_schema", None)
        if schema is None or not schema.is_mutable:
            return []
        found: list[tuple[Memory, bool]] = []
        for place, argument in enumerate(schema.arguments):
            if argument.alias_info is None or not argument.alias_info.is_write:
                continue
            value = args[place] if place < len(args) else kwargs.get(argument.name)
            for tensor in _functional(value):
                memory = self._of(tensor)
                if memory is not None:
                    found.append((memory, id(tensor) in self._views))
        return found

    def _of(self, tensor: FunctionalTensor) -> Memory | None:
        """The memory of a tensor; None for one that has no storage (a sparse one)."""
        if tensor.layout != torch.strided:
            return None
        storage = tensor.untyped_storage()
        known = self._memory.get(storage._cdata)
        if known is None:
            known = self._memory[storage._cdata] = (storage, Memory(_node_of(tensor)))
        return known[1]

    def finish(self, graph: fx.Graph) -> None:
        """Forget nodes that the finished graph does not have, and let the tensors go."""
        alive = set(graph.nodes)
        for call in self.calls:
            call.backward = any(half(node) == "backward" for node in call.nodes)
            call.nodes = [node for node in call.nodes if node in alive]
            call.stack = call.stack or next((stack_trace(node) for node in call.nodes if stack_trace(node)), "")
        for entry in self.decomposed:
            entry.nodes = [node for node in entry.nodes if node in alive]
        self._memory.clear()
        self._kept.clear()


@contextlib.contextmanager
def recording(record: Record) -> Iterator[None]:
    """While it lasts, `record` hears of every call that functionalization takes in. The method is replaced and not the class:
    torch's rules for higher-order operators go by the exact class."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def dispatch(
            self: Any, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            return record.call(func, args, kwargs or {}, lambda: original(self, func, types, args, kwargs))

        return dispatch

    with replaced(FunctionalTensorMode, "__torch_dispatch__", make):
        yield


def _functional(value: Any) -> list[FunctionalTensor]:
    if isinstance(value, FunctionalTensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in _functional(item)]
    if isinstance(value, dict):
        return [tensor for item in value.values() for tensor in _functional(item)]
    return []


def _graph() -> fx.Graph | None:
    mode = get_proxy_mode()
    return None if mode is None else mode.tracer.graph


def _last(graph: fx.Graph) -> fx.Node | None:
    return next(iter(reversed(graph.nodes)), None)


def _since(graph: fx.Graph, before: fx.Node | None) -> list[fx.Node]:
    made: list[fx.Node] = []
    for node in reversed(graph.nodes):
        if node is before:
            break
        made.append(node)
    return made[::-1]


def _node_of(tensor: FunctionalTensor) -> fx.Node | None:
    """The node that a tensor's present value is; no pending write is put through for the question."""
    mode = get_proxy_mode()
    if mode is None:
        return None
    inner = torch._from_functional_tensor(tensor.elem)
    slot = get_proxy_slot(inner, mode.tracer, None)
    return None if slot is None else slot.proxy.node
