"""From the allocator's events of one step to the timeline of live bytes. Torch-free."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from compiler.ir.memory import BlockColumns, MemoryTimelinePayload, PointColumns, Series
from compiler.session import slug
from compiler.text import Message, message

MAX_BLOCKS = 4000
_SMALL = 1000  # a block is small below this fraction of the peak: one part in 1000


@dataclass(frozen=True, slots=True)
class Allocation:
    """One allocation (`bytes` > 0) or release (`bytes` < 0) by the CPU allocator.

    `marks` is the last value of each channel: wrapper ("<index of the module>:<line>"), user (line of the snippet), module
    (path of the nn.Module), phase. `operators` is the stack of operators, outermost first. `scope` is equal for events inside
    one execution of one operator or of one wrapper line, 0 outside of any. `forward` holds the marks of the forward operator
    whose gradient was being computed, where autograd's sequence numbers tell it."""

    bytes: int
    ptr: int
    marks: dict[str, str]
    scope: int
    operators: tuple[str, ...]
    forward: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Site:
    """Where an event happened, as it is shown. `line` 0 and the empty string mean unknown."""

    label: str
    name: str = ""
    entity: str = ""
    line: int = 0
    module: str = ""


@dataclass(frozen=True, slots=True)
class Origin:
    """What a line of generated code comes from."""

    line: int = 0
    module: str = ""


Origins = Callable[[str, str, int], Origin | None]
Locate = Callable[[Allocation], Site]


@dataclass(slots=True)
class _Block:
    bytes: int
    start: int
    site: Site
    scope: int
    ptr: int
    backward: bool
    end: int = -1
    kind: str = "temporary"


@dataclass(slots=True)
class _Point:
    site: Site
    phase: int
    live: int


def build(
    allocations: Sequence[Allocation],
    locate: Locate,
    *,
    series: Series,
    method: Message,
    outputs: frozenset[int] = frozenset(),
    gradients: frozenset[int] = frozenset(),
    caveats: Sequence[Message] = (),
) -> MemoryTimelinePayload:
    """The timeline of one step. `outputs` and `gradients` are the addresses of the storages that the step returned and left
    in `.grad`. At every point the live bytes are the sum of the blocks alive there; memory that existed before the step and
    was released in it is not part of it, and is told in a caveat. `forward_end` is the first point of the backward."""
    points: list[_Point] = []
    blocks: list[_Block] = []
    alive: dict[int, _Block] = {}
    live = released = 0
    forward_end: int | None = None
    for event in allocations:
        at = len(points)
        backward = event.marks.get("phase") == "backward"
        if backward and forward_end is None:
            forward_end = at
        site = locate(event)
        if event.bytes > 0:
            block = _Block(event.bytes, at, site, event.scope, event.ptr, backward)
            blocks.append(block)
            alive[event.ptr] = block
            live += event.bytes
        elif (gone := alive.pop(event.ptr, None)) is not None:
            gone.end = at
            gone.kind = _kind_of_released(gone, event.scope, backward)
            live -= gone.bytes
        else:
            released -= event.bytes
            continue
        points.append(_Point(site, int(backward), live))
    for block in alive.values():
        block.kind = "output" if block.ptr in outputs else "gradient" if block.ptr in gradients else "temporary"
    notes = list(caveats)
    if released:
        notes.append(message("memory.released_older", bytes=released))
    peak = max((point.live for point in points), default=0)
    peak_point = next((index for index, point in enumerate(points) if point.live == peak), 0)
    if len(blocks) > MAX_BLOCKS:
        small = sum(block.bytes * _SMALL < peak for block in blocks)
        notes.append(message("memory.small_joined", count=small, bytes=peak // _SMALL))
        points, blocks, moved = _bounded(points, blocks, peak, peak_point)
        peak_point = moved(peak_point)
        forward_end = None if forward_end is None else moved(forward_end)
    return _payload(points, blocks, series, method, peak, peak_point, forward_end, notes)


def _kind_of_released(block: _Block, scope: int, backward: bool) -> str:
    if block.scope == scope != 0:
        return "workspace"
    return "saved" if backward and not block.backward else "temporary"


def _bounded(
    points: list[_Point], blocks: list[_Block], peak: int, peak_point: int
) -> tuple[list[_Point], list[_Block], Callable[[int], int]]:
    """Keep the points where a large block begins or ends, and the peak. The small blocks become, between two kept points,
    one block of their sum: so the sum of the blocks stays exact at every point that is left."""
    large = [block for block in blocks if block.bytes * _SMALL >= peak]
    keep = sorted({peak_point} | {block.start for block in large} | {block.end for block in large if block.end >= 0})
    place = {old: new for new, old in enumerate(keep)}
    kept = [points[old] for old in keep]
    change = [0] * (len(kept) + 1)
    moved: list[_Block] = []
    for block in large:
        end = place[block.end] if block.end >= 0 else -1
        moved.append(replace(block, start=place[block.start], end=end))
        change[place[block.start]] += block.bytes
        if end >= 0:
            change[end] -= block.bytes
    total = 0
    joined: _Block | None = None
    for index, point in enumerate(kept):
        total += change[index]
        rest = point.live - total
        if joined is not None and joined.bytes != rest:
            joined.end = index
            joined = None
        if joined is None and rest:
            joined = _Block(rest, index, Site(label="", name="…"), 0, 0, bool(point.phase))
            moved.append(joined)
    moved.sort(key=lambda block: block.start)

    def new_place(old: int) -> int:
        return sum(1 for place_ in keep if place_ < old)

    return kept, moved, new_place


def _payload(
    points: list[_Point],
    blocks: list[_Block],
    series: Series,
    method: Message,
    peak: int,
    peak_point: int,
    forward_end: int | None,
    caveats: list[Message],
) -> MemoryTimelinePayload:
    strings: dict[str, int] = {"": 0}

    def code(text: str) -> int:
        return strings.setdefault(text, len(strings))

    point_columns = PointColumns(
        label=[code(point.site.label) for point in points],
        entity=[code(point.site.entity) for point in points],
        line=[point.site.line for point in points],
        phase=[point.phase for point in points],
        live=[point.live for point in points],
    )
    block_columns = BlockColumns(
        name=[code(block.site.name or block.site.label) for block in blocks],
        bytes=[block.bytes for block in blocks],
        start=[block.start for block in blocks],
        end=[block.end for block in blocks],
        kind=[code(block.kind) for block in blocks],
        entity=[code(block.site.entity) for block in blocks],
        line=[block.site.line for block in blocks],
        module=[code(block.site.module) for block in blocks],
    )
    return MemoryTimelinePayload(
        id=f"memory/{series}",
        series=series,
        method=method,
        strings=list(strings),
        points=point_columns,
        blocks=block_columns,
        peak_bytes=peak,
        peak_point=peak_point,
        forward_end=forward_end,
        end_bytes=points[-1].live if points else 0,
        caveats=caveats,
    )


_ASSIGNED = re.compile(r"^(\w+) = ")
_REUSED = re.compile(r"^(\w+) = (\w+); del \2  # reuse")
# Operators that only say that somebody is being called.
_FRAMES = re.compile(r"^(autograd::engine::|Torch-Compiled Region|CompiledFunction|## Call )")


class GeneratedCode:
    """One generated wrapper: its lines as sites of allocations. `origins` says what a line comes from, where that is known; an
    allocation line of its own has none, so the first later line that uses the buffer answers for it."""

    def __init__(self, compile: str, graph: str, text: str, origins: Origins) -> None:
        self.compile = compile
        self.graph = graph
        self._lines = text.splitlines()
        self._origins = origins
        self._cache: dict[int, Site] = {}
        self._renamed: dict[str, str] = {}
        for line in self._lines:
            if match := _REUSED.match(line.strip()):
                self._renamed.setdefault(match[2], match[1])

    def site(self, line: int) -> Site:
        if line not in self._cache:
            self._cache[line] = self._site(line)
        return self._cache[line]

    def _site(self, line: int) -> Site:
        text = self._lines[line - 1].strip()
        match = _ASSIGNED.match(text)
        names = [match[1]] if match else []
        while names and (later := self._renamed.get(names[-1])) is not None and later not in names:
            names.append(later)
        origin = self._origins(self.compile, self.graph, line)
        if origin is None and names:
            used = re.compile(rf"\b{names[0]}\b")
            for number in range(line + 1, len(self._lines) + 1):
                if used.search(self._lines[number - 1]):
                    origin = self._origins(self.compile, self.graph, number)
                if origin is not None:
                    break
        return Site(
            label=text if len(text) <= 160 else f"{text[:157]}…",
            name=", ".join(names),
            entity=f"{slug(self.compile)}/codegen/{self.graph}/@{line}",
            line=origin.line if origin else 0,
            module=origin.module if origin else "",
        )


def locate(codes: Sequence[GeneratedCode]) -> Locate:
    """Places an event by the wrapper line that was running (`codes` in the order of the marks' indices), else by the
    operator, and then by the snippet's line that Python was at or whose gradient was being computed."""

    def site(event: Allocation) -> Site:
        running = event.marks.get("wrapper", "")
        operators = [name for name in event.operators if not _FRAMES.match(name)]
        if running:
            index, _, line = running.partition(":")
            found = codes[int(index)].site(int(line))
            return found if not operators or found.name else replace(found, name=operators[0])
        where = event.forward or event.marks
        compiled = len(operators) < len(event.operators) and any("ompiled" in name for name in event.operators)
        label = operators[0] if operators else (event.operators[-1] if event.operators else "Python")
        return Site(
            label=label.removeprefix("autograd::engine::evaluate_function: "),
            line=0 if compiled else int(where.get("user") or 0),
            module=where.get("module", ""),
        )

    return site


def unknown_origins(compile: str, graph: str, line: int) -> Origin | None:
    """The `Origins` of code whose links are not at hand."""
    return None
