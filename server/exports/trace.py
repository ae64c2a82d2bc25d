"""A run in Chrome's trace format (JSON), which Perfetto and chrome://tracing open: stages, passes, kernels, memory."""

from __future__ import annotations

from typing import Any

from server.exports import Document, payloads, stages_of

_COMPILE, _KERNELS, _MEMORY = 1, 2, 3
# chrome://tracing draws nothing for less.
_SHORTEST_US = 0.001


def trace(document: Document) -> Document:
    """The trace. Times are microseconds.

    Process 1 is the compile as it went, a thread for each: a stage's span is from its start to its end as the run told them,
    with our own work inside, and `seconds` among its arguments torch's own share. A pass has a measured length and no measured
    start: passes are laid end to end from the beginning of their stage. Process 2 are the kernels of one step by time, end to end
    (`placed` says so). Process 3 is live memory; its clock counts program points, one microsecond each."""
    events: list[Document] = [_named(_COMPILE, "compile"), _named(_KERNELS, "kernels of one step (total time each)")]
    for number, compiled in enumerate(dict.fromkeys(compiled for compiled, _stage in stages_of(document))):
        events.append(_named(_COMPILE, f"compile {compiled}" if compiled else "run", number))
        for of, stage in stages_of(document):
            if of == compiled:
                events += _stage(stage, number)
    events += _kernels(document)
    events += _memory(document)
    run = document["run"]
    other = {"run": run["id"], **{key: str(value) for key, value in (run["engine"] or {}).items()}}
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": other}


def _named(process: int, name: str, thread: int | None = None) -> Document:
    kind = "process_name" if thread is None else "thread_name"
    return {"ph": "M", "pid": process, "tid": thread or 0, "name": kind, "args": {"name": name}}


def _span(process: int, thread: int, name: str, start: float, length: float, **args: Any) -> Document:
    return {
        "ph": "X",
        "pid": process,
        "tid": thread,
        "name": name,
        "cat": "aotscope",
        "ts": round(start, 3),
        "dur": round(max(length, _SHORTEST_US), 3),
        "args": args,
    }


def _stage(stage: Document, thread: int) -> list[Document]:
    spans: list[Document] = []
    start: float | None = None
    starts: dict[str | None, float] = {}
    for event in stage["events"]:
        at = event["t"] * 1e6
        if event["type"] == "stage_started":
            start = at
        elif event["type"] in ("stage_finished", "stage_failed"):
            seconds = event.get("seconds")
            # A second graph that ends after the first: its own time is all that is known of its beginning.
            begin = start if start is not None else at - (seconds or 0) * 1e6
            graph = event.get("graph")
            starts.setdefault(graph, begin)
            facts = event.get("facts", {}) | {"seconds": seconds, "graph": graph, "ended": event["type"]}
            spans.append(_span(_COMPILE, thread, stage["name"], begin, at - begin, **facts))
            start = None
    for made in stage["artifacts"]:
        if made["kind"] == "passes":
            at = starts.get(made["graph"], next(iter(starts.values()), 0.0))
            for step in made["payload"]["steps"]:
                if step["seconds"] is not None:
                    changed = {"changed": step["changed"], "nodes": f"{step['nodes_before']} → {step['nodes_after']}"}
                    length = step["seconds"] * 1e6
                    spans.append(_span(_COMPILE, thread, step["name"], at, length, placed="end to end", **changed))
                    at += length
    return spans


def _kernels(document: Document) -> list[Document]:
    spans, at = [], 0.0
    for _compile, _made, payload in payloads(document, "execution"):
        for kernel in payload["kernels"]:
            length = kernel["seconds"] * 1e6
            about = {"calls": kernel["calls"], "entity": kernel["entity"], "placed": "end to end"}
            spans.append(_span(_KERNELS, 0, kernel["name"], at, length, **about))
            at += length
    return spans


def _memory(document: Document) -> list[Document]:
    made: list[Document] = []
    for number, (_compile, artifact, timeline) in enumerate(payloads(document, "timeline")):
        if number == 0:
            made.append(_named(_MEMORY, "live memory (one microsecond is one program point)"))
        name = "-".join(dict.fromkeys(part for part in (artifact["name"], artifact["graph"]) if part))
        made += [
            {"ph": "C", "pid": _MEMORY, "tid": 0, "name": name, "ts": point, "args": {"bytes": live}}
            for point, live in enumerate(timeline["points"]["live"])
        ]
    return made
