"""Joint graphs of snippets traced again, one fork of a warmed parent a snippet.

`python -m tests.compiler.aot_steps_run OUT SNIPPET…` writes OUT, one JSON object: the snippet's name → one row for each of its
graphs, or null where the child did not finish."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

from compiler.events import StageName

LIMIT_SECONDS = 240  # of one child; a quiet machine needs 4 s


def rows(source: str) -> list[dict[str, Any]]:
    from tests.compiler.graph_cases import captured

    seen = captured(source, until=StageName.JOINT)
    failures = [body.error for body in seen.bodies("stage_failed") if body.cause.key == "stage.internal"]
    ledgers = {ledger.id: ledger for ledger in seen.artifacts(StageName.JOINT, "ledger")}
    found = []
    for payload in seen.artifacts(StageName.JOINT, "aot_steps"):
        again = next((step for step in payload.steps if step.name == "decomposed"), None)
        found.append(
            {
                "graph": payload.id,
                "skipped": payload.skipped and payload.skipped.key,
                "nodes": [step.nodes for step in payload.steps],
                "unknown": [step.unknown.params["error"] for step in payload.steps if step.unknown],
                "equal": again is not None and again.equal_to_real is True,
                "difference": again.difference if again is not None else "",
                "mutations": len(ledgers[payload.id].mutations) if payload.id in ledgers else None,
                "decompositions": len(ledgers[payload.id].decompositions) if payload.id in ledgers else None,
                "failures": failures,
            }
        )
    return found


def child(file: Path, out: Path) -> None:
    signal.alarm(LIMIT_SECONDS)
    try:
        out.write_text(json.dumps(rows(file.read_text(encoding="utf-8"))), encoding="utf-8")
    except BaseException:  # noqa: BLE001 - told on stderr, and by the row that is missing
        traceback.print_exc()
    finally:
        os._exit(0)


def main(out: Path, files: list[Path]) -> None:
    rows("import torch\nmodel = torch.nn.Linear(2, 2)\ninputs = (torch.ones(1, 2),)\n")
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            result = Path(folder) / f"{file.stem}.json"
            pid = os.fork()
            if pid == 0:
                child(file, result)
            os.waitpid(pid, 0)
            results[file.stem] = json.loads(result.read_text(encoding="utf-8")) if result.exists() else None
    out.write_text(json.dumps(results), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
