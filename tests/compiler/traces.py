"""Reads a structured trace, for tests: its records, as text in which nothing differs from one process to the next."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

# Of each record the fields that say where in the run it is.
_PLACE = ("compiled_autograd_id", "frame_id", "frame_compile_id", "attempt", "has_payload")
# Times, and what counts or sums them up.
_TIMES = frozenset(
    {"chromium_event", "compilation_metrics", "bwd_compilation_metrics", "aot_autograd_backward_compilation_metrics"}
)
# Addresses and ids, folders, a time, a clock's value in a guard.
_DIFFERS = re.compile(
    r"0x[0-9a-f]+|\d{9,}|[0-9a-f]{8}(?:[_-][0-9a-f]{4}){3}[_-][0-9a-f]{12}|/tmp/[\w./-]*"
    r"|(?<=Guard latency = )[\d.]+|(?<= == )\d+\.\d{6,}"
)
_ENVIRONMENT = re.compile(r"^os\.environ\[.*\n", re.MULTILINE)
_FRAME = re.compile(r' +File "([^"]+)", line \d+, in .*\n(?: {4,}.*\n)*')


@dataclass(frozen=True)
class Record:
    """`compile` is torch's name of the compile (`0/1`), "" outside of any; `name` that of an artifact where it is one."""

    kind: str
    compile: str
    attempt: int
    name: str
    metadata: Any
    payload: str


def read(text: str) -> list[Record]:
    records = []
    for block in re.split(r"^(?=V\d{4} )", text, flags=re.MULTILINE):
        head, _, rest = block.partition("\n")
        found = re.match(r"V\d{4} \S+ \d+ \S+:\d+\] (\{.*\})$", head)
        if found is None:
            assert not block.strip(), block[:300]
            continue
        raw = json.loads(found[1])
        kind = next(key for key in raw if key not in (*_PLACE, "stack", "rank", "subgraph_name"))
        frame = raw.get("frame_id")
        metadata = raw[kind]
        payload = "\n".join(line.removeprefix("\t") for line in rest.removesuffix("\n").split("\n"))
        records.append(
            Record(
                kind,
                "" if frame is None else f"{frame}/{raw['frame_compile_id']}",
                raw.get("attempt", 0),
                metadata.get("name", "") if kind == "artifact" else "",
                metadata,
                payload,
            )
        )
    return records


def _callee(frame: re.Match[str]) -> str:
    """Who called the snippet is not the same in both arms."""
    return frame[0] if "/tests/corpus/" in frame[1] or "/torch/" in frame[1] else ""


def comparable(records: list[Record]) -> list[tuple[str, str, int, str]]:
    """(compile, kind, attempt, text) of every record that is the same in every process: without times and stacks, whose outer
    frames are the caller's, and without the tables that those make."""
    rows = []
    for one in records:
        if one.kind in _TIMES or one.kind in ("str", "dump_file") or not one.compile:
            continue
        metadata = one.metadata
        if isinstance(metadata, dict):
            metadata = {
                key: value
                for key, value in metadata.items()
                if "stack" not in key and "path" not in key and key != "filename"
            }
        text = _FRAME.sub(_callee, f"{one.name} {metadata} {one.payload}\n")
        rows.append((one.compile, one.kind, one.attempt, _DIFFERS.sub("…", _ENVIRONMENT.sub("", text))))
    return rows
