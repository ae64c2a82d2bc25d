"""The least time that a device's published rates leave each kernel: an estimate, from the FX nodes that the kernel
computes."""

from __future__ import annotations

from typing import Literal

from compiler.targets import Figure
from compiler.text import Frozen, Message

Unit = Literal["vector", "matrix"]


class Traffic(Frozen):
    """One tensor that a kernel reads or writes, counted once. `bytes` is null when its size is unknown. `note` says where the
    count is not simply the tensor's size."""

    name: str
    direction: Literal["read", "write"]
    bytes: int | None
    note: Message | None = None


class NodeOperations(Frozen):
    """One FX node's arithmetic. `operations` is null when there is no formula for its operator; 0 is for an operator that moves
    data only. `unit` and `dtype` name the rate that it is held against, a key of the target's `vector` or `matrix`
    rates: a product runs on the ordinary units where the device has no matrix units for its type. A key that is not there has no
    published rate."""

    node: str
    target: str
    operations: int | None
    unit: Unit = "vector"
    dtype: str = ""
    formula: str = ""
    source: str = ""


class KernelRoofline(Frozen):
    """All launches of one kernel in a step of the graph, or one external call.

    `bytes` and `operations` are null when any part of them is unknown; then `seconds` rests on what is known, and `complete` is
    false: the true least time is no smaller. `seconds` is the larger of two: `bytes` over the bandwidth, and the operations
    over their rates; null when nothing is known. `group_bytes` is Inductor's own count for its scheduler nodes."""

    kernel: str
    launches: int
    bytes: int | None
    operations: int | None
    group_bytes: int | None = None
    traffic: list[Traffic]
    nodes: list[NodeOperations]
    memory_seconds: float | None
    compute_seconds: float | None
    seconds: float | None
    bound: Literal["memory", "vector", "matrix", "unknown"]
    complete: bool


class RooflinePayload(Frozen):
    """`seconds` sums the kernels': the floor of this graph's step, when one kernel runs after the other and each reads from and
    writes to the device's memory (a tensor that is still in a cache comes faster). `tf32` and `tf32_convolutions`: whether
    float32 matrix products, and convolutions, may use it by torch's switches; null in runs from before these were told apart."""

    format: Literal["roofline/1"] = "roofline/1"
    id: str
    target: str
    device: str
    bandwidth: Figure
    vector: dict[str, Figure]
    matrix: dict[str, Figure]
    tf32: bool
    tf32_convolutions: bool | None = None
    kernels: list[KernelRoofline]
    seconds: float
    complete: bool
