"""The whole corpus through the capture phase, against what torch's own tools measured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "tests" / "corpus"
REFERENCE: dict[str, Any] = json.loads((CORPUS / "reference.json").read_text(encoding="utf-8"))
NAMES = (
    "compiled_graphs", "break_messages", "joint_nodes", "joint_nodes_before_passes", "fw_nodes", "bw_nodes",
    "saved_tensors", "saved_bytes", "saved_activation_bytes", "recomputed_ops", "ir_nodes_pre_fusion",
    "scheduler_nodes_after_fusion", "distinct_cpp_kernels", "cpp_kernel_launches", "extern_calls", "recompiles",
    "unique_recompile_reasons", "leaf_guards", "error",
)  # fmt: skip

# What differs from the reference, and why. Each entry must really differ: an obsolete one fails the test too.
_ORDER = "the reference ran explain() and eager in the same process first, which makes one leaf guard less"
KNOWN: dict[str, dict[str, dict[str, str]]] = {
    "models": {
        "flex_attention": {"leaf_guards": _ORDER},
        "hop_cond": {
            "leaf_guards": _ORDER,
            "joint_nodes_before_passes": "20 as traced; the reference looked after torch had added a node to it",
        },
        "hop_while_loop": {"leaf_guards": _ORDER},
    },
    "issues": {
        "func_grad_inside_compile": {"leaf_guards": _ORDER},
        "lstm_allow_rnn": {"error": "the C++ wrapper raises a TypeError where the interpreted graph comes further"},
    },
}


def run_corpus(folder: str, out: Path) -> dict[str, Any]:
    files = sorted(map(str, (CORPUS / folder).glob("*.py")))
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.compiler.corpus_run", "cpu", str(out), *files]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, timeout=850)
    results: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return results


def differences(found: dict[str, Any], wanted: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    return {name: (found.get(name), wanted[name]) for name in NAMES if found.get(name) != wanted[name]}


def check(folder: str, results: dict[str, Any]) -> None:
    lines, wrong, equal = [], [], 0
    for name, reference in REFERENCE[folder].items():
        result = results[name]
        known = KNOWN[folder].get(name, {})
        if result["summary"] is None or result["outcome"]["type"] != "finished":
            lines.append(f"{name:32s} NO SUMMARY {result['exit']} {result['outcome']} {result['failures']}")
            wrong.append(name)
            continue
        found = differences(result["summary"], reference["summary"])
        fallbacks = [text.split(" ", 1)[0] for text in result["summary"]["eager_fallback"]]
        if fallbacks != [fallback["kind"] for fallback in reference["summary"]["eager_fallback"]]:
            found["eager_fallback"] = (fallbacks, reference["summary"]["eager_fallback"])
        ours = [failure for failure in result["failures"] if failure[1] == "stage.internal"]
        equal += not found
        lines.append(f"{name:32s} {result['seconds']:6.2f} s  {found or 'equal'} {known} {ours or ''}")
        if set(found) != set(known) or ours:
            wrong.append(name)
    print("\n".join(lines))
    print(f"{equal} of {len(REFERENCE[folder])} equal")
    assert not wrong
    assert equal >= len(REFERENCE[folder]) - 3


# A minute on two quiet cores; the limit is for busy ones.
@pytest.mark.timeout(900)
def test_models(tmp_path: Path) -> None:
    check("models", run_corpus("models", tmp_path / "models.json"))


@pytest.mark.long
@pytest.mark.timeout(900)
def test_issues(tmp_path: Path) -> None:
    check("issues", run_corpus("issues", tmp_path / "issues.json"))
