"""Our own layout, for machines without dot: ranks by longest path, order by barycentre, straight lines."""

from __future__ import annotations

from collections.abc import Sequence

from server.pictures.layout import Edges, Layout, Line, Place, Sizes

_GAP_X = 22.0
_GAP_Y = 34.0
_SWEEPS = 8


def layered(sizes: Sizes, edges: Edges) -> Layout:
    """A layout in which no two boxes overlap and edges run downwards (those that close a cycle run upwards)."""
    if not sizes:
        return Layout(0, 0, (), ())
    down = _without_cycles(len(sizes), edges)
    ranks = _ranks(len(sizes), down)
    rows: list[list[int]] = [[] for _ in range(max(ranks) + 1)]
    for box, rank in enumerate(ranks):
        rows[rank].append(box)
    above: list[list[int]] = [[] for _ in sizes]
    below: list[list[int]] = [[] for _ in sizes]
    for tail, head in down:
        above[head].append(tail)
        below[tail].append(head)
    x = [0.0] * len(sizes)
    for row in rows:
        _pack(row, sizes, x, None)
    for sweep in range(_SWEEPS):
        near = above if sweep % 2 == 0 else below
        for row in rows if sweep % 2 == 0 else reversed(rows):
            wanted = {box: _mean([x[other] for other in near[box]], x[box]) for box in row}
            row.sort(key=lambda box: (wanted[box], box))
            _pack(row, sizes, x, wanted)
    left = min(x[box] - sizes[box][0] / 2 for box in range(len(sizes)))
    places: list[Place] = [Place(0, 0, 0, 0)] * len(sizes)
    y = 0.0
    for row in rows:
        tall = max(sizes[box][1] for box in row)
        for box in row:
            places[box] = Place(x[box] - left, y + tall / 2, *sizes[box])
        y += tall + _GAP_Y
    return Layout(
        width=max(place.x + place.width / 2 for place in places),
        height=y - _GAP_Y,
        boxes=tuple(places),
        lines=tuple(_line(places[tail], places[head]) for tail, head in edges),
    )


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _without_cycles(count: int, edges: Edges) -> list[tuple[int, int]]:
    """The edges, those that close a cycle turned round."""
    after: list[list[int]] = [[] for _ in range(count)]
    for tail, head in edges:
        after[tail].append(head)
    state = [0] * count
    turned: set[tuple[int, int]] = set()
    for root in range(count):
        if state[root]:
            continue
        state[root] = 1
        stack = [(root, iter(after[root]))]
        while stack:
            box, rest = stack[-1]
            for other in rest:
                if state[other] == 1:
                    turned.add((box, other))
                elif state[other] == 0:
                    state[other] = 1
                    stack.append((other, iter(after[other])))
                    break
            else:
                state[box] = 2
                stack.pop()
    return [(head, tail) if (tail, head) in turned else (tail, head) for tail, head in edges if tail != head]


def _ranks(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """For each box the length of the longest path to it; boxes that read nothing stand just above what reads them."""
    after: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    for tail, head in edges:
        after[tail].append(head)
        waiting[head] += 1
    roots = [box for box in range(count) if not waiting[box]]
    ready = list(roots)
    ranks = [0] * count
    while ready:
        box = ready.pop()
        for other in after[box]:
            ranks[other] = max(ranks[other], ranks[box] + 1)
            waiting[other] -= 1
            if not waiting[other]:
                ready.append(other)
    for box in roots:
        if after[box]:
            ranks[box] = min(ranks[other] for other in after[box]) - 1
    return ranks


def _pack(row: Sequence[int], sizes: Sizes, x: list[float], wanted: dict[int, float] | None) -> None:
    """Give the boxes of a row, in their order, places that do not overlap: as near to the wanted ones as that allows."""
    if wanted is None:
        at = 0.0
        for box in row:
            x[box] = at + sizes[box][0] / 2
            at += sizes[box][0] + _GAP_X
        return
    # Neighbours that press on each other move as one block, to the mean of where they want to be.
    blocks: list[tuple[float, float, list[int]]] = []
    for box in row:
        width = sizes[box][0] + _GAP_X
        start, size, members = wanted[box] - width / 2, width, [box]
        while blocks and blocks[-1][0] + blocks[-1][1] > start:
            before = blocks.pop()
            merged = [*before[2], *members]
            size += before[1]
            offset, total = 0.0, 0.0
            for other in merged:
                wide = sizes[other][0] + _GAP_X
                total += wanted[other] - wide / 2 - offset
                offset += wide
            start, members = total / len(merged), merged
        blocks.append((start, size, members))
    for start, _size, members in blocks:
        at = start
        for box in members:
            width = sizes[box][0] + _GAP_X
            x[box] = at + width / 2
            at += width


def _line(tail: Place, head: Place) -> Line:
    """From the border of one box to that of the other."""
    if head.y > tail.y:
        return Line(tail.x, tail.y + tail.height / 2, head.x, head.y - head.height / 2)
    if head.y < tail.y:
        return Line(tail.x, tail.y - tail.height / 2, head.x, head.y + head.height / 2)
    side = 1 if head.x > tail.x else -1
    return Line(tail.x + side * tail.width / 2, tail.y, head.x - side * head.width / 2, head.y)
