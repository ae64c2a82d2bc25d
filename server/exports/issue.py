"""A run as text for an issue on GitHub: what it ran on, the snippet, what broke, what was found. In English, as upstream is."""

from __future__ import annotations

import re
from collections.abc import Iterator

from compiler.text import Message, render
from server.exports import Document, payloads, stages_of

# GitHub takes 65,536 characters; a table of guards alone can be longer.
_MOST_GUARDS = 40
_MOST_TEXT = 60_000


def issue(document: Document) -> str:
    """The text, in GitHub's Markdown. What the snippet or torch says stands in code, where nothing of it is markup."""
    text = "\n".join(_lines(document)).rstrip() + "\n"
    return text if len(text) <= _MOST_TEXT else text[:_MOST_TEXT] + "\n```\n\n(cut)\n"


def fenced(text: str, language: str = "") -> str:
    """A block of code that nothing inside can end."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def inline(text: str) -> str:
    """One line of code inside a sentence or a table."""
    flat = " ".join(text.split()).replace("|", "\\|")
    longest = max((len(run) for run in re.findall(r"`+", flat)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if longest else ""
    return f"{fence}{pad}{flat}{pad}{fence}" if flat else ""


def _lines(document: Document) -> Iterator[str]:
    run = document["run"]
    yield from ("### Snippet", "", fenced(run["request"]["source"], "python"), "")
    options = run["request"]["options"]
    yield from ("Options: " + ", ".join(f"{name} {inline(str(value))}" for name, value in options.items()) + ".", "")
    yield from _trouble(document)
    yield from _breaks(document)
    yield from _recompiles(document)
    yield from _guards(document)
    yield from _findings(run["findings"])
    yield from ("### Environment", "")
    for name, value in (run["engine"] or {}).items():
        yield f"- {name}: {inline(str(value))}"
    if summary := document["summary"]:
        yield from ("", "<details><summary>Figures of the run</summary>", "")
        yield from (
            f"- {inline(name)}: {inline(str(value))}" for name, value in summary.items() if value not in (None, [])
        )
        yield from ("", "</details>")


def _trouble(document: Document) -> Iterator[str]:
    """Errors: of stages, and of the run."""
    failures = [
        (f"{stage['name']} {compiled or ''}".strip(), event)
        for compiled, stage in stages_of(document)
        for event in stage["events"]
        if event["type"] == "stage_failed"
    ]
    outcome = document["run"]["outcome"] or {}
    cause = outcome.get("cause") or outcome.get("error")
    if cause and not failures:
        failures = [
            (
                "run",
                outcome
                | {"cause": cause, "error": "" if isinstance(outcome.get("error"), dict) else outcome.get("error")},
            )
        ]
    if not failures:
        return
    yield from ("### Error", "")
    for where, event in failures:
        line = f" (line {event['line']})" if event.get("line") else ""
        yield from (f"{inline(where)}{line}: {_said(event['cause'])}", "")
        for text in (event.get("error"), event.get("traceback")):
            if text:
                yield from (fenced(text), "")


def _breaks(document: Document) -> Iterator[str]:
    found = [one for _compile, _made, payload in payloads(document, "breaks") for one in payload["breaks"]]
    if not found:
        return
    yield from ("### Graph breaks", "")
    for one in found:
        line = f"line {one['line']}" if one["line"] else one["library"]
        reason = inline(one["reason"] or one["gb_type"])
        yield f"- {inline(one['gb_id'] or one['kind'])} at {inline(line)}, {one['count']} ×: {reason}"
        yield from (f"  - {inline(hint)}" for hint in one["hints"])
    yield ""


def _recompiles(document: Document) -> Iterator[str]:
    found = [one for _compile, _made, payload in payloads(document, "recompiles") for one in payload["recompiles"]]
    if not found:
        return
    yield from ("### Recompiles", "", "| compile | guard that failed | was | is |", "|---|---|---|---|")
    for one in found:
        yield f"| {inline(one['compile'])} | {inline(one['guard'])} | {inline(one['old'])} | {inline(one['new'])} |"
    yield ""


def _guards(document: Document) -> Iterator[str]:
    for compiled, _made, payload in payloads(document, "guards"):
        yield from (
            f"<details><summary>Guards of compile {_plain(compiled)}: {payload['leaf_guards']} leaves</summary>",
            "",
        )
        yield from ("| type | source | value |", "|---|---|---|")
        guards = payload["guards"]
        for one in guards[:_MOST_GUARDS]:
            yield f"| {inline(one['type'])} | {inline(one['source'])} | {inline(one['value'])} |"
        if len(guards) > _MOST_GUARDS:
            yield from ("", f"and {len(guards) - _MOST_GUARDS} more.")
        yield from ("", "</details>", "")


def _findings(findings: list[Document]) -> Iterator[str]:
    if not findings:
        return
    yield from ("### Findings", "")
    for one in findings:
        line = f" (line {one['line']})" if one["line"] else ""
        yield f"- {one['severity']}{line}: {_said(one['message'])}"
    yield ""


def _said(message: Document) -> str:
    """A sentence of ours; what it quotes may be the snippet's, so it stands in code."""
    return inline(render(Message.model_validate(message)))


def _plain(compiled: str | None) -> str:
    """A compile's id, as torch writes it; anything else is not one."""
    return compiled if compiled and re.fullmatch(r"[\d/]+", compiled) else "?"
