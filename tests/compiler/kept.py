"""Cases, each in a fork of one warmed parent, and what each came to in a folder: a run that was cut off goes on where it stopped.

A test's folder is its own, or one that lasts in $AOTSCOPE_TEST_RESULTS. What is there counts only as long as the case, the
compiler package, these programs and torch are the same.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


@cache
def _programs() -> bytes:
    ours = [file for file in (ROOT / "compiler").rglob("*") if file.suffix in (".py", ".cpp", ".json")]
    ours += [file for file in Path(__file__).parent.glob("*.py") if not file.name.startswith("test_")]
    said = hashlib.sha256(version("torch").encode())
    for file in sorted(ours):
        said.update(file.name.encode() + file.read_bytes())
    return said.digest()


def _of(case: Path) -> str:
    return hashlib.sha256(_programs() + case.read_bytes()).hexdigest()


def folder(name: str, otherwise: Path) -> Path:
    """Where the results of the test `name` are."""
    lasting = os.environ.get("AOTSCOPE_TEST_RESULTS")
    found = Path(lasting) / name if lasting else otherwise / name
    found.mkdir(parents=True, exist_ok=True)
    return found


def read(results: Path, case: Path) -> Any:
    """What a case came to; None when it has not been run as things are."""
    file = results / f"{case.stem}.json"
    kept = json.loads(file.read_text(encoding="utf-8")) if file.exists() else None
    return kept["row"] if kept and kept["of"] == _of(case) else None


def write(results: Path, case: Path, row: Any) -> None:
    file = results / f"{case.stem}.json"
    unfinished = file.with_suffix(".part")
    unfinished.write_text(json.dumps({"of": _of(case), "row": row}), encoding="utf-8")
    unfinished.rename(file)


def run(program: str, results: Path, cases: list[Path], limit_seconds: float) -> dict[str, Any]:
    """`python -m PROGRAM RESULTS CASE…`, which leaves a result for each case; the results, for tests."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", program, str(results), *map(str, cases)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, check=False, timeout=limit_seconds, stderr=subprocess.PIPE, text=True
    )
    rows = {case.stem: read(results, case) for case in cases}
    unfinished = [name for name, row in rows.items() if row is None]
    assert (done.returncode, unfinished) == (0, []), done.stderr[-3000:]
    return rows


def each(results: Path, cases: list[Path], work: Callable[[Path], Any]) -> None:
    """The body of such a program: every case that has no result yet is worked on, and its result kept unless it is None."""
    for case in cases:
        if read(results, case) is None and (row := work(case)) is not None:
            write(results, case, row)


def in_fork(work: Callable[[], Any], limit_seconds: int) -> Any:
    """What `work` gives, done in a fork; None where that did not finish, with the reason on stderr."""
    with tempfile.NamedTemporaryFile() as file:
        child = os.fork()
        if child == 0:
            signal.alarm(limit_seconds)
            try:
                Path(file.name).write_text(json.dumps(work()), encoding="utf-8")
            except BaseException:  # noqa: BLE001 - told on stderr, and by the result that is missing
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            print(f"a child ended with {os.waitstatus_to_exitcode(status)}", file=sys.stderr, flush=True)
        text = Path(file.name).read_text(encoding="utf-8")
        return json.loads(text) if text else None
