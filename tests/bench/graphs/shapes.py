"""The graphs that are shown: a real joint graph of a 32-layer decoder, and a synthetic one of 20,000 nodes."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

from pydantic_core import to_json

from compiler.events import (
    ArtifactMade,
    ArtifactRef,
    Body,
    CompileStarted,
    Engine,
    Event,
    Finished,
    RunRequest,
    RunStarted,
    StageFinished,
    StageName,
    StageStarted,
    StageStatus,
    dump_event,
)
from compiler.ir.encode import encode
from compiler.ir.graph import Graph, GraphPayload, Node
from compiler.recording import RecordedRun, Recording

ROOT = Path(__file__).parents[3]
LLAMA = Path(__file__).parent / "llama.py"
COMPILE = "0/0"
ID = f"{COMPILE.replace('/', '_')}/joint/joint"
# A slow or a busy machine is allowed as long as it needs: what is measured here is the picture, not the compile.
PATIENCE_S = 1800
OPERATORS = ("mm", "mul", "add", "silu", "rsqrt", "view", "permute", "sum", "softmax", "expand")


def llama(folder: Path) -> GraphPayload:
    """The joint graph of `llama.py`, as the compiler gives it; kept in `folder` for the next time."""
    kept = folder / f"llama-{hashlib.sha256(LLAMA.read_bytes()).hexdigest()[:16]}.json"
    if not kept.exists():
        made = folder / "run.json"
        command = ["run", str(LLAMA), "--no-native", "--until", "joint", "--json", str(made)]
        limits = {"AOTSCOPE_CAPTURE_SECONDS": str(PATIENCE_S), "AOTSCOPE_RUN_SECONDS": str(PATIENCE_S)}
        subprocess.run(
            [sys.executable, "-m", "server.cli", *command],
            cwd=ROOT,
            env=os.environ | limits,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        (compiled,) = json.loads(made.read_text())["compiles"]
        (joint,) = (stage for stage in compiled["stages"] if stage["name"] == "joint")
        (graph,) = (one for one in joint["artifacts"] if (one["kind"], one["name"]) == ("graph", "joint"))
        kept.write_text(json.dumps(graph["payload"]))
    return GraphPayload.model_validate_json(kept.read_bytes())


def synthetic(size: int = 20_000, seed: int = 7) -> GraphPayload:
    """A joint graph of `size` nodes in a tree of modules of which no two are alike, so that nothing can be folded away.

    Each forward operator reads the one before it and sometimes an older one near by; each has a gradient, or two, which
    read those of its readers and, two times in five, what it had saved."""
    chance = random.Random(seed)
    nodes: list[Node] = []
    forward = int(size * 0.4)
    paths: list[str] = []
    part = 0
    while len(paths) < forward:
        for block in range(chance.randint(4, 12)):
            for leaf in range(chance.randint(2, 5)):
                paths += [f"part{part}.block{block}.leaf{leaf}"] * chance.randint(6, 24)
        part += 1
    readers: list[list[int]] = [[] for _ in range(forward)]
    for i in range(forward):
        older = [i - chance.randint(2, min(i, 40))] if i > 2 and chance.random() < 0.5 else []
        reads = [i - 1, *older] if i else []
        for other in reads:
            readers[other].append(i)
        nodes.append(_node(f"f{i}", chance, tuple(f"f{j}" for j in reads), "forward", paths[i], i, None))
    spare = size - 2 * forward
    for i in reversed(range(forward)):
        gradients = tuple(f"g{j}" for j in readers[i])
        saved = (f"f{i}",) if chance.random() < 0.4 else ()
        nodes.append(_node(f"g{i}", chance, gradients + saved, "backward", paths[i], i, f"f{i}"))
        if spare and chance.random() < 0.55:
            nodes.append(_node(f"h{i}", chance, (f"g{i}",), "backward", paths[i], i, f"f{i}"))
            spare -= 1
    return encode(Graph(ID, tuple(nodes)))


def _node(
    name: str, chance: random.Random, inputs: tuple[str, ...], phase: str, path: str, seq: int, twin: str | None
) -> Node:
    return Node(
        name=name,
        op="call_function" if inputs else "placeholder",
        target=f"aten.{chance.choice(OPERATORS)}.default",
        args=", ".join(inputs),
        inputs=inputs,
        phase="backward" if phase == "backward" else "forward",
        module=path,
        seq_nr=seq,
        twin=twin,
    )


def recording(payload: GraphPayload) -> Recording:
    """A finished run that has made this joint graph and nothing else."""
    data = to_json(payload)
    digest = hashlib.sha256(data).hexdigest()
    ref = ArtifactRef(hash=digest, kind="graph", format=payload.format, bytes=len(data))
    request = RunRequest(source=LLAMA.read_text(encoding="utf-8"))
    engine = Engine(aotscope="", torch="", python="", platform="", cpu="", threads=1)
    said: list[tuple[StageName | None, Body]] = [
        (None, RunStarted(request=request, engine=engine)),
        (None, CompileStarted(function="forward", file="snippet.py", line=1)),
        (StageName.JOINT, StageStarted()),
        (StageName.JOINT, ArtifactMade(name="joint", graph="joint", artifact=ref)),
        (StageName.JOINT, StageFinished(status=StageStatus.OK, seconds=0)),
        (None, Finished()),
    ]
    events = []
    for seq, (stage, body) in enumerate(said, 1):
        compiled = None if isinstance(body, RunStarted | Finished) else COMPILE
        events.append(dump_event(Event(run="recorded", seq=seq, t=0, compile=compiled, stage=stage, body=body)))
    run = RecordedRun(id="recorded", request=request, created=time.time())
    return Recording(run=run, events=events, artifacts={digest: json.loads(data)})
