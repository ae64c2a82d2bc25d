"""Compiles the corpus's models for a GPU that is there and for the virtual one of its kind, and compares what came of it.

`python -m tests.gpu [OUT] [--arm both|virtual|real] [--target sm_90] [--minutes 8] [--at-once N] [--models a,b]`

Needs this repository, Python, torch with Triton, and a C++ compiler; nothing else. Prints the table, and writes `table.md`,
`real.json` and `virtual.json` to OUT. Each arm has processes of its own, and no more than its share of the time; a model that
needs more is left out, and said to be. Exit code: 0 when at least `LEAST` models were compared (with one arm: compiled), else 1.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.gpu import compared

ROOT = Path(__file__).parents[2]
MODELS = ROOT / "tests" / "corpus" / "models"
LEAST = 20
# The clock of the processes' own starts and ends, and of a slow model's end.
_SPARE_SECONDS = 30.0
_EACH_SECONDS = 75.0
# Those that ask for a value, last: on a virtual GPU there is none.
_LAST = ("break_data_dependent_if", "moe_sparse_loop", "sparse_coo_mm", "hop_while_loop", "flex_attention")


def chosen(names: str) -> list[Path]:
    """Those that were asked for; else all, the quick and sure ones first."""
    if names:
        return [MODELS / f"{name}.py" for name in names.split(",")]
    return sorted(MODELS.glob("*.py"), key=lambda file: (file.stem in _LAST, file.stem))


def machines_target() -> str:
    """`sm_90` on a machine with such a GPU, "" where there is none. In a process of its own: it touches the device."""
    ask = "import torch; print('sm_%d%d' % torch.cuda.get_device_capability() if torch.cuda.is_available() else '')"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def run_arm(
    arm: str, target: str, files: list[Path], seconds: float, at_once: int, paths: tuple[str, ...] = ()
) -> dict[str, Any]:
    """An arm in a process of its own. `paths` come before the repository on its module path."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        each = min(_EACH_SECONDS, seconds)
        command = [sys.executable, "-W", "ignore", "-m", "tests.gpu.arm", arm, target, str(out)]
        command += [str(seconds), str(each), str(at_once), *map(str, files)]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join((*paths, str(ROOT))), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            command, cwd=ROOT, env=environment, timeout=seconds + _SPARE_SECONDS, check=False, text=True, stderr=-1
        )
        if done.returncode != 0 or not out.exists():
            raise SystemExit(f"the {arm} arm ended with {done.returncode}:\n{done.stderr[-3000:]}")
        found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
        return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.gpu", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", nargs="?", type=Path)
    parser.add_argument("--arm", choices=("both", "virtual", "real"), default="both")
    parser.add_argument("--target", default="")
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--at-once", type=int, default=max(1, min(8, (os.cpu_count() or 2) // 2)))
    parser.add_argument("--models", default="")
    asked = parser.parse_args()
    began = time.monotonic()
    here = "" if asked.arm == "virtual" else machines_target()
    if asked.arm != "virtual" and not here:
        raise SystemExit(
            "torch sees no CUDA device here: nothing to compare with. `--arm virtual` runs the other half."
        )
    target = asked.target or here or "sm_90"
    files = chosen(asked.models)
    arms = ["real", "virtual"] if asked.arm == "both" else [asked.arm]
    found: dict[str, dict[str, Any]] = {}
    for place, arm in enumerate(arms):
        left = asked.minutes * 60 - (time.monotonic() - began)
        found[arm] = run_arm(arm, target, files, max(30.0, left / (len(arms) - place) - _SPARE_SECONDS), asked.at_once)
        if asked.out:
            asked.out.mkdir(parents=True, exist_ok=True)
            (asked.out / f"{arm}.json").write_text(json.dumps(found[arm]), encoding="utf-8")
    if asked.arm == "both":
        text = compared.markdown(found["real"], found["virtual"])
        count = len(compared.with_kernels(compared.rows(found["real"], found["virtual"])))
    else:
        only = found[arms[0]]
        text = compared.virtual_markdown(only)
        count = sum(not one.get("error") and bool(one.get("kernels")) for one in only["models"].values())
    if asked.out:
        (asked.out / "table.md").write_text(text, encoding="utf-8")
    print(text)
    print(f"{count} models, {time.monotonic() - began:.0f} s")
    return 0 if count >= min(LEAST, len(files)) else 1


if __name__ == "__main__":
    sys.exit(main())
