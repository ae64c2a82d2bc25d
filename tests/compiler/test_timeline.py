"""The timeline: its arithmetic, its kinds of blocks, its bound, its sites."""

from __future__ import annotations

import random

import pytest

from compiler import timeline as subject
from compiler.ir.memory import MemoryTimelinePayload
from compiler.text import message
from compiler.timeline import Allocation, GeneratedCode, Origin, Site, build, locate


def event(size: int, ptr: int, *, backward: bool = False, scope: int = 0, **marks: str) -> Allocation:
    phase = {"phase": "backward" if backward else "forward"}
    return Allocation(bytes=size, ptr=ptr, marks=phase | marks, scope=scope, operators=())


def timeline(events: list[Allocation], **options: object) -> MemoryTimelinePayload:
    method = message("memory.method_eager")
    return build(events, lambda _: Site("op"), series="eager", method=method, **options)  # type: ignore[arg-type]


def check(found: MemoryTimelinePayload) -> None:
    """At every point the live bytes are the sum of the blocks alive there; peak and end are the curve's."""
    live = found.points.live
    for point, expected in enumerate(live):
        alive = [
            size
            for size, start, end in zip(found.blocks.bytes, found.blocks.start, found.blocks.end, strict=True)
            if start <= point and (end == -1 or point < end)
        ]
        assert sum(alive) == expected, point
    assert found.peak_bytes == max(live, default=0)
    assert found.end_bytes == (live[-1] if live else 0)
    if live:
        assert live[found.peak_point] == found.peak_bytes


def words(found: MemoryTimelinePayload, column: list[int]) -> list[str]:
    return [found.strings[code] for code in column]


def test_kinds_of_blocks_and_the_forwards_end() -> None:
    found = timeline(
        [
            event(100, 1),  # output
            event(40, 2),  # saved
            event(7, 3, scope=5),  # workspace: released inside the operator that made it
            event(-7, 3, scope=5),
            event(8, 4, scope=6),  # temporary
            event(-8, 4, scope=7),
            event(30, 5, backward=True),  # gradient
            event(-40, 2, backward=True),
        ],
        outputs=frozenset({1}),
        gradients=frozenset({5}),
    )
    check(found)
    assert words(found, found.blocks.kind) == ["output", "saved", "workspace", "temporary", "gradient"]
    assert found.points.live == [100, 140, 147, 140, 148, 140, 170, 130]
    assert (found.forward_end, found.peak_bytes, found.peak_point, found.end_bytes) == (6, 170, 6, 130)


def test_memory_from_before_the_step_is_told_and_not_counted() -> None:
    found = timeline([event(-500, 9), event(10, 1)])
    assert found.points.live == [10]
    assert found.caveats == [message("memory.released_older", bytes=500)]


def test_an_empty_step() -> None:
    found = timeline([])
    assert (found.peak_bytes, found.end_bytes, found.peak_point, found.forward_end) == (0, 0, 0, None)


@pytest.mark.parametrize("seed", [1, 2])
def test_many_small_blocks_are_joined_and_the_sums_stay_exact(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "MAX_BLOCKS", 100)
    draw = random.Random(seed)
    alive: list[tuple[int, int]] = []
    events = []
    for number in range(2000):
        backward = number > 1200
        if alive and draw.random() < 0.45:
            ptr, size = alive.pop(draw.randrange(len(alive)))
            events.append(event(-size, ptr, backward=backward))
        else:
            size = draw.choice([1, 2, 3, 5000]) if draw.random() < 0.1 else draw.randint(1, 4)
            alive.append((number + 1, size))
            events.append(event(size, number + 1, backward=backward))
    found = timeline(events)
    monkeypatch.setattr(subject, "MAX_BLOCKS", 10_000)
    whole = timeline(events)
    check(whole)
    check(found)
    assert found.peak_bytes == whole.peak_bytes
    assert len(found.blocks.bytes) < len(whole.blocks.bytes) / 2
    assert found.forward_end is not None
    assert found.points.phase[found.forward_end - 1 : found.forward_end + 1] == [0, 1]


CODE = """\
def call(self, args):
    buf0 = empty_strided_cpu((2, ), (1, ), torch.float32)
    extern_kernels.mm(a, b, out=buf0)
    buf1 = buf0; del buf0  # reuse
    cpp_fused_add_0(buf1)
    return (buf1, )
"""


def test_an_allocation_is_placed_by_the_wrapper_line_that_ran() -> None:
    origins = {3: Origin(line=18, module="fc1")}
    code = GeneratedCode("0/1", "forward", CODE, lambda _, graph, line: origins.get(line))
    place = locate([code])
    assert place(event(8, 1, wrapper="0:2", user="99")) == Site(
        label="buf0 = empty_strided_cpu((2, ), (1, ), torch.float32)",
        name="buf0, buf1",
        entity="0_1/codegen/forward/@2",
        line=18,
        module="fc1",
    )


def test_an_eager_backward_is_placed_by_the_forward_operator() -> None:
    made = Allocation(
        bytes=4,
        ptr=1,
        marks={"phase": "backward", "user": "40", "module": ""},
        scope=1,
        operators=("autograd::engine::evaluate_function: MmBackward0", "MmBackward0", "aten::mm"),
        forward={"user": "12", "module": "head"},
    )
    assert locate([])(made) == Site(label="MmBackward0", line=12, module="head")


def test_eager_memory_inside_a_compiled_region_has_no_line_of_its_own() -> None:
    made = Allocation(4, 1, {"phase": "forward", "user": "7"}, 1, ("Torch-Compiled Region: 0/0", "aten::empty"))
    assert locate([])(made) == Site(label="aten::empty")
