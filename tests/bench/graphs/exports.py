"""The same graph in the forms that the others read: names, operators, modules and edges, nothing else."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from compiler.ir.graph import GraphPayload

# Run by the Python that has `onnx`: the same file in, an ONNX model out. It need not be a valid network to be drawn.
_TO_ONNX = """
import json, sys, onnx
from onnx import helper
nodes = json.load(open(sys.argv[1]))
made = [helper.make_node(n["op"], [f"t{i}" for i in n["inputs"]], [f"t{n['id']}"], name=n["name"]) for n in nodes]
onnx.save(helper.make_model(helper.make_graph(made, "joint", [], [])), sys.argv[2])
"""


def plain(payload: GraphPayload) -> list[dict[str, Any]]:
    """The nodes by number: {id, name, op, module, backward, inputs}."""
    columns, strings = payload.nodes, payload.strings
    inputs: list[list[int]] = [[] for _ in columns.name]
    for source, target in zip(payload.edges.source, payload.edges.target, strict=True):
        if source not in inputs[target]:
            inputs[target].append(source)
    return [
        {
            "id": i,
            "name": strings[columns.name[i]],
            "op": strings[columns.target[i]].removeprefix("aten.").split(".")[0] or strings[columns.op[i]],
            "module": strings[columns.module[i]],
            "backward": strings[columns.phase[i]] == "backward",
            "inputs": inputs[i],
        }
        for i in range(len(columns.name))
    ]


def onnx(payload: GraphPayload, file: Path, python: str) -> Path:
    """An ONNX model, for Netron; made by `python`, which has the package."""
    source = file.with_suffix(".plain.json")
    source.write_text(json.dumps(plain(payload)))
    subprocess.run([python, "-c", _TO_ONNX, str(source), str(file)], check=True)
    return file


def explorer(payload: GraphPayload, file: Path) -> Path:
    """Model Explorer's own JSON. Namespaces are the modules, each half under its own, so that it can fold as it does."""
    nodes = [
        {
            "id": str(node["id"]),
            "label": node["op"],
            "namespace": "/".join(
                ["backward" if node["backward"] else "forward", *filter(None, node["module"].split("."))]
            ),
            "incomingEdges": [{"sourceNodeId": str(source)} for source in node["inputs"]],
        }
        for node in plain(payload)
    ]
    file.write_text(json.dumps([{"id": "joint", "nodes": nodes}]))
    return file
