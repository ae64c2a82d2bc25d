"""Run the benchmarks and print their tables: `python -m tests.bench [overhead] [cold] [first] [start] [headers] [gpu]
[wire] [serving] [graphs] [lighthouse] [--pairs N] [--write]`.

`cold` takes a quarter of an hour over the corpus; `AOTSCOPE_BENCH_EVERY=3` takes every third model. `graphs` needs a
Chromium, and for the tools beside ours a Python that has them, named in `AOTSCOPE_BENCH_RIVALS`."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

from server.sandbox.limits import parent_environment
from tests.bench import cold_start, first_graph, gpu, headers, lighthouse, overhead, serving, start, wire
from tests.bench.graphs import measure as graphs
from tests.bench.ratios import HEADER, spread

RESULTS = Path(__file__).parent / "RESULTS.md"
ALL = ("overhead", "cold", "first", "start", "headers", "gpu", "wire", "serving", "graphs", "lighthouse")


def _overhead(pairs: int) -> str:
    return "\n".join([HEADER, *(row.row() for row in overhead.measure(pairs))])


def _cold(_pairs: int) -> str:
    every = int(os.environ.get("AOTSCOPE_BENCH_EVERY", "1"))
    names = sorted(path.stem for path in overhead.MODELS.glob("*.py"))[::every]
    rows = cold_start.measure(names)
    ratios = [ours / plain for _, ours, plain in rows]
    worst = max(rows, key=lambda row: row[1] / row[2])
    lines = [
        f"Over {len(rows)} models of the corpus: median ratio {statistics.median(ratios):.3f} (goal ≤ 0.05), "
        f"worst {max(ratios):.3f} ({worst[0]}; goal ≤ 0.15). One sample a model.",
        "",
        "| model | every stage shown, warm, s | plain script, cold, s | ratio |",
        "|---|---|---|---|",
    ]
    lines += [f"| {name} | {ours:.2f} | {plain:.1f} | {ours / plain:.3f} |" for name, ours, plain in rows]
    measured = {name for name, _, _ in rows}
    if missing := [name for name in names if name not in measured]:
        lines += ["", f"Left out, because one of the two never came to an end: {', '.join(missing)}."]
    return "\n".join(lines)


def _first(pairs: int) -> str:
    row, delays = first_graph.measure(pairs)
    return "\n".join([HEADER, row.row(), "", f"Fixed delay, ms, median and range of {len(delays)}: {spread(delays)}."])


def _start(pairs: int) -> str:
    rows = start.measure(pairs)
    return "\n".join(
        [HEADER, *(row.row() for row, _, _ in rows), "", *(f"Milliseconds, {said}." for _, said, _ in rows)]
    )


def _headers(pairs: int) -> str:
    return "\n".join([HEADER, headers.measure(min(pairs, 6)).row()])


def _graphs(pairs: int) -> str:
    return graphs.measure(min(pairs, 6))


def _lighthouse(pairs: int) -> str:
    return lighthouse.measure(min(pairs, 5))


def _gpu(pairs: int) -> str:
    rows, said = gpu.measure(pairs)
    return "\n".join([HEADER, *(row.row() for row in rows), "", said])


def _wire(_pairs: int) -> str:
    lines = [
        "| model | graphs | `print_readable()`, KiB | raw / that (goal ≤ 2) | compressed / that (goal ≤ 0.3) |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {row.model} | {row.graphs} | {row.text / 1024:.0f} | {row.raw / row.text:.2f} "
        f"| {row.compressed / row.text:.2f} |"
        for row in wire.measure(overhead.NAMES)
    ]
    return "\n".join(lines)


def _serving(pairs: int) -> str:
    rows = serving.measure(min(pairs, 5))
    seconds = [f"{row.name}, seconds of the second and of the first: {spread(b)}, {spread(a)}." for row, b, a in rows]
    return "\n".join([HEADER, *(row.row() for row, _, _ in rows), "", *seconds])


SECTIONS = {
    "overhead": ("Compile with every stage captured / with none", _overhead),
    "cold": ("Submit → every stage up to generated code, warm worker / the plain script, cold", _cold),
    "first": ("Submit → first graph at the client / raw Dynamo has it, warm", _first),
    "start": ("Start of a run → its snippet's first line, warm fork server / a bare fork of such a process", _start),
    "gpu": ("A GPU that is not there: up to Triton's source / the CPU's; one kernel's PTX / two seconds, warm", _gpu),
    "wire": ("Bytes of a run's graphs on the wire / bytes of `print_readable()` of the same graphs", _wire),
    "serving": ("Replay, viewers, and an openable report", _serving),
    "graphs": ("First view of a large graph, beside Model Explorer and Netron", _graphs),
    "lighthouse": ("Lighthouse", _lighthouse),
    "headers": ("A cold compile of one kernel, precompiled headers read / none", _headers),
}


def _section(name: str, pairs: int) -> str:
    """A section in a process of its own: each warms torch up for itself."""
    command = [sys.executable, "-m", "tests.bench", name, "--pairs", str(pairs), "--section"]
    environment = parent_environment(whole=True)
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*ALL, []], default=[])
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--section", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    names = arguments.names or list(ALL)
    if arguments.section:
        print(json.dumps(SECTIONS[names[0]][1](arguments.pairs)))
        return
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
    parts = [
        "# Benchmarks",
        f"Measured {datetime.date.today()} at commit {commit.stdout.strip()}, {platform.machine()}, "
        f"{len(os.sched_getaffinity(0))} cores, Python {platform.python_version()}. "
        "Ratios of CPU time or wall time are paired in ABBA order; absolute seconds don't carry over to another machine. "
        "Made by `python -m tests.bench --write`.",
    ]
    for name in names:
        parts += [f"## {SECTIONS[name][0]}", _section(name, arguments.pairs)]
    text = "\n\n".join(parts) + "\n"
    print(text)
    if arguments.write:
        RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
