"""Exports, by what they are for: a script gives the graph's outputs, and torch's own tools open the snapshot."""

from __future__ import annotations

import os
import pickle
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.cuda import _memory_viz

from compiler.events import StageName
from compiler.ir.encode import decode
from server.document import document
from server.examples import FOLDER, read_recording
from server.exports import payloads
from server.exports.script import script
from server.exports.snapshot import series, snapshot
from tests.compiler.graph_cases import Seen, captured

SNIPPET = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 3))
inputs = (torch.randn(5, 6),)
"""


def defined(text: str, folder: Path) -> dict[str, Any]:
    """What a script defines, without its last part being run."""
    file = folder / "graph.py"
    file.write_text(text)
    return runpy.run_path(str(file), run_name="other")


@pytest.fixture(scope="module")
def net() -> Seen:
    return captured(SNIPPET)


@pytest.mark.parametrize("stage", [StageName.JOINT, StageName.JOINT_PASSES])
def test_the_joint_graph_as_a_script_gives_outputs_and_gradients(net: Seen, stage: StageName, tmp_path: Path) -> None:
    (payload,) = net.artifacts(stage, "graph", "joint")
    graph = decode(payload)
    made = defined(script(graph, torch.__version__, "0"), tmp_path)
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 3))
    x, tangent = torch.randn(5, 6), torch.randn(5, 3)
    values = dict(model.named_parameters())
    given = [
        tangent if node.name.startswith("tangents") else values.get(node.args, x)
        for node in graph.nodes
        if node.op == "placeholder"
    ]
    with torch.no_grad():
        output, *gradients = made["graph"](*given)
    expected = model(x)
    expected.backward(tangent)
    torch.testing.assert_close(output, expected.detach())
    names = [node.args for node in graph.nodes if node.op == "placeholder" and not node.name.startswith("tangents")]
    compared = 0
    for name, gradient in zip(names, gradients, strict=True):
        if name in dict(model.named_parameters()):
            torch.testing.assert_close(gradient, model.get_parameter(name).grad)
            compared += 1
    assert compared == 6


@pytest.mark.parametrize("stage", [StageName.DYNAMO, StageName.PARTITION, StageName.POST_GRAD])
def test_every_graph_runs_on_its_own_and_gives_the_form_of_its_outputs(
    net: Seen, stage: StageName, tmp_path: Path
) -> None:
    for payload in net.artifacts(stage, "graph"):
        graph = decode(payload)
        text = script(graph, torch.__version__, "0")
        made = defined(text, tmp_path)
        outputs = made["graph"](*made["inputs"]())
        by_name = {node.name: node.value for node in graph.nodes}
        returned = [name.strip("[]() ") for name in graph.nodes[-1].args.split(",") if name.strip("[]() ")]
        assert len(outputs) == len(returned)
        for name, output in zip(returned, outputs, strict=True):
            if name == "None":
                assert output is None
                continue
            value = by_name[name]
            assert value is not None
            assert value.kind == "tensor"
            assert (list(output.shape), str(output.dtype)) == (list(value.shape), f"torch.{value.dtype}")
        done = subprocess.run(
            [sys.executable, str(tmp_path / "graph.py")],
            capture_output=True,
            text=True,
            env=os.environ | {"PYTHONPATH": ""},
        )
        assert (done.returncode, len(done.stdout.splitlines())) == (0, len(outputs)), done.stderr


def test_a_long_list_of_outputs_is_not_cut() -> None:
    many = captured(
        "import torch\ndef model(x):\n    return tuple(x.sin() + i for i in range(400))\ninputs = (torch.randn(3),)\n",
        StageName.JOINT,
    )
    (payload,) = many.artifacts(StageName.JOINT, "graph")
    graph = decode(payload)
    assert "…" not in graph.nodes[-1].args
    assert len(graph.nodes[-1].args.split(",")) >= 400


# --- the snapshot


@pytest.fixture(scope="module")
def run() -> dict[str, Any]:
    return document(read_recording(FOLDER / "recorded" / "attention_block.json.gz"))


def test_every_timeline_is_opened_by_torchs_own_tools(run: dict[str, Any]) -> None:
    assert series(run)[0] == "dry_run"
    for name in series(run):
        made = pickle.loads(snapshot(run, name))
        for tool in (_memory_viz.segsum, _memory_viz.trace, _memory_viz.trace_plot, _memory_viz.segment_plot):
            assert tool(made)


def test_the_snapshot_has_the_timelines_bytes(run: dict[str, Any]) -> None:
    (timeline,) = (payload for _c, made, payload in payloads(run, "timeline") if made["name"] == "dry_run")
    made = pickle.loads(snapshot(run, "dry_run"))
    live: dict[int, int] = {}
    peak = 0
    for entry in made["device_traces"][0]:
        if entry["action"] == "alloc":
            # No two blocks share memory while both live.
            assert all(
                entry["addr"] + entry["size"] <= address or address + size <= entry["addr"]
                for address, size in live.items()
            )
            live[entry["addr"]] = entry["size"]
            peak = max(peak, sum(live.values()))
        elif entry["action"] == "free_completed":
            assert live.pop(entry["addr"]) == entry["size"]
    assert peak == timeline["peak_bytes"]
    (segment,) = made["segments"]
    alive = {block["address"]: block["size"] for block in segment["blocks"] if block["state"] == "active_allocated"}
    assert (alive, segment["active_size"]) == (live, sum(live.values()))
    assert sum(block["size"] for block in segment["blocks"]) == segment["total_size"]
    assert sum(live.values()) == timeline["end_bytes"]
