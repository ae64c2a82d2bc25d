"""A run as one JSON document, `document/1`: stages with their events and their artifacts, decoded and in place."""

from __future__ import annotations

from typing import Any

from compiler.events import (
    TERMINAL,
    ArtifactMade,
    CompileStarted,
    Event,
    Finding,
    Printed,
    RunStarted,
    StageFailed,
    StageFinished,
    StageName,
    StageSkipped,
    Summary,
    dump_event,
)
from compiler.recording import Recording
from server.recording import record
from server.store.artifacts import Artifacts
from server.store.runs import Run, Runs

Document = dict[str, Any]

_ORDER = {name: place for place, name in enumerate(StageName)}


def stored(runs: Runs, artifacts: Artifacts, run: Run) -> Recording:
    """A run of the store, with everything that it holds."""
    return record(runs, artifacts, run)


def document(recording: Recording) -> dict[str, Any]:
    """The document of a recording. `stages` are those of the run; each of `compiles` has its own.

    A stage is {name, status, seconds, facts, events, artifacts}; an artifact {name, kind, graph, format, hash, payload}.
    `payloads` holds what other payloads name by hash (graphs before and after a pass)."""
    events = recording.parsed()
    compiles: dict[str, dict[str, Any]] = {}
    stages: dict[tuple[str | None, StageName], dict[str, Any]] = {}
    named: set[str] = set()
    run: dict[str, Any] = {
        "id": recording.run.id,
        "created": recording.run.created,
        "request": recording.run.request.model_dump(mode="json"),
        "engine": None,
        "outcome": None,
        "printed": {"stdout": "", "stderr": ""},
        "findings": [],
    }
    summary: dict[str, Any] | None = None
    for event in events:
        flat = dump_event(event)
        if event.compile is not None and event.compile not in compiles:
            compiles[event.compile] = {
                "id": event.compile,
                "function": None,
                "file": None,
                "line": None,
                "reason": None,
            }
        match event.body:
            case RunStarted(engine=engine):
                run["engine"] = engine.model_dump(mode="json")
            case Printed(stream=stream, text=text):
                run["printed"][stream] += text
            case Finding():
                run["findings"].append(flat)
            case Summary(summary=summary):
                pass
            case CompileStarted() as started if event.compile is not None:
                compiles[event.compile] |= {
                    "function": started.function,
                    "file": started.file,
                    "line": started.line,
                    "reason": started.reason,
                }
            case body if body.type in TERMINAL:
                run["outcome"] = flat
        if event.stage is not None:
            stage = stages.setdefault(
                (event.compile, event.stage),
                {
                    "name": event.stage.value,
                    "status": None,
                    "seconds": None,
                    "facts": {},
                    "events": [],
                    "artifacts": [],
                },
            )
            _add(stage, event, flat, recording.artifacts, named)
    ordered = sorted(stages.items(), key=lambda item: _ORDER[item[0][1]])
    for name, compiled in compiles.items():
        compiled["stages"] = [stage for (of, _stage), stage in ordered if of == name]
    return {
        "format": "document/1",
        "run": run,
        "stages": [stage for (of, _name), stage in ordered if of is None],
        "compiles": list(compiles.values()),
        "payloads": {digest: payload for digest, payload in recording.artifacts.items() if digest not in named},
        "summary": summary,
    }


def _add(
    stage: dict[str, Any],
    event: Event,
    flat: dict[str, object],
    payloads: dict[str, dict[str, Any]],
    named: set[str],
) -> None:
    stage["events"].append(flat)
    match event.body:
        case StageFinished(status=status, seconds=seconds, facts=facts):
            stage["status"] = status.value
            stage["facts"] |= facts
            if seconds is not None:
                stage["seconds"] = (stage["seconds"] or 0.0) + seconds
        case StageFailed():
            stage["status"] = "failed"
        case StageSkipped():
            stage["status"] = "skipped"
        case ArtifactMade(name=name, graph=graph, artifact=ref):
            named.add(ref.hash)
            stage["artifacts"].append(
                {
                    "name": name,
                    "kind": ref.kind,
                    "graph": graph,
                    "format": ref.format,
                    "hash": ref.hash,
                    "payload": payloads[ref.hash],
                }
            )
