"""Recordings out of the store, and into it."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson
from pydantic_core import to_json

from compiler.recording import RecordedRun, Recording
from server.store.artifacts import Artifacts
from server.store.runs import Run, Runs, request_key
from server.versions import versions


def record(runs: Runs, artifacts: Artifacts, run: Run) -> Recording:
    """What the store has of a run."""
    return Recording(
        run=RecordedRun(id=run.id, request=run.request, created=run.created),
        events=[orjson.loads(body) for _seq, body in runs.events(run.id)],
        artifacts={digest: orjson.loads(artifacts.get(digest)) for digest in runs.artifacts(run.id)},
    )


def load(runs: Runs, artifacts: Artifacts, recording: Recording, id: str, origin: str) -> None:
    """Put a recording into the store as the run `id`, in place of what was there; `origin` is kept as its executor.
    Raises ValueError when a payload is not the one that its hash names."""
    events = [event.model_copy(update={"run": id}) for event in recording.parsed()]
    for digest, payload in recording.artifacts.items():
        artifacts.put(digest, encode_payload(payload, digest))
    request = recording.run.request
    row = Run(
        id=id,
        request=request,
        request_key=request_key(request, versions()),
        state="running",
        created=recording.run.created,
        started=recording.run.created,
        ended=None,
        executor=origin,
        cancel_requested=False,
        last_seq=0,
        engine=None,
        summary=None,
        terminal=None,
    )
    runs.replace(row, events, list(recording.artifacts))


def encode_payload(payload: dict[str, Any], digest: str) -> bytes:
    """The bytes whose sha256 is `digest`: compact JSON as pydantic writes it. Raises ValueError when they are not."""
    data = to_json(payload)
    if hashlib.sha256(data).hexdigest() != digest:
        raise ValueError(f"a recorded {payload.get('format')} is not the payload that its hash names")
    return data
