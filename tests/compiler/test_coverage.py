"""How much of what torch does each stage accounts for, over the corpus: one table, and what it must reach.

AOTAutograd's joint graphs of the public issues are in test_aot_steps_corpus.py. With $AOTSCOPE_TEST_RESULTS the long
test goes on where it was cut off (`kept.py`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.compiler import kept

ROOT = Path(__file__).parents[2]
MODELS = ROOT / "tests" / "corpus" / "models"
FEW = ("mlp", "break_try_except", "hop_while_loop")
Rows = dict[str, dict[str, Any]]

# Models whose predicted peak is not the measured one, with the caveat that says why on the page. Each must really differ.
PEAK_DIFFERS = {"flex_attention": "memory.kernel_allocates"}


def measure(names: list[str], results: Path, limit_seconds: float) -> Rows:
    files = [MODELS / f"{name}.py" for name in names]
    return kept.run("tests.compiler.coverage_run", results, files, limit_seconds)


def share(part: int, whole: int) -> str:
    return f"{part}/{whole}" + (f" {100 * part / whole:.1f} %" if whole else "")


def table(rows: Rows) -> str:
    lines = [f"{'model':26s} {'joint':>6s} {'forward: node line of':>22s} {'backward: node line of':>23s}"]
    lines[0] += f" {'twins+sums of':>14s} {'pairs':>9s} {'saved':>17s} {'peak':>17s} {'plan':>17s}"
    for name, row in rows.items():
        halves = [f"{row['statements'][half][k]}" for half in ("forward", "backward") for k in ("node", "line", "all")]
        back, (pairs, differing) = row["backward"], row["pairs"]
        nodes = back["twins"] + back["sums"] + len(back["others"])
        saved, peaks, beyond = row["saved"] or {}, row["peaks"], row["beyond_plan"] or {}
        cells = [
            f"{name:26s}",
            f"{sum(row['joint'])}/{len(row['joint'])}".rjust(6),
            " ".join(halves[:3]).rjust(22),
            " ".join(halves[3:]).rjust(23),
            f"{back['twins']}+{back['sums']}/{nodes}".rjust(14),
            f"{pairs - len(differing)}/{pairs}".rjust(9),
            f"{saved.get('partition_bytes')}={saved.get('kept_tensor_bytes')}".rjust(17),
            f"{peaks.get('dry_run')}~{peaks.get('compiled')}".rjust(17),
            f"{peaks.get('plan')}~{beyond.get('planned_peak')}".rjust(17),
        ]
        lines.append(" ".join(cells))
    return "\n".join(lines)


def check(rows: Rows) -> None:
    """What holds for every model by itself."""
    print()
    print(table(rows))
    for name, row in rows.items():
        assert row["failed"] == [], name
        assert row["backward"]["others"] == [], name
        assert row["pairs"][1] == [], name
        saved, measured = row["saved"], row["saved_measured"]
        if saved is not None and saved["partition_bytes"] is not None:
            assert saved["partition_bytes"] == saved["kept_tensor_bytes"] == measured["kept_tensor_bytes"], name
            assert saved["kept_storages_bytes"] == measured["kept_storages_bytes"], name
        for half in row["statements"].values():
            assert half["line"] + sum(half["library"].values()) + len(half["unlinked"]) == half["all"], name
            assert all(statement["cause"]["key"].startswith("codegen.unlinked.") for statement in half["unlinked"]), (
                name
            )
        assert (name in PEAK_DIFFERS) == (not close(row["peaks"])), name
        if name in PEAK_DIFFERS:
            assert PEAK_DIFFERS[name] in row["caveats"], name
        plan, dry_run, beyond = row["peaks"].get("plan"), row["peaks"].get("dry_run"), row["beyond_plan"]
        if beyond is not None and not beyond["outside"] and not beyond["bodies"]:
            assert plan == beyond["planned_peak"], name
        assert plan in (None, dry_run) or any(beyond[why] for why in ("workspace", "outside", "bodies")), name


def close(peaks: dict[str, int | None]) -> bool:
    """Whether the predicted peak is within 1 % of the measured one, where there are both."""
    predicted, measured = peaks.get("dry_run"), peaks["compiled"]
    return predicted is None or measured is None or abs(predicted - measured) <= 0.01 * measured


@pytest.mark.timeout(300)  # twenty seconds on two quiet cores
def test_few_models(tmp_path: Path) -> None:
    """Among them two whose dry run must decide as the real step does: which branch, and how often."""
    rows = measure(list(FEW), tmp_path, 280)
    check(rows)
    assert {name: row["peaks"]["dry_run"] for name, row in rows.items()} == {
        "mlp": 35_360,
        "break_try_except": 576,
        "hop_while_loop": 65,
    }


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_corpus(tmp_path: Path) -> None:
    names = sorted(file.stem for file in MODELS.glob("*.py"))
    rows = measure(names, kept.folder("coverage", tmp_path), 3580)
    check(rows)
    joint = [equal for row in rows.values() for equal in row["joint"]]
    print("joint graphs equal to AOTAutograd's own:", share(sum(joint), len(joint)))
    assert len(joint) - sum(joint) <= 3
    for half, of_the_model in (("forward", 0.85), ("backward", 0.97)):
        found = [row["statements"][half] for row in rows.values()]
        total, nodes, lines = (sum(one[key] for one in found) for key in ("all", "node", "line"))
        library = sum(sum(one["library"].values()) for one in found)
        print(
            f"statements, {half}: with a node {share(nodes, total)}, a line {share(lines, total)}, a library's {library}"
        )
        for name, row in rows.items():
            for statement in row["statements"][half]["unlinked"]:
                print("  unlinked:", name, statement)
        assert nodes >= 0.98 * total
        assert lines >= of_the_model * total
    twins, sums = (sum(row["backward"][key] for row in rows.values()) for key in ("twins", "sums"))
    print(f"backward nodes: {twins} with a twin and its grad_fn, {sums} accumulations, none else")
    print("pairs asked about as Inductor decided:", sum(row["pairs"][0] for row in rows.values()))
    saving = [row for row in rows.values() if row["saved"] and row["saved"]["partition_bytes"] is not None]
    print(f"saved bytes as held, in {len(saving)} of {len(saving)} models that save")
    both = [
        row["peaks"] for row in rows.values() if None not in (row["peaks"].get("dry_run"), row["peaks"]["compiled"])
    ]
    print("peak as predicted:", share(sum(map(close, both)), len(both)))
    assert sum(map(close, both)) >= 0.95 * len(both)
    plans = [row for row in rows.values() if row["beyond_plan"]]
    same = sum(row["peaks"]["plan"] == row["peaks"]["dry_run"] for row in plans)
    known = sum(row["peaks"]["plan"] == row["beyond_plan"]["planned_peak"] for row in plans)
    print(f"plan and dry run: {same} of {len(plans)} equal, {known} of what a plan can know")
