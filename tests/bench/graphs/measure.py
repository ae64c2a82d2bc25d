"""Views of each graph in turn by each tool, and the tables of them."""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from compiler.ir.graph import GraphPayload
from tests.bench.graphs import shapes, tools
from tests.bench.graphs.page import NeverError, Seen, look
from tests.bench.graphs.tools import Tool
from tests.bench.ratios import HEADER, ratio, spread
from tests.browser.conftest import FLAGS, chromium

RIVALS = "AOTSCOPE_BENCH_RIVALS"
LIMIT = "AOTSCOPE_BENCH_VIEW_SECONDS"
KEEP = "AOTSCOPE_BENCH_FOLDER"
ABSENT = (
    f"Netron and Model Explorer were not measured: {RIVALS} does not name a Python that has them "
    "(`python -m venv V && V/bin/pip install netron==9.3.3 ai-edge-model-explorer==0.1.34 onnx`, then `V/bin/python`)."
)
# Model Explorer draws with WebGL: on a machine without a GPU it needs a software one, as its users' browsers have.
BROWSER_FLAGS = [*FLAGS, "--enable-unsafe-swiftshader"]
MIB = 1 << 20

FIGURES: tuple[tuple[str, Callable[[Seen], float]], ...] = (
    ("usable, s", lambda seen: seen.usable_s),
    ("frame while dragged, ms", lambda seen: seen.frame_ms),
    ("the slowest of 20, ms", lambda seen: seen.slow_frame_ms),
    ("main thread a frame, ms", lambda seen: seen.busy_ms),
    ("loaded, MiB", lambda seen: seen.loaded_bytes / MIB),
    ("page's heap, MiB", lambda seen: seen.page_heap_bytes / MIB),
    ("workers' heap, MiB", lambda seen: seen.worker_heap_bytes / MIB),
)


def measure(pairs: int) -> str:
    """The tables of both graphs. Where the other tools are is said by the environment."""
    limit_s = float(os.environ.get(LIMIT, "120"))
    rivals = os.environ.get(RIVALS, "")
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        kept = Path(os.environ.get(KEEP, scratch))
        browser = playwright.chromium.launch(executable_path=chromium(), args=BROWSER_FLAGS)
        parts = [] if rivals else [ABSENT]
        for name, payload in (("32-layer decoder", shapes.llama(kept)), ("synthetic", shapes.synthetic())):
            folder = Path(scratch) / name
            folder.mkdir()
            parts.append(_graph(browser, name, payload, folder, rivals, pairs, limit_s))
        browser.close()
    return "\n\n".join(parts)


def _graph(
    browser: Browser, name: str, payload: GraphPayload, folder: Path, rivals: str, pairs: int, limit_s: float
) -> str:
    with ExitStack() as served:
        shown = [served.enter_context(tools.ours(payload, folder))]
        if rivals:
            shown.append(served.enter_context(tools.explorer(payload, folder, rivals)))
            shown.append(served.enter_context(tools.netron(payload, folder, rivals)))
        seen, never = _rounds(browser, shown, pairs, limit_s)
    title = f"### {name}: {len(payload.nodes.name)} nodes, {len(payload.edges.source)} edges"
    others = [tool for tool in shown[1:] if tool.name in seen]
    parts = [title, _figures(seen)]
    if others:
        rows = [_ratio(label, figure, tool.name, seen) for tool in others for label, figure in FIGURES]
        parts.append("\n".join([HEADER, *filter(None, rows)]))
    parts += [f"{tool.name} did not show it within {limit_s:g} s; tried once." for tool in shown if tool.name in never]
    return "\n\n".join(parts)


def _rounds(
    browser: Browser, shown: Sequence[Tool], pairs: int, limit_s: float
) -> tuple[dict[str, list[Seen]], set[str]]:
    """Each tool once a round, in turn from the first and from the last, so that a drift of the machine falls on all."""
    seen: dict[str, list[Seen]] = {}
    never: set[str] = set()
    for round_ in range(pairs):
        for tool in shown if round_ % 2 == 0 else reversed(shown):
            if tool.name in never:
                continue
            try:
                view = look(browser, tool, limit_s)
            except NeverError:
                if tool.name in seen:
                    raise
                never.add(tool.name)
            else:
                seen.setdefault(tool.name, []).append(view)
    return seen, never


def _figures(seen: dict[str, list[Seen]]) -> str:
    """Medians, and from the least to the greatest."""
    views = len(next(iter(seen.values())))
    rows = [f"| median (least – greatest) of {views} | {' | '.join(seen)} |", "|---" * (len(seen) + 1) + "|"]
    for label, figure in FIGURES:
        rows.append(f"| {label} | {' | '.join(spread([figure(one) for one in views]) for views in seen.values())} |")
    return "\n".join(rows)


def _ratio(label: str, figure: Callable[[Seen], float], other: str, seen: dict[str, list[Seen]]) -> str | None:
    """Ours over the other's, round by round; none where the other has nothing of it."""
    base = [figure(one) for one in seen[other]]
    if not statistics.median(base):
        return None
    return ratio(f"aotscope / {other}: {label}", base, [figure(one) for one in seen["aotscope"]], 1.0).row()
