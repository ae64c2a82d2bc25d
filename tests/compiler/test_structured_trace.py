"""The exported structured trace against the run that it is of: `tlparse` opens it, and each compile, graph, break, recompile,
guard tree, piece of generated code and cache look-up in it is the one that the run shows; nothing is in one and not in the other.
"""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from torch.utils._dtype_abbrs import dtype_abbrs

from compiler.ir.encode import decode
from compiler.ir.graph import GraphPayload, Node, ScalarValue, Size, SymbolicSize, TensorValue
from server.traces import file_name
from tests.compiler.phases_run import run_jobs
from tests.compiler.traces import Record, read

TRAINING = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(8, 8)
    def forward(self, x):
        y = self.a(x).relu()
        return y.sin()
model = Net()
inputs = (torch.randn(4, 8),)
"""
BREAK = """
import torch
def model(x):
    y = x.sin()
    if y.sum() > 0:
        return y + 1
    return y - 1
inputs = (torch.ones(3),)
"""
RECOMPILES = """
import torch
def model(x, n):
    return (x * n).cos()
inputs = (torch.ones(3), True)
calls = [(torch.ones(3), True), (torch.ones(4), True), (torch.ones(4), False)]
"""
SNIPPETS = {"training": TRAINING, "break": BREAK, "recompiles": RECOMPILES}
COMPILES = {"training": ["0/0"], "break": ["0/0", "1/0"], "recompiles": ["0/0", "0/1", "0/2"]}
NATIVE = ("training", "break")

pytestmark = pytest.mark.timeout(600)

# Of the log → the stage, kind of graph and name under which the run shows it.
JOINT = {"aot_joint_graph": "joint", "aot_inference_graph": "inference"}
PARTITION = {"aot_forward_graph": "forward", "aot_backward_graph": "backward"}
KIND = re.compile(r"# AOT ID: \['\d+_(\w+)'\]")
_ABBREVIATIONS = {str(dtype).removeprefix("torch."): short for dtype, short in dtype_abbrs.items()}


@dataclass(frozen=True)
class Row:
    """A node as both sides have it: its value as torch annotates it, its operator where it is one of torch.ops."""

    name: str
    operator: str
    annotation: str
    reads: frozenset[str]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    jobs = [
        {"name": f"{name} {phase}", "phase": phase, "source": source, "options": {"trace": True}}
        for name, source in SNIPPETS.items()
        for phase in ("capture", "native")
        if phase == "capture" or name in NATIVE
    ]
    return run_jobs(jobs, tmp_path_factory.mktemp("traces"), 570)


def payloads(run: dict[str, Any], kind: str, **where: Any) -> list[Any]:
    return [
        made["payload"]
        for made in run["artifacts"]
        if made["artifact"]["kind"] == kind and all(made[key] == value for key, value in where.items())
    ]


def log(run: dict[str, Any], phase: str) -> list[Record]:
    (trace,) = payloads(run, "trace", name=phase)
    records = read(trace["text"])
    assert (trace["phase"], trace["cut"], trace["records"]) == (phase, False, len(records))
    return records


# --- graphs, from either side


def logged(text: str) -> list[Row]:
    """The nodes of a graph that torch printed as a Python class."""
    (module,) = (
        node for node in ast.walk(ast.parse(text.replace("<lambda>", "inner"))) if isinstance(node, ast.ClassDef)
    )
    (forward,) = (node for node in module.body if isinstance(node, ast.FunctionDef))
    rows: dict[str, Row] = {}
    for argument in forward.args.args[1:]:
        if argument.annotation is not None:
            rows[argument.arg] = Row(argument.arg, "", _text(argument.annotation), frozenset())
    for statement in forward.body:
        if isinstance(statement, ast.Return):
            rows["output"] = Row("output", "", "", _reads(statement.value))
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            name = statement.target.id
            value = statement.value
            reads = _reads(value) if value is not None else frozenset()
            rows[name] = Row(name, _operator(value), _text(statement.annotation), reads)
        elif isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Name):
            # Dynamo's placeholders have one name as arguments and one as nodes.
            (target,) = statement.targets
            assert isinstance(target, ast.Name)
            given = rows.pop(statement.value.id)
            rows[target.id] = Row(target.id, "", given.annotation, frozenset())
        else:
            # `a = b = None` after the last use, and the joint graph's arguments taken out of their tree.
            assert isinstance(statement, ast.Assign), ast.dump(statement)
            assert isinstance(statement.value, ast.Constant) or "tree_flatten_spec" in ast.unparse(statement), text
    return list(rows.values())


def _text(annotation: ast.expr) -> str:
    assert isinstance(annotation, ast.Constant)
    return str(annotation.value)


def _reads(value: ast.expr | None) -> frozenset[str]:
    names = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)} if value is not None else set()
    return frozenset(names - {"torch", "device", "pytree", "self"})


def _operator(value: ast.expr | None) -> str:
    called = ast.unparse(value.func) if isinstance(value, ast.Call) else ""
    return called.removeprefix("torch.ops.") if called.startswith("torch.ops.") else ""


def shown(payload: Any, *, operators: bool) -> list[Row]:
    return [_row(node, operators) for node in decode(GraphPayload.model_validate(payload)).nodes]


def _row(node: Node, operators: bool) -> Row:
    operator = node.target if operators and node.op == "call_function" else ""
    return Row(node.name, operator, _annotation(node), frozenset(node.inputs))


def _annotation(node: Node) -> str:
    value = node.value
    if isinstance(value, TensorValue):
        assert value.stride is not None
        sizes, strides = (", ".join(map(_size, extents)) for extents in (value.shape, value.stride))
        return f"{_ABBREVIATIONS[value.dtype]}[{sizes}][{strides}]{value.device}"
    if isinstance(value, ScalarValue) and node.op == "placeholder":
        assert isinstance(value.value, (int, SymbolicSize))
        return f"Sym({_size(value.value)})"
    return ""


def _size(size: Size) -> str:
    return str(size) if isinstance(size, int) else size.expr


def logged_graphs(records: Iterable[Record]) -> Iterator[tuple[str, str, list[Row]]]:
    """(compile, what, rows) of every graph that both sides have; what is the stage and the graph, as the run names them."""
    inputs: dict[str, str] = {}
    for one in records:
        if one.kind == "dynamo_output_graph":
            yield one.compile, "dynamo dynamo", logged(one.payload)
        elif one.kind in JOINT:
            inputs[one.compile] = one.kind
            yield one.compile, f"joint {JOINT[one.kind]}", logged(one.payload)
        elif one.kind in PARTITION:
            yield one.compile, f"partition {PARTITION[one.kind]}", logged(one.payload)
        elif one.name == "after_joint_graph":
            yield one.compile, "joint_passes inference", logged(one.payload)
        elif one.name == "inductor_post_grad_graph":
            yield one.compile, f"post_grad {_half(one, records)}", logged(one.payload)


def _half(graph: Record, records: Iterable[Record]) -> str:
    """Which of a compile's graphs Inductor had when it printed one: its code, which follows, says."""
    all_ = list(records)
    code = next(one for one in all_[all_.index(graph) :] if one.kind == "inductor_output_code")
    found = KIND.search(code.payload)
    assert found is not None
    return found[1]


def graphs(run: dict[str, Any]) -> dict[tuple[str, str], list[Row]]:
    found = {}
    for made in run["artifacts"]:
        if made["artifact"]["kind"] != "graph" or made["name"] == "step":
            continue
        what = f"{made['stage']} {made['graph']}"
        if what == "joint_passes joint":
            continue  # a joint graph after its passes is logged nowhere
        found[made["compile"], what] = shown(made["payload"], operators=made["stage"] != "dynamo")
    return found


# --- the tests


@pytest.mark.parametrize("name", SNIPPETS)
def test_compiles_and_their_graphs_are_those_of_the_log(name: str, runs: dict[str, Any]) -> None:
    run = runs[f"{name} capture"]
    records = log(run, "capture")
    started = [event["compile"] for event in run["events"] if event["type"] == "compile_started"]
    assert COMPILES[name] == started == list(dict.fromkeys(one.compile for one in records if one.compile))
    assert COMPILES[name] == [one.compile for one in records if one.kind == "dynamo_start"]
    of_log = {(id_, what): rows for id_, what, rows in logged_graphs(records)}
    assert len(of_log) >= 4 * len(started)
    ours = graphs(run)
    assert of_log.keys() == ours.keys()
    for key, rows in of_log.items():
        assert rows == ours[key], key


@pytest.mark.parametrize("name", SNIPPETS)
def test_guards_code_breaks_and_recompiles_are_those_of_the_log(name: str, runs: dict[str, Any]) -> None:
    run = runs[f"{name} capture"]
    records = log(run, "capture")

    guards = {made["compile"]: made["payload"] for made in run["artifacts"] if made["artifact"]["kind"] == "guards"}
    trees = {one.compile: one.payload for one in records if one.kind == "dynamo_cpp_guards_str"}
    assert guards.keys() == trees.keys() == set(COMPILES[name])
    for id_, tree in trees.items():
        # Torch adds to its own text how long a check took.
        assert _lines(guards[id_]["tree"]) == _lines(re.sub(r"\nGuard latency = .*", "", tree))

    codes: dict[tuple[str, str], str] = {}
    for one in records:
        if one.kind == "inductor_output_code":
            found = KIND.search(one.payload)
            assert found is not None
            codes[one.compile, found[1]] = one.payload
    shown_codes = {
        (made["compile"], made["graph"]): made["payload"]["text"]
        for made in run["artifacts"]
        if made["artifact"]["kind"] == "code" and made["stage"] == "codegen"
    }
    assert shown_codes.keys() == codes.keys()
    for key, text in codes.items():
        assert shown_codes[key].split() == text.split(), key

    (table,) = payloads(run, "breaks")
    told = [one.payload for one in records if one.name == "dynamo_graph_break_reason"]
    assert [row["kind"] for row in table["breaks"]] == ["break"] * (name == "break")
    assert sum(row["count"] for row in table["breaks"]) == len(told)
    for row, text in zip(table["breaks"], told, strict=True):
        place = re.search(r"Graph break in user code at \S+/(\S+):(\d+)\n", text)
        assert place is not None
        assert (place[1], int(place[2])) == ("snippet.py", row["line"])
        assert f"Graph Break Reason: {row['gb_type']}\n" in text
        assert f"Explanation: {_flat(row['explanation'])}" in _flat(text)
        assert re.findall(r"^  Hint: (.*)$", text, re.MULTILINE) == row["hints"]
        assert row["url"] in text
        assert _flat(row["context"]) in _flat(text)

    (table,) = payloads(run, "recompiles")
    rows: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for row in table["recompiles"]:
        # For its reasons torch shortens the names of locals.
        rows[row["compile"]].append((row["entry"], re.sub(r"L\['(\w+)'\]", r"\1", row["guard"])))
    reasons = {one.compile: _reasons(one.payload) for one in records if one.name == "recompile_reasons"}
    assert rows == reasons
    assert list(reasons) == COMPILES[name][1:] if name == "recompiles" else not reasons


def _lines(text: str) -> list[str]:
    """With the snippet named as it is shown, whatever torch leaves of its path."""
    return re.sub(r"[\w./-]*/snippet\.py", "snippet.py", text).rstrip().split("\n")


def _flat(text: str) -> str:
    """The same without indentation."""
    return " ".join(" ".join(_lines(text)).split())


def _reasons(payload: str) -> list[tuple[str, str]]:
    texts = json.loads(payload) if payload.startswith("[") else [payload]
    return [
        (entry, guard.split("  #", 1)[0].strip())
        for entry, _, guard in (text.split("\n", 1)[0].partition(": ") for text in texts)
    ]


@pytest.mark.parametrize("name", NATIVE)
def test_what_was_run_is_what_was_captured(name: str, runs: dict[str, Any]) -> None:
    """The native phase's log has the captured graphs, once for the cold compile; what the warm one made again is the same."""
    ours = graphs(runs[f"{name} capture"])
    records = log(runs[f"{name} native"], "native")
    assert list(dict.fromkeys(one.compile for one in records if one.compile)) == COMPILES[name]
    seen = set()
    for id_, what, rows in logged_graphs(records):
        assert rows == ours[id_, what], (id_, what)
        seen.add((id_, what))
    assert seen == ours.keys()


@pytest.mark.parametrize("name", NATIVE)
def test_cache_look_ups_are_those_of_the_log(name: str, runs: dict[str, Any]) -> None:
    run = runs[f"{name} native"]
    of_log: Counter[tuple[str, str, str]] = Counter()
    for one in log(run, "native"):
        found = re.fullmatch(r"(aotautograd|fx_graph)_cache_(hit|miss|bypass)", one.name)
        if found is not None:
            cache = {"aotautograd": "aot_autograd", "fx_graph": "fx_graph"}[found[1]]
            of_log[cache, found[2], json.loads(one.payload)["key"]] += 1
    (cache_payload,) = payloads(run, "cache")
    ours: Counter[tuple[str, str, str]] = Counter()
    for probe in cache_payload["probes"]:
        if probe["what"] != "changed" and probe["outcome"] != "unused":
            ours[probe["cache"], probe["outcome"], probe["key"]] += probe["count"]
    assert ours == of_log
    assert {outcome for _, outcome, _ in ours} == {"hit", "miss"}


@pytest.mark.parametrize("job", [*(f"{name} capture" for name in SNIPPETS), *(f"{name} native" for name in NATIVE)])
def test_tlparse_opens_it(job: str, runs: dict[str, Any], tmp_path: Path) -> None:
    name, phase = job.split()
    (trace,) = payloads(runs[job], "trace")
    file, report = tmp_path / file_name(phase), tmp_path / "report"
    file.write_text(trace["text"], encoding="utf-8")
    tool = shutil.which("tlparse")
    assert tool is not None, "tlparse comes with the dev extra"
    command = [tool, "--no-browser", "-o", str(report), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "fail" not in done.stderr.lower(), done.stderr
    listed = json.loads((report / "compile_directory.json").read_text(encoding="utf-8"))
    assert [one.strip("[]") for one in listed if one != "[-/-]"] == COMPILES[name]
    records = read(trace["text"])
    for id_ in COMPILES[name]:
        files = [
            re.sub(r"(_c[a-z0-9]{40,60})?_\d+\.\w+$", "", made["name"]) for made in listed[f"[{id_}]"]["artifacts"]
        ]
        made = Counter(file for file in files if file in _GRAPHS)
        in_log = Counter(one.name or one.kind for one in records if one.compile == id_)
        assert made == {kind: count for kind, count in in_log.items() if kind in _GRAPHS}, id_
        assert {"dynamo_output_graph", "inductor_output_code"} <= made.keys()


_GRAPHS = {
    "dynamo_output_graph", "aot_joint_graph", "aot_forward_graph", "aot_backward_graph", "aot_inference_graph",
    "inductor_post_grad_graph", "inductor_output_code", "before_pre_grad_graph", "dynamo_graph_break_reason",
    "fx_graph_cache_hit", "fx_graph_cache_miss", "aotautograd_cache_hit", "aotautograd_cache_miss",
}  # fmt: skip
