"""The whole corpus through the capture phase, against what torch's own tools measured."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from compiler.session import SNIPPET_FILE
from tests.compiler.corpus_run import run_corpus

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "tests" / "corpus"
REFERENCE: dict[str, Any] = json.loads((CORPUS / "reference.json").read_text(encoding="utf-8"))
EXPECTED: dict[str, Any] = json.loads((CORPUS / "issues" / "EXPECTED.json").read_text(encoding="utf-8"))
FOLDER = ROOT / "tests" / "corpus_excuses"
NAMES = (
    "compiled_graphs", "break_messages", "joint_nodes", "joint_nodes_before_passes", "fw_nodes", "bw_nodes",
    "saved_tensors", "saved_bytes", "saved_activation_bytes", "recomputed_ops", "ir_nodes_pre_fusion",
    "scheduler_nodes_after_fusion", "distinct_cpp_kernels", "cpp_kernel_launches", "extern_calls", "recompiles",
    "unique_recompile_reasons", "leaf_guards", "error",
)  # fmt: skip

# What differs from the reference, found and wanted, where torch itself contradicts it: `tests/corpus_excuses/` has a short script
# for each, which shows it and is run here. Each must really differ, by just this: an obsolete one fails the test too.
EXCUSES: dict[str, dict[str, tuple[Any, Any]]] = {"hop_cond": {"joint_nodes_before_passes": ([20], [21])}}
MOST_EXCUSES, MOST_LINES = 3, 20

# Facts of the reference that a run does not show, or that are not compared here, and why.
NOT_COMPARED = {
    "graphs, breaks, ops_per_graph, fx_ops_per_graph, explain_guards": "explain()'s own count, which differs from the compile's",
    "kernels": "Inductor's counter counts vector and tail parts; the product counts kernels",
    "numerics, scenario": "values of the native phase, which this test does not run",
    "symptom, thread, verdict_2_13_cpu, what_happens": "prose; test_questions.py holds the answers",
}
_PLACE = re.compile(r"([^\s('\"]+\.py)(?: line |:)(\d+)")
_LOGGED = "in user code at "
_PLACELESS = "Graph break: torch.compile cannot properly resume"


def differences(found: dict[str, Any], wanted: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    return {name: (found.get(name), wanted[name]) for name in NAMES if found.get(name) != wanted[name]}


def place(text: str) -> str:
    """A place of the reference's as the product names it: the snippet's own file, a library's from its package on."""
    found = _PLACE.search(text)
    assert found is not None, text
    file = found[1].rsplit("site-packages/", 1)[-1].removeprefix("<python>/")
    return f"{SNIPPET_FILE if file.startswith(('issues/', 'models/')) else file}:{found[2]}"


def own_place(row: dict[str, Any]) -> str:
    """The place that a row of the table of breaks is about: a library's where it broke there, else the snippet's line."""
    return row["library"] or f"{SNIPPET_FILE}:{row['line']}"


def fallbacks(result: dict[str, Any], wanted: list[dict[str, str]]) -> tuple[Any, Any] | None:
    """Each in its order: its kind, and its place."""
    found = result["summary"]["eager_fallback"]
    expected = [f"{one['kind']} {place(one['at'])}" for one in wanted]
    return None if found == expected else (found, expected)


def told(result: dict[str, Any], expected: dict[str, Any], whole_graph: bool) -> dict[str, tuple[Any, Any]]:
    """The facts of EXPECTED.json beside its figures: how they differ from what the run shows."""
    found: dict[str, tuple[Any, Any]] = {}
    errors = [failure[2] for failure in result["failures"]]
    text = expected["error_message"]
    if len(errors) != (text is not None) or (text is not None and text.split("\n", 1)[0] not in errors[0]):
        found["error_message"] = (errors, text)
    rows = [row for row in result["breaks"] if row["kind"] not in ("skipped", "recompile_limit")]
    shown = Counter[str]()
    for row in rows:
        shown[own_place(row)] += row["count"]
    logged = Counter(place(line) for line in expected["log_break_messages"] if _LOGGED in line)
    # What torch logs without a place: one that it cannot resume after.
    placeless = sum(line.startswith(_PLACELESS) for line in expected["log_break_messages"])
    if logged - shown or (shown - logged).total() != placeless:
        found["log_break_messages"] = (shown, (logged, placeless))
    # explain() breaks where a compile for one whole graph does not.
    reasons = [] if whole_graph else [reason.split("  @ ", 1) for reason in expected["break_reasons"]]
    given = {(row["reason"], own_place(row)) for row in rows}
    if missing := {(reason, place(at)) for reason, at in reasons} - given:
        found["break_reasons"] = (given, missing)
    return found


def check(folder: str, results: dict[str, Any]) -> None:
    lines, wrong, equal = [], [], 0
    for name, reference in REFERENCE[folder].items():
        result = results[name]
        excused = EXCUSES.get(name, {})
        if result["summary"] is None or result["outcome"]["type"] != "finished":
            lines.append(f"{name:32s} NO SUMMARY {result['exit']} {result['outcome']} {result['failures']}")
            wrong.append(name)
            continue
        found = differences(result["summary"], reference["summary"])
        fallback = fallbacks(result, reference["summary"]["eager_fallback"])
        if fallback is not None:
            found["eager_fallback"] = fallback
        if folder == "issues":
            whole_graph = '"fullgraph": True' in (CORPUS / folder / f"{name}.py").read_text(encoding="utf-8")
            found |= told(result, EXPECTED[name], whole_graph)
        ours = [failure for failure in result["failures"] if failure[1] == "stage.internal"]
        equal += not found
        lines.append(f"{name:32s} {result['seconds']:6.2f} s  {found or 'equal'} {excused or ''} {ours or ''}")
        if found != excused or ours:
            wrong.append(name)
    print("\n".join(lines))
    print(f"{equal} of {len(REFERENCE[folder])} equal; not compared:")
    print("\n".join(f"  {facts}: {why}" for facts, why in NOT_COMPARED.items()))
    assert not wrong


def test_every_figure_is_compared_or_said_not_to_be() -> None:
    """No figure and no fact of the corpus is passed over in silence."""
    silent = {name for facts in NOT_COMPARED for name in facts.split(", ")}
    cases = [case for folder in ("models", "issues") for case in REFERENCE[folder].values()]
    assert {name for case in cases for name in case["summary"]} == (set(NAMES) | {"eager_fallback"} | silent) & {
        name for case in cases for name in case["summary"]
    }
    told_facts = {"expected", "error_message", "log_break_messages", "break_reasons"}
    assert {name for case in EXPECTED.values() for name in case} <= told_facts | silent
    for name, case in EXPECTED.items():
        summary = REFERENCE["issues"][name]["summary"]
        assert {figure: summary[figure] for figure in case["expected"]} == case["expected"], name


def test_torch_contradicts_the_reference_where_a_difference_is_excused() -> None:
    scripts = sorted(f"{name}_{figure}" for name, case in EXCUSES.items() for figure in case)
    assert len(scripts) <= MOST_EXCUSES
    assert scripts == sorted(file.stem for file in FOLDER.glob("*.py"))
    for script in scripts:
        file = FOLDER / f"{script}.py"
        assert len(file.read_text(encoding="utf-8").splitlines()) <= MOST_LINES
        environment = os.environ | {"OMP_NUM_THREADS": "1", "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}
        subprocess.run([sys.executable, str(file)], cwd=ROOT, env=environment, check=True, timeout=240)


# A minute on two quiet cores; the limit is for busy ones.
@pytest.mark.timeout(900)
def test_models(tmp_path: Path) -> None:
    check("models", run_corpus("cpu", tmp_path, sorted((CORPUS / "models").glob("*.py")), seconds=850))


@pytest.mark.long
@pytest.mark.timeout(900)
def test_issues(tmp_path: Path) -> None:
    check("issues", run_corpus("cpu", tmp_path, sorted((CORPUS / "issues").glob("*.py")), seconds=850))
