"""How much of what torch does each stage accounts for: one row a snippet, both phases, one process at a time.

`python -m tests.compiler.coverage_run RESULTS SNIPPET…` keeps a row for each snippet in the folder RESULTS; none where a phase
did not finish (`kept.py`).
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.compiler import kept
from tests.compiler.phases_run import perform

LIMIT_SECONDS = 240  # of one child; a quiet machine needs 5 s
Row = dict[str, Any]


def ask_first() -> list[tuple[str, str, object, object]]:
    """From now on every pair that Inductor is about to decide is asked about by our own function first, which must leave no
    trace. What differs is in the result: the pair, Inductor's answer and ours; and a pair of empty names for each that agrees."""
    from torch._inductor.scheduler import Scheduler

    from compiler.torch_compat import scheduler
    from compiler.torch_compat.hooks import replaced

    found: list[tuple[str, str, object, object]] = []
    ours: dict[tuple[str, str], scheduler.Answer] = {}
    original = scheduler.around_fusion

    def asking(can_fuse: Callable[..., Any]) -> Callable[..., Any]:
        def both(self: Any, first: Any, second: Any, *args: Any, **kwargs: Any) -> Any:
            if first is not second:
                ours[first.get_name(), second.get_name()] = scheduler.ask(self, first, second)
            return can_fuse(self, first, second, *args, **kwargs)

        return both

    def compare(fusing: scheduler.Fusing) -> None:
        for names, theirs in fusing.answers.items():
            mine = ours[names]
            allowed = mine.explanation is not None and mine.explanation.key == "fusion.not_considered"
            said = (True, "") if allowed else (False, mine.reason)
            same = said == (theirs.fused, theirs.reason) or (
                mine.explanation is not None and not allowed and not theirs.fused
            )
            found.append(("", "", None, None) if same else (*names, (theirs.fused, theirs.reason), said))
        ours.clear()

    @contextmanager
    def around_fusion(before: Any, after: Any, started: Any = None) -> Iterator[None]:
        def compared(fusing: scheduler.Fusing) -> None:
            compare(fusing)
            after(fusing)

        with original(before, compared if started else after, started):
            if started is None:
                yield
            else:
                with replaced(Scheduler, "can_fuse", asking):
                    yield

    scheduler.around_fusion = around_fusion
    return found


def row(capture: Row, native: Row, pairs: list[Any]) -> Row:
    made = capture["artifacts"]

    def of(kind: str, stage: str | None = None, name: str | None = None) -> list[Row]:
        return [
            one
            for one in made
            if one["artifact"]["kind"] == kind and stage in (None, one["stage"]) and name in (None, one["name"])
        ]

    steps = [next((s for s in one["payload"]["steps"] if s["name"] == "decomposed"), None) for one in of("aot_steps")]
    told = [one["payload"] for one in of("memory")]
    measured = [one["payload"] for one in native["artifacts"] if one["artifact"]["kind"] == "memory"]
    dry_runs = [one["payload"] for one in of("timeline", name="dry_run")]
    return {
        "joint": [bool(step and step["equal_to_real"]) for step in steps],
        "statements": {half: _statements([one for one in of("kernels") if half == _half(one)]) for half in HALVES},
        "backward": _backward([one["payload"] for one in of("graph", "joint", "joint")]),
        "pairs": [len(pairs), [pair for pair in pairs if pair[0]]],
        "saved": told[0]["saved"] if told else None,
        "saved_measured": measured[0]["saved"] if measured else None,
        "peaks": (told[0]["peaks"] if told else {})
        | {"compiled": measured[0]["peaks"].get("compiled") if measured else None},
        "beyond_plan": told[0]["beyond_plan"] if told else None,
        "caveats": [caveat["key"] for one in dry_runs for caveat in one["caveats"]],
        "failed": [
            event
            for event in capture["events"] + native["events"]
            if event["type"] == "stage_failed" and event["cause"]["key"].startswith(OURS)
        ],
    }


OURS = ("stage.internal", "aside.")  # a failure of ours; a model may fail to compile by itself
HALVES = ("forward", "backward")


def _half(made: Row) -> str:
    return "backward" if made["graph"] == "backward" else "forward"


def _statements(made: list[Row]) -> Row:
    payloads = [one["payload"] for one in made]
    return {
        "all": sum(one["statements"] for one in payloads),
        "node": sum(one["statements_with_node"] for one in payloads),
        "line": sum(one["statements_with_line"] for one in payloads),
        "library": dict(sum((Counter(one["library"]) for one in payloads), Counter())),
        "unlinked": [statement for one in payloads for statement in one["unlinked"]],
    }


def _backward(graphs: list[Row]) -> Row:
    """Backward nodes of joint graphs: with a twin and the name of its autograd node, named accumulations, and the others."""
    found: Row = {"twins": 0, "sums": 0, "others": []}
    for graph in graphs:
        words, nodes = graph["strings"], graph["nodes"]
        columns = zip(
            *(nodes[column] for column in ("name", "op", "phase", "twin", "grad_fn", "roles", "module")), strict=True
        )
        for name, op, phase, twin, grad_fn, roles, _ in columns:
            if words[phase] != "backward" or not words[op].startswith("call"):
                continue
            if twin != -1 and words[grad_fn]:
                found["twins"] += 1
            elif "accumulation" in words[roles].split():
                found["sums"] += 1
            else:
                found["others"].append(words[name])
    return found


def measure(file: Path) -> Row | None:
    def captured() -> Any:
        pairs = ask_first()
        return perform({"phase": "capture", "file": str(file)}), pairs

    first = kept.in_fork(captured, LIMIT_SECONDS)
    if first is None:
        return None
    capture, pairs = first
    options = {"until": "memory"}
    job = {"phase": "native", "file": str(file), "captured": capture["captured"], "options": options}
    native = kept.in_fork(lambda: perform(job), LIMIT_SECONDS)
    return None if native is None else row(capture, native, pairs)


def main(results: Path, files: list[Path]) -> None:
    from compiler import warm

    warm.warm_up()
    kept.each(results, files, measure)


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
