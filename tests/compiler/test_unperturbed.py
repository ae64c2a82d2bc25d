"""Nothing perturbed: torch's own trace of a snippet is the same with every stage's hooks in place and with none.

Compared are all records of all compiles: captured graphs, guards, generated code, restarts, recompiles. See `traces.comparable`
for what is left out, and `unperturbed_run` for how both arms are run. With $AOTSCOPE_TEST_RESULTS the long test goes on where it
was cut off (`kept.py`).
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.compiler import kept
from tests.compiler.traces import comparable, read

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "tests" / "corpus"
FEW = (
    "models/mlp",
    "models/dynamic_batch",
    "models/break_logging",
    "issues/boolean_mask_captured",
    "issues/autograd_function_setup_context",
    "models/train_step_manual_sgd",
)


def arms(snippets: list[Path], results: Path, limit_seconds: float) -> dict[str, Any]:
    return kept.run("tests.compiler.unperturbed_run", results, snippets, limit_seconds)


def differences(found: dict[str, Any]) -> list[str]:
    """Prints the table; a line for each snippet whose arms differ."""
    faults = []
    print(f"{'snippet':36} {'arm':8} {'records':>8} {'compiles':>8} {'differ':>7}")
    for name, one in found.items():
        plain = Counter(comparable(read(one["plain"]["trace"])))
        for arm in one:
            rows = Counter(comparable(read(one[arm]["trace"])))
            differ = sorted(((plain - rows) + (rows - plain)).elements())
            compiles = len({row[0] for row in rows})
            print(f"{name:36} {arm:8} {rows.total():8} {compiles:8} {len(differ):7}")
            if differ or not rows or one[arm]["error"] != one["plain"]["error"]:
                faults.append(f"{name} {arm} {one[arm]['error']}: {[row[:3] for row in differ]}")
    return faults


def test_a_few(tmp_path: Path) -> None:
    assert differences(arms([CORPUS / f"{name}.py" for name in FEW], tmp_path, 280)) == []


@pytest.mark.long
@pytest.mark.timeout(3700)
def test_the_whole_corpus(tmp_path: Path) -> None:
    files = sorted((CORPUS / "models").glob("*.py")) + sorted((CORPUS / "issues").glob("*.py"))
    found = arms(files, kept.folder("unperturbed", tmp_path), 3600)
    assert len(found) == len(files) > 80
    assert differences(found) == []


def test_a_difference_is_seen() -> None:
    log = 'V1201 01:00:00.000000 1 torch/x.py:1] {"aot_joint_graph": {}, "frame_id": 0, "frame_compile_id": 0, "attempt": 0}'
    one = {"trace": f"{log}\n\tgraph a\n", "error": ""}
    other = {"trace": f"{log}\n\tgraph b\n", "error": ""}
    assert differences({"x": {"plain": one, "watched": one}}) == []
    assert len(differences({"x": {"plain": one, "watched": other}})) == 1
