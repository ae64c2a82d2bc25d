"""The roofline's bytes, operations and times against figures worked out by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest
import torch
import torch.fx as fx
from torch.fx.experimental.proxy_tensor import make_fx

from compiler.ir.roofline import KernelRoofline, RooflinePayload
from compiler.lift import lift_graph
from compiler.session import Sources
from compiler.stages.roofline import Launch, roofline
from compiler.targets import BY_ID, Device

_aten = torch.ops.aten
BIG = 4096


def device_of(target: str) -> Device:
    device = BY_ID[target].device
    assert device is not None
    return device


def of(
    function: Callable[..., object],
    inputs: Sequence[torch.Tensor],
    target: str = "sm_90",
    split: Callable[[list[fx.Node]], list[list[fx.Node]]] = lambda nodes: [nodes],
) -> RooflinePayload:
    """The roofline of a function whose calls are launched as `split` says: by default as one kernel, `k0`."""
    graph = make_fx(function, tracing_mode="fake")(*inputs).graph
    lifted = lift_graph(graph, id="0_0/post_grad/inference", sources=Sources("", {}))
    calls = [node for node in graph.nodes if node.op == "call_function"]
    launches = [Launch(f"k{at}", nodes) for at, nodes in enumerate(split(calls))]
    return roofline("0_0/roofline/inference", target, device_of(target), lifted, launches, {})


def each(nodes: list[fx.Node]) -> list[list[fx.Node]]:
    return [[node] for node in nodes]


def only(payload: RooflinePayload) -> KernelRoofline:
    (kernel,) = payload.kernels
    return kernel


def like(tensor: torch.Tensor) -> torch.Tensor:
    """Another tensor: two arguments that are one would be read once."""
    return torch.empty_like(tensor)


@pytest.fixture(autouse=True)
def switches() -> Iterator[None]:
    """Torch's own, as they were, afterwards."""
    held = torch.backends.cuda.matmul, torch.backends.cudnn.conv
    before = [switch.fp32_precision for switch in held]
    yield
    for switch, value in zip(held, before, strict=True):
        switch.fp32_precision = value


@pytest.fixture
def tf32(switches: None) -> None:
    torch.backends.cuda.matmul.fp32_precision = "tf32"


@pytest.mark.parametrize(("dtype", "size"), [(torch.float32, 4), (torch.bfloat16, 2)])
def test_pointwise(dtype: torch.dtype, size: int) -> None:
    """relu(a + b) in one kernel: two tensors in, one out, the sum in between nowhere; an operation each for every element, in
    float32 even for bfloat16, as Inductor's kernels compute."""
    a = torch.empty(64, 256, dtype=dtype)
    kernel = only(of(lambda a, b: torch.relu(a + b), [a, like(a)]))
    elements = 64 * 256
    assert [(one.direction, one.bytes) for one in kernel.traffic] == [
        ("read", elements * size),
        ("read", elements * size),
        ("write", elements * size),
    ]
    assert (kernel.bytes, kernel.operations) == (3 * elements * size, 2 * elements)
    assert {(node.unit, node.dtype, node.operations) for node in kernel.nodes} == {("vector", "float32", elements)}
    assert kernel.memory_seconds == pytest.approx(3 * elements * size / 3350e9)
    assert kernel.compute_seconds == pytest.approx(2 * elements / 66.9e12)
    assert (kernel.bound, kernel.complete, kernel.seconds) == ("memory", True, kernel.memory_seconds)


@pytest.mark.parametrize(("dtype", "size"), [(torch.float32, 4), (torch.bfloat16, 2)])
def test_reduction(dtype: torch.dtype, size: int) -> None:
    """A sum over rows: all elements in, one a row out, an addition for each element."""
    kernel = only(of(lambda a: _aten.sum.dim_IntList(a, [1]), [torch.empty(64, 256, dtype=dtype)]))
    assert (kernel.bytes, kernel.operations) == ((64 * 256 + 64) * size, 64 * 256)
    assert [(node.unit, node.dtype) for node in kernel.nodes] == [("vector", "float32")]
    assert kernel.seconds == pytest.approx((64 * 256 + 64) * size / 3350e9)


def test_the_values_of_a_variance_cost_three_operations_each() -> None:
    kernel = only(of(lambda a: _aten.var_mean.correction(a, [1], correction=0), [torch.empty(8, 100)]))
    # Both results leave the kernel.
    assert (kernel.bytes, kernel.operations) == ((8 * 100 + 8 + 8) * 4, 3 * 8 * 100)


@pytest.mark.parametrize(
    ("target", "dtype", "allowed", "unit", "key", "rate"),
    [
        # The published figures, in 10¹² a second: float32 has no matrix units on an H100 unless TF32 is allowed, on a T4 never.
        ("sm_90", torch.float32, False, "vector", "float32", 66.9),
        ("sm_90", torch.float32, True, "matrix", "tf32", 494.7),
        ("sm_90", torch.bfloat16, False, "matrix", "bfloat16", 989.4),
        ("sm_90", torch.float64, False, "matrix", "float64", 66.9),
        ("sm_75", torch.float32, True, "vector", "float32", 8.1),
        ("sm_75", torch.float16, False, "matrix", "float16", 65.0),
        ("sm_75", torch.float64, False, "vector", "float64", 0.254),
        ("sm_89", torch.float64, False, "vector", "float64", 1.29),
        ("gfx942", torch.float32, False, "matrix", "float32", 163.4),
        ("gfx942", torch.float32, True, "matrix", "tf32", 653.7),
    ],
)
def test_the_label_of_a_product_is_that_of_its_rate(
    target: str,
    dtype: torch.dtype,
    allowed: bool,
    unit: str,
    key: str,
    rate: float,
) -> None:
    if allowed:
        torch.backends.cuda.matmul.fp32_precision = "tf32"
    a = torch.empty(BIG, BIG, dtype=dtype, device="meta")
    payload = of(torch.mm, [a, like(a)], target)
    kernel = only(payload)
    (node,) = kernel.nodes
    assert (node.unit, node.dtype, node.operations) == (unit, key, 2 * BIG**3)
    # What the page looks up.
    assert getattr(payload, unit)[key].value == pytest.approx(rate * 1e12)
    assert kernel.bytes == 3 * BIG * BIG * dtype.itemsize
    assert kernel.compute_seconds == pytest.approx(2 * BIG**3 / (rate * 1e12))
    assert (kernel.bound, kernel.complete, kernel.seconds) == (unit, True, kernel.compute_seconds)
    assert payload.tf32 is allowed


def test_a_product_without_a_published_rate_is_held_against_its_bytes_and_incomplete() -> None:
    """A T4 has neither figure for bfloat16."""
    a = torch.empty(BIG, BIG, dtype=torch.bfloat16, device="meta")
    payload = of(torch.mm, [a, like(a)], "sm_75")
    kernel = only(payload)
    assert "bfloat16" not in payload.matrix | payload.vector
    assert (kernel.operations, kernel.compute_seconds) == (2 * BIG**3, None)
    assert kernel.seconds == pytest.approx(3 * BIG * BIG * 2 / 320e9)
    assert (kernel.bound, kernel.complete, payload.complete) == ("memory", False, False)


def test_products_and_convolutions_have_switches_of_their_own() -> None:
    """By torch's defaults a convolution may use TF32 and a product may not."""
    image, weight = torch.empty(8, 16, 32, 32, device="meta"), torch.empty(32, 16, 3, 3, device="meta")

    def convolved() -> RooflinePayload:
        return of(lambda x, w: _aten.convolution(x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1), [image, weight])

    payload = convolved()
    (node,) = only(payload).nodes
    # Two for each weight at each place of the result.
    assert (node.operations, node.unit, node.dtype) == (2 * 8 * 32 * 32 * 32 * 16 * 9, "matrix", "tf32")
    assert (payload.tf32, payload.tf32_convolutions) == (False, True)
    torch.backends.cudnn.conv.fp32_precision = "ieee"
    payload = convolved()
    (node,) = only(payload).nodes
    assert (node.unit, node.dtype, payload.tf32_convolutions) == ("vector", "float32", False)


def test_what_two_kinds_of_units_do_overlaps_and_what_one_does_adds_up(tf32: None) -> None:
    def fused(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.relu(torch.mm(a, b))

    a = torch.empty(BIG, BIG, device="meta")
    product, elements = 2 * BIG**3, BIG * BIG
    kernel = only(of(fused, [a, like(a)]))
    assert kernel.compute_seconds == pytest.approx(product / 494.7e12)
    on_t4 = only(of(fused, [a, like(a)], "sm_75"))
    assert on_t4.compute_seconds == pytest.approx((product + elements) / 8.1e12)
    assert on_t4.bound == "vector"


def test_the_floor_is_the_sum_of_the_kernels() -> None:
    """Apart, the tensor in between is written by the one and read by the other."""

    def function(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.relu(torch.mm(a, b))

    a = torch.empty(BIG, BIG, device="meta")
    payload = of(function, [a, like(a)], split=each)
    assert [kernel.bytes for kernel in payload.kernels] == [3 * BIG * BIG * 4, 2 * BIG * BIG * 4]
    product, elements = 2 * BIG**3 / 66.9e12, 2 * BIG * BIG * 4 / 3350e9
    assert [kernel.seconds for kernel in payload.kernels] == [pytest.approx(product), pytest.approx(elements)]
    assert payload.seconds == pytest.approx(product + elements)
    assert payload.complete


def test_a_view_is_what_it_is_a_view_of_and_no_more_than_its_own_elements() -> None:
    def function(a: torch.Tensor) -> torch.Tensor:
        return torch.relu(_aten.slice.Tensor(a, 0, 0, 16).t())

    kernel = only(of(function, [torch.empty(64, 256)]))
    assert [(one.name, one.direction, one.bytes) for one in kernel.traffic] == [
        ("a_1", "read", 16 * 256 * 4),
        ("relu", "write", 16 * 256 * 4),
    ]


def test_a_gather_reads_its_result_and_its_indices() -> None:
    rows = torch.zeros(10, dtype=torch.int64)
    kernel = only(of(lambda table, rows: _aten.embedding(table, rows), [torch.empty(50_000, 64), rows]))
    assert [(one.direction, one.bytes) for one in kernel.traffic] == [
        ("read", 10 * 64 * 4),
        ("read", 10 * 8),
        ("write", 10 * 64 * 4),
    ]
    assert kernel.traffic[0].note is not None
    assert kernel.operations == 0


def test_a_tensor_that_is_changed_in_place_is_written() -> None:
    def function(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return _aten.copy_(a, _aten.mul(b, b))

    kernel = only(of(function, [torch.empty(32), torch.empty(32)]))
    assert [(one.name, one.direction, one.bytes) for one in kernel.traffic] == [
        ("b_1", "read", 128),
        ("copy_", "write", 128),
    ]


def test_an_operator_without_a_formula_is_unknown_and_not_nothing() -> None:
    kernel = only(of(lambda a: _aten.sort(a)[0], [torch.empty(64, 256)]))
    assert (kernel.operations, kernel.compute_seconds, kernel.complete) == (None, None, False)
    assert kernel.seconds == pytest.approx(2 * 64 * 256 * 4 / 3350e9)


def test_a_switch_that_was_set_in_the_newer_way_is_read(tf32: None) -> None:
    """Torch's older question refuses to answer then."""
    with pytest.raises(RuntimeError):
        torch.get_float32_matmul_precision()
    a = torch.empty(8, 8)
    assert of(torch.mm, [a, like(a)]).tf32
