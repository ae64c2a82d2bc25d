"""Of each kernel: the bytes it must move, the operations it must do, and the least time that the target's published
rates leave it.

Bytes: each tensor that comes from outside of the kernel is read once, each that somebody outside reads is written
once. A view counts as what it is a view of, and no more than its own elements; a gather as its result. Operations:
`torch_compat/operations.py`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch.fx as fx

from compiler.ir.graph import Graph, TensorValue, TupleValue, Value
from compiler.ir.roofline import KernelRoofline, NodeOperations, RooflinePayload, Traffic
from compiler.targets import Device, Figure
from compiler.text import message
from compiler.torch_compat.operations import gathers, is_view, mutates, operations, tf32


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel, or one external call, and the FX nodes that it computes."""

    kernel: str
    nodes: list[fx.Node]


def roofline(
    id: str,
    target: str,
    device: Device,
    graph: Graph,
    launches: Sequence[Launch],
    group_bytes: Mapping[str, int | None],
) -> RooflinePayload:
    """The payload of one graph. `graph` is the lifted post-grad graph of the launches' nodes; `group_bytes` maps a
    kernel to Inductor's own count."""
    allowed = tf32()
    traffic = _Traffic(graph, launches)
    rows: dict[str, list[tuple[list[Traffic], list[NodeOperations]]]] = {}
    for launch in launches:
        counted = [
            _on_units(device, operations(node, traffic.value, allowed))
            for node in launch.nodes
            if node.op == "call_function"
        ]
        rows.setdefault(launch.kernel, []).append((traffic.of(launch), counted))
    kernels = [_kernel(name, device, parts, group_bytes.get(name)) for name, parts in rows.items()]
    return RooflinePayload(
        id=id,
        target=target,
        device=device.name,
        bandwidth=device.bandwidth,
        vector=device.vector,
        matrix=device.matrix,
        tf32=allowed.products,
        tf32_convolutions=allowed.convolutions,
        kernels=kernels,
        seconds=sum(kernel.seconds or 0.0 for kernel in kernels),
        complete=all(kernel.complete for kernel in kernels),
    )


def _kernel(
    name: str, device: Device, parts: list[tuple[list[Traffic], list[NodeOperations]]], group_bytes: int | None
) -> KernelRoofline:
    moved = [one for traffic, _ in parts for one in traffic]
    done = [one for _, counted in parts for one in counted]
    known_bytes = sum(one.bytes or 0 for one in moved)
    all_bytes = all(one.bytes is not None for one in moved)
    memory = known_bytes / device.bandwidth.value
    by_unit: dict[str, float] = {}
    all_rated = True
    for one in done:
        rate = _rate(device, one)
        if one.operations and rate is not None:
            by_unit[one.unit] = by_unit.get(one.unit, 0.0) + one.operations / rate.value
        all_rated = all_rated and (one.operations == 0 or (one.operations is not None and rate is not None))
    # Both kinds of units work at the same time.
    slowest = max(by_unit, key=lambda unit: by_unit[unit], default=None)
    compute = 0.0 if slowest is None else by_unit[slowest]
    nothing = not known_bytes and slowest is None
    bound = "unknown" if nothing else "memory" if slowest is None or memory >= compute else slowest
    return KernelRoofline(
        kernel=name,
        launches=len(parts),
        bytes=known_bytes if all_bytes else None,
        operations=None if any(one.operations is None for one in done) else sum(one.operations or 0 for one in done),
        group_bytes=group_bytes,
        traffic=moved,
        nodes=done,
        memory_seconds=memory if known_bytes or all_bytes else None,
        compute_seconds=compute if slowest is not None or all_rated else None,
        seconds=None if nothing else max(memory, compute),
        bound=bound,
        complete=all_bytes and all_rated and not nothing,
    )


def _on_units(device: Device, one: NodeOperations) -> NodeOperations:
    """The node's arithmetic on those units of the device that do it: a product of a type without matrix units runs on the
    ordinary ones. Where no rate of either is published, it stays as it asked."""
    if one.unit == "vector" or one.dtype in device.matrix:
        return one
    dtype = "float32" if one.dtype == "tf32" else one.dtype
    if dtype in device.matrix:
        return one.model_copy(update={"dtype": dtype})
    return one.model_copy(update={"unit": "vector", "dtype": dtype}) if dtype in device.vector else one


def _rate(device: Device, one: NodeOperations) -> Figure | None:
    return (device.vector if one.unit == "vector" else device.matrix).get(one.dtype)


class _Traffic:
    def __init__(self, graph: Graph, launches: Iterable[Launch]) -> None:
        self._values: dict[str, Value | None] = {node.name: node.value for node in graph.nodes}
        self._launches: dict[fx.Node, list[frozenset[fx.Node]]] = {}
        self._sets: dict[int, frozenset[fx.Node]] = {}
        for launch in launches:
            members = frozenset(launch.nodes)
            self._sets[id(launch)] = members
            for node in members:
                self._launches.setdefault(node, []).append(members)

    def value(self, node: fx.Node) -> Value | None:
        return self._values.get(node.name)

    def of(self, launch: Launch) -> list[Traffic]:
        members = self._sets[id(launch)]
        reads: dict[fx.Node, tuple[int | None, bool]] = {}
        for node in launch.nodes:
            if node.op != "call_function" or is_view(node):
                continue
            for place, argument in enumerate(node.all_input_nodes):
                origin = _storage(argument)
                if _producer(origin) in members or not self._is_tensor(origin):
                    continue
                size = self._least(self._bytes(argument), self._bytes(origin))
                gathered = place == 0 and gathers(node)
                if gathered:
                    size = self._least(size, self._bytes(node))
                elif place == 0 and mutates(node):
                    continue  # written, not read
                before = reads.get(origin)
                reads[origin] = (
                    (size, gathered) if before is None else (self._most(before[0], size), gathered and before[1])
                )
        found = [
            Traffic(
                name=origin.name,
                direction="read",
                bytes=size,
                note=message("roofline.gathered") if gathered else None,
            )
            for origin, (size, gathered) in reads.items()
        ]
        for node in launch.nodes:
            if node.op == "call_function" and not is_view(node):
                found += self._written(node, members)
        return found

    def _written(self, node: fx.Node, members: frozenset[fx.Node]) -> list[Traffic]:
        if mutates(node):
            return [Traffic(name=node.name, direction="write", bytes=self._bytes(node))]
        several = isinstance(self.value(node), TupleValue)
        parts = [user for user in node.users if is_view(user)] if several else [node]
        return [
            Traffic(name=part.name, direction="write", bytes=self._bytes(part))
            for part in parts
            if self._is_tensor(part) and self._leaves(node, part, members)
        ]

    def _leaves(self, node: fx.Node, part: fx.Node, members: frozenset[fx.Node]) -> bool:
        """Whether somebody outside reads it: the graph's caller, or a launch that does not compute it for itself."""
        for user in part.users:
            if is_view(user):
                if self._leaves(node, user, members):
                    return True
                continue
            if user.op == "output":
                return True
            within = self._launches.get(user, [])
            if not within or any(node not in launch for launch in within):
                return True
        return False

    def _is_tensor(self, node: fx.Node) -> bool:
        return isinstance(self.value(node), TensorValue)

    def _bytes(self, node: fx.Node) -> int | None:
        value = self.value(node)
        return value.bytes if isinstance(value, TensorValue) else None

    @staticmethod
    def _least(first: int | None, second: int | None) -> int | None:
        return _both(min, first, second)

    @staticmethod
    def _most(first: int | None, second: int | None) -> int | None:
        return _both(max, first, second)


def _both(choose: Callable[[int, int], int], first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else choose(first, second)


def _storage(node: fx.Node) -> fx.Node:
    """What a view is a view of: up to a node that makes a tensor, or to the part of a tuple."""
    while is_view(node) and node.target is not operator.getitem and node.all_input_nodes:
        node = node.all_input_nodes[0]
    return node


def _producer(node: fx.Node) -> fx.Node:
    return node.all_input_nodes[0] if is_view(node) and node.all_input_nodes else node
