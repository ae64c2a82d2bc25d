"""Lighthouse's scores of the page: the first one, and that of a finished run; as on a desk and as on a phone.

Lighthouse itself is not installed: `AOTSCOPE_LIGHTHOUSE` names its program (`npm install lighthouse` in a folder of its own,
then `node_modules/.bin/lighthouse` there). Its phone is a simulated one: a slow network, and a processor at a quarter of this
one's speed."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tests.bench.graphs.tools import served
from tests.browser.conftest import chromium

PROGRAM = "AOTSCOPE_LIGHTHOUSE"
ABSENT = f"Not measured: {PROGRAM} does not name Lighthouse's program (see `tests/bench/lighthouse.py`)."
PAGES = {"the first page": "/", "a run's page": "/r/example-gpt-stack"}
PRESETS = {"desktop": ["--preset=desktop"], "mobile": []}
GOAL = 95
FIGURES = {
    "first paint": "first-contentful-paint",
    "largest paint": "largest-contentful-paint",
    "blocked": "total-blocking-time",
    "usable": "interactive",
}


def measure(times: int) -> str:
    """A row for each page and preset: medians of so many visits, with the range of the performance score."""
    program = os.environ.get(PROGRAM, "")
    if not program:
        return ABSENT
    scores = f"performance (goal ≥ {GOAL}) | accessibility (goal ≥ {GOAL})"
    rows = [f"| page | as on | {scores} | {', ms | '.join(FIGURES)}, ms | layout shift |", "|---" * 9 + "|"]
    with tempfile.TemporaryDirectory() as scratch, served(Path(scratch) / "data") as address:
        for page, path in PAGES.items():
            for preset, flags in PRESETS.items():
                seen = [_visit(program, address + path, flags, Path(scratch) / "report.json") for _ in range(times)]
                rows.append(f"| {page} | {preset} | {' | '.join(_row(seen))} |")
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    how = f"Lighthouse {version}; medians of {times} visits, performance also from the least to the greatest."
    return "\n".join([*rows, "", how])


def _visit(program: str, address: str, flags: list[str], report: Path) -> dict[str, Any]:
    subprocess.run(
        [
            program,
            address,
            *flags,
            "--quiet",
            "--only-categories=performance,accessibility",
            "--chrome-flags=--headless=new --no-sandbox",
            "--output=json",
            f"--output-path={report}",
        ],
        check=True,
        env=os.environ | {"CHROME_PATH": chromium()},
    )
    found: dict[str, Any] = json.loads(report.read_text())
    return found


def _row(seen: list[dict[str, Any]]) -> list[str]:
    fast = [100 * one["categories"]["performance"]["score"] for one in seen]
    open_to_all = statistics.median(100 * one["categories"]["accessibility"]["score"] for one in seen)

    def figure(audit: str) -> float:
        return statistics.median(one["audits"][audit]["numericValue"] for one in seen)

    return [
        f"{statistics.median(fast):.0f} ({min(fast):.0f} – {max(fast):.0f})",
        f"{open_to_all:.0f}",
        *(f"{figure(audit):.0f}" for audit in FIGURES.values()),
        f"{figure('cumulative-layout-shift'):.3f}",
    ]
