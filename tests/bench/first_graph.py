"""Submit → first graph at the client / the moment at which raw Dynamo has it, in a warm process; 12 layers.

The client speaks to a real server over HTTP: it posts the snippet, follows the stream of events, and has the graph when its
artifact is read and parsed. Raw Dynamo is a fork of a warmed process whose backend notes the time at which it is given the graph.
What a tiny model needs beyond raw Dynamo is the fixed delay: queue, fork, pipe, store, stream.
"""

from __future__ import annotations

import json
import os
import struct
import time
from pathlib import Path

import httpx

from tests.bench.ratios import Ratio, abba, ratio
from tests.bench.served import HEADERS, served

STACK = (Path(__file__).parents[2] / "server" / "examples" / "gpt_stack.py").read_text()
TWELVE = STACK.replace("layers=8", "layers=12")
TINY = (Path(__file__).parents[2] / "server" / "examples" / "two_layer_net.py").read_text()


def seconds_to_graph(address: str, source: str) -> float:
    """Seconds from the request to Dynamo's first graph, read and parsed."""
    with httpx.Client(base_url=address, timeout=300, headers=HEADERS) as client:
        began = time.perf_counter()
        run = client.post("/api/v1/runs", json={"source": source, "options": {"native": False}}).json()["id"]
        elapsed = None
        with client.stream("GET", f"/api/v1/runs/{run}/events") as stream:
            for line in stream.iter_lines():
                if not line.startswith("data:"):
                    continue
                event = json.loads(line[5:])
                if elapsed is None and event["type"] == "artifact" and event["artifact"]["kind"] == "graph":
                    json.loads(client.get(f"/api/v1/runs/{run}/artifacts/{event['artifact']['hash']}").content)
                    elapsed = time.perf_counter() - began
        if elapsed is None:
            raise RuntimeError(f"run {run} gave no graph")
        return elapsed


def raw_seconds(source: str) -> float:
    """Seconds from the start of the snippet to the call of a backend with its first graph, in a fork of this (warm) process."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        began = time.perf_counter()

        def backend(graph: object, inputs: object) -> object:
            os.write(writing, struct.pack("d", time.perf_counter() - began))
            os._exit(0)

        import torch

        names: dict[str, object] = {"__name__": "snippet"}
        exec(compile(source, "snippet.py", "exec"), names)
        torch.compile(names["model"], backend=backend)(*names["inputs"])
        os._exit(1)
    os.close(writing)
    data = os.read(reading, 8)
    os.close(reading)
    os.waitpid(pid, 0)
    return float(struct.unpack("d", data)[0])


def measure(pairs: int) -> tuple[Ratio, list[float]]:
    """The ratio for 12 layers, and the fixed delay of each pair of a tiny model in milliseconds."""
    from compiler.warm import warm_up

    warm_up()
    with served() as server:
        address = server.address
        seconds_to_graph(address, TINY)
        bases, news = abba(lambda: raw_seconds(TWELVE), lambda: seconds_to_graph(address, TWELVE), pairs)
        tiny = abba(lambda: raw_seconds(TINY), lambda: seconds_to_graph(address, TINY), pairs)
    delays = [(new - base) * 1000 for base, new in zip(*tiny, strict=True)]
    return ratio("first graph at the client / raw Dynamo has it: 12 layers", bases, news, 1.10), delays
