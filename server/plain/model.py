"""What the no-script page shows of a run's document, put in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from compiler.events import StageName
from compiler.text import Message, message
from server.plain.figures import bytes_text

_RUN_STAGES = (StageName.SOURCE, StageName.MEMORY, StageName.EXECUTE, StageName.CACHE)
_COMPILE_STAGES = tuple(stage for stage in StageName if stage not in _RUN_STAGES)


@dataclass(frozen=True, slots=True)
class Section:
    """One stage of the run or of a compile. `failures` and `skipped` are its events; `by_graph` the facts of each graph;
    `artifacts` as in the document, the last of each kind, name and graph."""

    name: StageName
    anchor: str
    state: str
    seconds: float | None
    facts: dict[str, Any]
    by_graph: dict[str, dict[str, Any]]
    artifacts: list[dict[str, Any]]
    failures: list[dict[str, Any]]
    skipped: dict[str, Any] | None

    def payloads(self, kind: str) -> list[tuple[str, dict[str, Any]]]:
        """Graph (or name, where it belongs to no graph) and payload of the artifacts of a kind."""
        return [(one["graph"] or one["name"], one["payload"]) for one in self.artifacts if one["kind"] == kind]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [one for one in self.artifacts if one["kind"] == kind]


@dataclass(frozen=True, slots=True)
class CompileSection:
    id: str
    anchor: str
    function: str | None
    file: str | None
    line: int | None
    reason: str | None
    stages: list[Section]


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the source and what is to be said beside it: a class of the stylesheet and a sentence each."""

    number: int
    text: str
    notes: list[tuple[str, Message]] = field(default_factory=list)

    @property
    def trouble(self) -> bool:
        return any(look == "bad" for look, _said in self.notes)


@dataclass(frozen=True, slots=True)
class Page:
    """`source`, `memory`, `execute` and `cache` are stages of the run; `shared` dynamo's tables over all compiles."""

    run: dict[str, Any]
    over: bool
    summary: dict[str, Any] | None
    lines: list[Line]
    source: Section
    shared: Section | None
    compiles: list[CompileSection]
    after: list[Section]

    def stages(self) -> Iterator[Section]:
        yield self.source
        for compiled in self.compiles:
            yield from compiled.stages
        yield from self.after


def page_of(document: dict[str, Any], over: bool) -> Page:
    """The page of a run as it stands."""
    of_run = {stage["name"]: stage for stage in document["stages"]}
    compiles = [
        CompileSection(
            id=one["id"],
            anchor=f"c{one['id'].replace('/', '_')}",
            function=one["function"],
            file=one["file"],
            line=one["line"],
            reason=one["reason"],
            stages=[
                _section(
                    stage, {made["name"]: made for made in one["stages"]}, over, f"c{one['id'].replace('/', '_')}-"
                )
                for stage in _COMPILE_STAGES
            ],
        )
        for one in document["compiles"]
    ]
    source, *after = (_section(stage, of_run, over, "") for stage in _RUN_STAGES)
    shared = _section(StageName.DYNAMO, of_run, over, "all-") if "dynamo" in of_run else None
    return Page(
        run=document["run"],
        over=over,
        summary=document["summary"],
        lines=_lines(document, shared, compiles, after[0]),
        source=source,
        shared=shared,
        compiles=compiles,
        after=after,
    )


def _section(name: StageName, made: dict[str, dict[str, Any]], over: bool, prefix: str) -> Section:
    stage = made.get(name.value)
    events = [] if stage is None else stage["events"]
    failures = [event for event in events if event["type"] == "stage_failed"]
    if stage is None:
        state = "absent" if over else "waiting"
    else:
        state = "failed" if failures else stage["status"] or ("absent" if over else "running")
    by_graph: dict[str, dict[str, Any]] = {}
    for event in events:
        if event["type"] == "stage_finished" and event["facts"]:
            by_graph.setdefault(event["graph"] or "", {}).update(event["facts"])
    latest = {} if stage is None else {(one["kind"], one["name"], one["graph"]): one for one in stage["artifacts"]}
    return Section(
        name=name,
        anchor=f"{prefix}{name.value}",
        state=state,
        seconds=None if stage is None else stage["seconds"],
        facts={} if stage is None else stage["facts"],
        by_graph=by_graph,
        artifacts=list(latest.values()),
        failures=failures,
        skipped=next((event for event in events if event["type"] == "stage_skipped"), None),
    )


def _lines(
    document: dict[str, Any], shared: Section | None, compiles: list[CompileSection], memory: Section
) -> list[Line]:
    lines = [Line(i, text) for i, text in enumerate(document["run"]["request"]["source"].split("\n"), 1)]
    if lines and not lines[-1].text:
        lines.pop()

    def note(number: int | None, look: str, said: Message) -> None:
        if number and number <= len(lines) and (look, said) not in lines[number - 1].notes:
            lines[number - 1].notes.append((look, said))

    for _name, table in shared.payloads("breaks") if shared else ():
        for one in table["breaks"]:
            note(one["line"], "bad", message("plain.line_break"))
    for finding in document["run"]["findings"]:
        if finding["severity"] == "error":
            note(finding["line"], "bad", message("plain.line_error"))
    outcome = document["run"]["outcome"] or {}
    note(outcome.get("line"), "bad", message("plain.line_error"))
    saved: dict[int, int] = {}
    for compiled in compiles:
        for stage in compiled.stages:
            for _name, table in stage.payloads("partition"):
                for one in table["saved"]:
                    if one["line"] and one["bytes"]:
                        saved[one["line"]] = saved.get(one["line"], 0) + one["bytes"]
    for number, count in saved.items():
        note(number, "save", message("plain.line_saved", bytes=bytes_text(count)))
    timelines = dict(memory.payloads("timeline"))
    if "dry_run" in timelines:
        for number, count in at_peak_by_line(timelines["dry_run"]).items():
            note(number, "dim", message("plain.line_peak", bytes=bytes_text(count)))
    return lines


def alive_at_peak(timeline: dict[str, Any]) -> list[dict[str, Any]]:
    """The blocks that live at the peak, the largest first: name, bytes, kind, line (0 unknown)."""
    blocks, strings, peak = timeline["blocks"], timeline["strings"], timeline["peak_point"]
    alive = [
        {
            "name": strings[blocks["name"][i]],
            "bytes": blocks["bytes"][i],
            "kind": strings[blocks["kind"][i]],
            "line": blocks["line"][i],
        }
        for i in range(len(blocks["name"]))
        if blocks["start"][i] <= peak and (blocks["end"][i] < 0 or blocks["end"][i] > peak)
    ]
    return sorted(alive, key=lambda block: -block["bytes"])


def at_peak_by_line(timeline: dict[str, Any]) -> dict[int, int]:
    by_line: dict[int, int] = {}
    for block in alive_at_peak(timeline):
        if block["line"]:
            by_line[block["line"]] = by_line.get(block["line"], 0) + block["bytes"]
    return by_line
