"""From Inductor's plan of a graph, or of a forward and its backward, to a timeline of one step. Torch-free."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from compiler.ir.memory import MemoryTimelinePayload, OwnerColumns
from compiler.text import message
from compiler.timeline import MAX_BLOCKS, Allocation, GeneratedCode, Site, build

Key = tuple[str, int]
HOW = ("allocated", "reused", "in_place")


@dataclass(frozen=True)
class PlanEvent:
    """What happens to the memory that was allocated for `key`: `bytes` > 0 allocated, < 0 released, 0 taken over by the buffer
    `name`; `how` is one of `HOW`."""

    key: Key
    bytes: int
    name: str
    how: str = "allocated"


@dataclass(frozen=True)
class Plan:
    """`graph` is forward, backward or inference. `inputs` are the arguments in order, without those that are sizes; `outputs` the
    memory of each result that is a tensor, None for one that is an argument or a constant."""

    graph: str
    events: tuple[PlanEvent, ...]
    inputs: tuple[str, ...]
    outputs: tuple[Key | None, ...]


class _Step:
    """The events of one step, as the allocator would have told them: memory of graph `index` is its own, but for what the
    backward is given."""

    def __init__(self) -> None:
        self.events: list[Allocation] = []
        self.sites: list[Site] = []
        self.owners: list[tuple[int, str, int, int]] = []
        self._pointers: dict[tuple[int, Key], int] = {}
        self._bytes: dict[int, int] = {}
        self._block: dict[int, int] = {}

    def run(self, index: int, plan: Plan, code: GeneratedCode, text: str, given: dict[str, int]) -> None:
        lines = _Lines(text)
        backward = plan.graph == "backward"
        for event in plan.events:
            place = self._pointers.get((index, event.key))
            if event.bytes > 0:
                self._pointers[index, event.key] = pointer = len(self._pointers) + 1
                self._block[pointer] = len(self._block)
                self.owners.append((self._block[pointer], event.name, len(self.events), 0))
                self._tell(event.bytes, pointer, backward, code.site(lines.made(event.name)))
            elif event.bytes == 0 and place is not None:
                self.owners.append((self._block[place], event.name, len(self.events), HOW.index(event.how)))
            elif place is not None:
                self._tell(event.bytes, place, backward, code.site(lines.freed(event.name)))
            elif event.key[0] in given:
                self._release(given.pop(event.key[0]), given, backward, code.site(lines.freed(event.name)))

    def end(self, given: dict[str, int], code: GeneratedCode) -> None:
        """What the backward did not let go of ends with it."""
        for pointer in dict.fromkeys(given.values()):
            self._tell(-self._bytes[pointer], pointer, True, Site(label="", name=""))

    def _release(self, pointer: int, given: dict[str, int], backward: bool, site: Site) -> None:
        if pointer not in given.values():
            self._tell(-self._bytes[pointer], pointer, backward, site)

    def _tell(self, size: int, pointer: int, backward: bool, site: Site) -> None:
        if size > 0:
            self._bytes[pointer] = size
        marks = {"plan": str(len(self.sites)), "phase": "backward" if backward else "forward"}
        self.sites.append(site)
        self.events.append(Allocation(size, pointer, marks, scope=0, operators=()))

    def pointer(self, index: int, key: Key | None) -> int | None:
        return None if key is None else self._pointers.get((index, key))


class _Lines:
    """Where a wrapper makes a buffer and lets go of it, by its text; 1 where that cannot be told."""

    def __init__(self, text: str) -> None:
        self._made: dict[str, int] = {}
        self._freed: dict[str, int] = {}
        for number, line in enumerate(text.splitlines(), 1):
            if match := re.match(r"\s+(\w+) = ", line):
                self._made.setdefault(match[1], number)
            for match in re.finditer(r"\bdel ([\w, ]+)", line):
                for name in match[1].split(","):
                    self._freed[name.strip()] = number

    def made(self, name: str) -> int:
        return self._made.get(name, 1)

    def freed(self, name: str) -> int:
        return self._freed.get(name, self.made(name))


def plan_timeline(graphs: Sequence[tuple[Plan, GeneratedCode, str]]) -> MemoryTimelinePayload:
    """The step that runs these graphs one after the other: one, or a forward and its backward. With each its generated code, and
    the text of that."""
    step = _Step()
    first = graphs[0][0]
    step.run(0, *graphs[0], given={})
    outputs = [step.pointer(0, key) for key in first.outputs]
    results, gradients = outputs, list[int | None]()
    if len(graphs) == 2:
        second, code, text = graphs[1]
        # AOTAutograd's order: results, then what is saved; saved, then tangents.
        wanted = [name for name in second.inputs if "tangents" not in name]
        results = outputs[: len(outputs) - len(wanted)]
        given = {
            name: pointer
            for name, pointer in zip(wanted, outputs[len(outputs) - len(wanted) :], strict=True)
            if pointer is not None and pointer not in results
        }
        step.run(1, second, code, text, given)
        step.end(given, code)
        gradients = [step.pointer(1, key) for key in second.outputs]
    timeline = build(
        step.events,
        lambda event: step.sites[int(event.marks["plan"])],
        series="plan",
        method=message("memory.method_plan"),
        outputs=frozenset(pointer for pointer in results if pointer is not None),
        gradients=frozenset(pointer for pointer in gradients if pointer is not None),
    )
    if sum(event.bytes > 0 for event in step.events) > MAX_BLOCKS:
        return timeline  # joined blocks have no owner
    strings = {text: place for place, text in enumerate(timeline.strings)}
    for _, name, _, _ in step.owners:
        strings.setdefault(name, len(strings))
    last = max(0, len(timeline.points.live) - 1)
    owners = OwnerColumns(
        block=[block for block, _, _, _ in step.owners],
        name=[strings[name] for _, name, _, _ in step.owners],
        point=[min(point, last) for _, _, point, _ in step.owners],
        how=[how for _, _, _, how in step.owners],
    )
    return timeline.model_copy(update={"owners": owners, "strings": list(strings)})
