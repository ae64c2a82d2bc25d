"""Bytes of a run's graphs on the wire / bytes of `print_readable()` of the same graphs.

What `print_readable()` says is taken from torch's structured trace of the same run: Dynamo's graph, the joint one, forward and
backward, and both after the post-grad passes. Ours are the artifacts of kind `graph` of the same stages, with
shapes, strides, stacks, modules and roles, in their own columns; compressed as a browser is sent them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from tests.bench.overhead import MODELS
from tests.bench.served import HEADERS, served
from tests.compiler.traces import read

# Of each stage, the record of the trace that holds the same graphs.
RECORDS = {
    ("dynamo", "dynamo"): "dynamo_output_graph",
    ("joint", "joint"): "aot_joint_graph",
    ("partition", "forward"): "aot_forward_graph",
    ("partition", "backward"): "aot_backward_graph",
    ("post_grad", "forward"): "inductor_post_grad_graph",
    ("post_grad", "backward"): "inductor_post_grad_graph",
}


@dataclass(frozen=True)
class Bytes:
    """Of the graphs of one model: as torch's text, as JSON, and compressed."""

    model: str
    graphs: int
    text: int
    raw: int
    compressed: int


def finished(client: httpx.Client, source: str, options: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    """A run's id and its events, when it is over. Raises RuntimeError when it did not finish."""
    run = client.post("/api/v1/runs", json={"source": source, "options": options}).raise_for_status().json()["id"]
    with client.stream("GET", f"/api/v1/runs/{run}/events") as stream:
        events = [json.loads(line[5:]) for line in stream.iter_lines() if line.startswith("data:")]
    if events[-1]["type"] != "finished":
        raise RuntimeError(f"run {run}: {events[-1]}")
    return run, events


def _of_model(client: httpx.Client, model: str) -> Bytes:
    source = (MODELS / f"{model}.py").read_text()
    run, events = finished(client, source, {"native": False, "trace": True})
    texts = [
        record for record in read(client.get(f"/api/v1/runs/{run}/trace/capture").raise_for_status().text)
        if (record.name or record.kind) in RECORDS.values()
    ]  # fmt: skip
    refs = [
        event["artifact"] for event in events
        if event["type"] == "artifact" and event["artifact"]["kind"] == "graph" and (event["stage"], event["name"]) in RECORDS
    ]  # fmt: skip
    if len(refs) != len(texts):
        raise RuntimeError(f"{model}: {len(refs)} graphs here, {len(texts)} in torch's trace")
    compressed = 0
    for ref in refs:
        with client.stream("GET", f"/api/v1/runs/{run}/artifacts/{ref['hash']}") as answer:
            compressed += len(b"".join(answer.iter_raw()))
    text = sum(len(record.payload.encode()) for record in texts)
    return Bytes(model, len(refs), text, sum(ref["bytes"] for ref in refs), compressed)


def measure(models: Sequence[str]) -> list[Bytes]:
    """In order; takes a few seconds a model."""
    with served() as server, httpx.Client(base_url=server.address, timeout=300, headers=HEADERS) as client:
        return [_of_model(client, model) for model in models]
