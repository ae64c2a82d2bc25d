"""A comparison as text, for the command line."""

from __future__ import annotations

from collections.abc import Iterator

from compiler.ir.comparison import ComparedFinding, ComparedRun, Difference, Part, RunComparison, StageComparison
from compiler.text import render

_SIGNS = {"added": "+", "removed": "-", "changed": "~", "same": " "}


def lines(found: RunComparison, details: bool) -> Iterator[str]:
    """What differs, a stage at a time; with `details`, each row and each diff of text."""
    yield from (f"a  {_side(found.a)}", f"b  {_side(found.b)}")
    for title, figures in (("options", found.options), ("engine", found.engine), ("summary", found.summary)):
        yield from _figures(title, figures)
    if found.source:
        yield "source differs"
        yield from (f"    {line}" for line in found.source.splitlines() if details)
    for sign, findings in (("+", found.appeared), ("-", found.vanished)):
        yield from (f"{sign} {_finding(one)}" for one in findings)
    for stage in found.stages:
        yield from _stage(stage, "", details)
    for made in found.compiles:
        a, b = (one.id if one else "–" for one in (made.a, made.b))
        for stage in made.stages:
            yield from _stage(stage, f"  {a} | {b}", details)
    yield "equal" if found.equal else "different"


def _side(run: ComparedRun) -> str:
    engine = run.engine or {}
    return f"{run.id}  {run.state}  torch {engine.get('torch', '?')}  {run.options.get('mode', '')}".rstrip()


def _finding(one: ComparedFinding) -> str:
    at = f" (line {one.line})" if one.line else ""
    return f"{one.severity}: {render(one.message)}{at}"


def _figures(title: str, figures: list[Difference]) -> Iterator[str]:
    for one in figures:
        yield f"{title}  {one.name}: {_value(one.a)} → {_value(one.b)}{' (measured)' if one.measured else ''}"


def _value(value: object) -> str:
    return "–" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _stage(stage: StageComparison, where: str, details: bool) -> Iterator[str]:
    different = [part for part in stage.parts if part.state != "equal" or (details and part.figures)]
    if stage.equal and not different:
        return
    seconds = [f"{side.seconds:.3f} s" if side.seconds is not None else "–" for side in (stage.a, stage.b)]
    status = f"  {stage.a.status} → {stage.b.status}" if stage.a.status != stage.b.status else ""
    yield f"{stage.stage}{where}{status}  {seconds[0]} → {seconds[1]}"
    for part in different:
        yield from _part(part, details)


def _part(part: Part, details: bool) -> Iterator[str]:
    graphs = " ~ ".join(dict.fromkeys(graph for graph in (part.graph_a, part.graph_b) if graph))
    title = "  ".join(text for text in (part.kind, part.name if part.name != part.kind else "", graphs) if text)
    if part.state in ("only_a", "only_b"):
        yield f"    {title}  only in {part.state[-1]}"
        return
    counts = f"+{part.added} -{part.removed} ~{part.changed} ={part.same}"
    yield f"    {title}  {counts if part.added or part.removed or part.changed else ''}".rstrip()
    yield from _figures("       ", part.figures)
    if not details:
        return
    for row in part.rows:
        if row.gap:
            yield f"        … {row.gap}"
        what = f"  ({', '.join(row.what)})" if row.what else ""
        if row.state == "changed":
            yield from (f"      - {row.a}", f"      + {row.b}{what}")
        else:
            yield f"      {_SIGNS[row.state]} {row.b or row.a}"
    yield from (f"      {line}" for line in part.diff.splitlines())
