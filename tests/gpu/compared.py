"""The two arms held against each other. Standard library only.

A model's row says of each of four things how many of the real arm's are the same in the virtual one: kernel names, fusion groups,
Triton source and machine code (one for each configuration). Nothing is left out of a comparison but what `_SOURCE` and `_PTX`
name: the device's own figures in the source (told once for all, in the head), and debug information with the files' places.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

Thing = Literal["names", "groups", "sources", "machine"]
THINGS: tuple[Thing, ...] = ("names", "groups", "sources", "machine")
_SOURCE = re.compile(r"DeviceProperties\([^)]*\)|'backend_hash': '[0-9A-F]*'")
_PTX = re.compile(r"^\s*(?://.*|\.loc\b.*|\.file\b.*)\n|//.*|^\s*\.section\s+\.debug[^}]*\}\n?", re.M)


@dataclass(frozen=True)
class Same:
    """`same` of the `real` ones are the same in the virtual arm, which has `virtual`."""

    same: int
    real: int
    virtual: int

    @property
    def all(self) -> bool:
        return self.same == self.real == self.virtual


@dataclass(frozen=True)
class Row:
    """One model. Without `why`, all four were compared. `differs` are the first things that only one arm has."""

    model: str
    why: str = ""
    found: dict[Thing, Same] | None = None
    differs: tuple[str, ...] = ()

    @property
    def all(self) -> bool:
        return self.found is not None and all(one.all for one in self.found.values())


def plain_source(text: str) -> str:
    return _SOURCE.sub("…", text)


def plain_ptx(text: str) -> str:
    kept = _PTX.sub("", text)
    return "\n".join(line.rstrip() for line in kept.splitlines() if line.strip())


def things(kernels: Iterable[dict[str, Any]]) -> dict[Thing, Counter[str]]:
    """What is compared, each with the graph and the kernel that it belongs to."""
    found: dict[Thing, Counter[str]] = {thing: Counter() for thing in THINGS}
    for one in kernels:
        key = f"graph {one['graph']}, {one['name']}"
        found["names"][key] += 1
        found["groups"][f"{key}: {', '.join(one['group'])}"] += 1
        found["sources"][f"{key}\n{plain_source(one['source'])}"] += 1
        for config, text in one["machine"].items():
            found["machine"][f"{key}, {config}\n{plain_ptx(text)}"] += 1
    return found


def row(model: str, real: dict[str, Any] | None, virtual: dict[str, Any] | None) -> Row:
    for arm, told in (("real", real), ("virtual", virtual)):
        if told is None:
            return Row(model, f"{arm}: not run")
        if told.get("left_out"):
            return Row(model, f"{arm}: {told['left_out']}")
    assert real is not None
    assert virtual is not None
    if real["error"] or virtual["error"]:
        both = (f"{arm}: {first_line(told['error'])}" for arm, told in (("real", real), ("virtual", virtual)))
        return Row(model, "; ".join(one for one in both if not one.endswith(": ")))
    theirs, ours = things(real["kernels"]), things(virtual["kernels"])
    found = {
        thing: Same((theirs[thing] & ours[thing]).total(), theirs[thing].total(), ours[thing].total())
        for thing in THINGS
    }
    differs = [
        f"{thing}, only {arm}: {first_line(one)}"
        for thing in THINGS
        for arm, rest in (("real", theirs[thing] - ours[thing]), ("virtual", ours[thing] - theirs[thing]))
        for one in rest
    ]
    return Row(model, "", found, tuple(differs[:6]))


def first_line(text: str) -> str:
    return text.strip().partition("\n")[0][:200]


def rows(real: dict[str, Any], virtual: dict[str, Any]) -> list[Row]:
    names = sorted({*real["models"], *virtual["models"]})
    return [row(name, real["models"].get(name), virtual["models"].get(name)) for name in names]


def with_kernels(table: Iterable[Row]) -> list[Row]:
    """The rows that compare something."""
    return [one for one in table if one.found is not None and one.found["names"].real]


def devices_differ(real: dict[str, Any], virtual: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Properties that the real device has otherwise than the table of targets: real, virtual."""
    one, other = real["about"].get("device", {}), virtual["about"].get("device", {})
    return {name: (one[name], other[name]) for name in one if name in other and one[name] != other[name]}


def markdown(real: dict[str, Any], virtual: dict[str, Any]) -> str:
    table = rows(real, virtual)
    compared = [one for one in table if one.found is not None]
    about = real["about"]
    lines = [
        f"# Virtual {virtual['about'].get('target', '')} against {about.get('device', {}).get('name', 'a real GPU')}",
        "",
        f"torch {about.get('torch')}, Triton {about.get('triton')}; {len(compared)} of {len(table)} models compared, "
        f"{sum(one.all for one in compared)} the same in everything.",
        "",
    ]
    for name, (theirs, ours) in devices_differ(real, virtual).items():
        lines.append(f"- the device's `{name}` is {theirs}; the target's {ours}")
    lines += ["", "| model | names | fusion groups | Triton source | machine code |", "|---|---|---|---|---|"]
    for one in table:
        if one.found is None:
            lines.append(f"| {one.model} | not compared: {one.why.replace('|', '/')} | | | |")
        else:
            cells = (f"{same.same} of {same.real}" + extra(same) for same in one.found.values())
            lines.append(f"| {one.model} | {' | '.join(cells)} |")
    totals = {
        thing: [sum(getattr(one.found[thing], what) for one in compared if one.found) for what in ("same", "real")]
        for thing in THINGS
    }
    lines.append("| **all** | " + " | ".join(f"{same} of {real_}" for same, real_ in totals.values()) + " |")
    for one in compared:
        lines += ["", f"{one.model}:", *(f"- {text}" for text in one.differs)] if one.differs else []
    return "\n".join(lines) + "\n"


def extra(same: Same) -> str:
    return f" ({same.virtual} virtual)" if same.virtual != same.real else ""


def virtual_markdown(virtual: dict[str, Any]) -> str:
    """Of the virtual arm alone: what was compiled, for where there is no GPU to hold it against."""
    about = virtual["about"]
    lines = [
        f"# Virtual {about.get('target', '')}, not compared: there is no such GPU here",
        "",
        f"torch {about.get('torch')}, Triton {about.get('triton')}",
        "",
        "| model | graphs | Triton kernels | compiled configurations | seconds |",
        "|---|---|---|---|---|",
    ]
    for name, told in sorted(virtual["models"].items()):
        why = told.get("left_out") or told.get("error")
        if why:
            lines.append(f"| {name} | {first_line(why).replace('|', '/')} | | | |")
            continue
        made = told["kernels"]
        configurations = sum(len(one["machine"]) for one in made)
        lines.append(f"| {name} | {len(told['codes'])} | {len(made)} | {configurations} | {told['seconds']} |")
    return "\n".join(lines) + "\n"
