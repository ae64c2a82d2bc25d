"""Two runs held against each other over all stages. Works on documents: runs of a server, files, other versions alike."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

from compiler.events import StageName
from compiler.ir.align import Pair, align
from compiler.ir.comparison import (
    ComparedFinding,
    ComparedRun,
    CompileComparison,
    CompileName,
    Difference,
    Part,
    Row,
    RunComparison,
    Scalar,
    StageComparison,
    StageSide,
)
from compiler.ir.diff import statement, value_text
from compiler.ir.encode import decode
from compiler.ir.graph import Graph, GraphPayload, Node
from compiler.ir.payloads import PAYLOADS
from compiler.text import Message
from server.compare.tables import Item, Table, table

# What says nothing of itself: provenance, and graphs in the middle of a stage.
_LEFT_OUT = ("links",)
_AROUND = 2
_MOST_ROWS = 1500
_MOST_LINES = 20_000
# A training run's graphs, and the one that an inference run has in their place.
_INFERENCE = {"joint": "inference", "forward": "inference"}
_COMMENT = re.compile(r"^\s*(#(?!\s*(include|pragma|define|if|else|endif))|//)|\s+# .*$")
_ABSENT = object()

Document = dict[str, Any]


def compare(a: Document, b: Document) -> RunComparison:
    """Hold two documents (`document/1`) against each other. Raises LookupError or ValueError (pydantic's too) where a document
    contradicts itself."""
    stages = [_stage(*pair) for pair in _stages(a["stages"], b["stages"])]
    compiles = [
        CompileComparison(
            a=_name(one),
            b=_name(two),
            stages=[_stage(*pair) for pair in _stages(one["stages"] if one else [], two["stages"] if two else [])],
        )
        for one, two in _compiles(a["compiles"], b["compiles"])
    ]
    vanished, appeared = _findings(a["run"]["findings"], b["run"]["findings"])
    whole = [*stages, *(stage for made in compiles for stage in made.stages)]
    summary = _differences(a["summary"] or {}, b["summary"] or {})
    ends = {_state(one): (one["run"]["outcome"] or {}).get("error") for one in (a, b)}
    return RunComparison(
        a=_run(a),
        b=_run(b),
        equal=all(stage.equal for stage in whole) and not summary and not appeared and not vanished and len(ends) == 1,
        source=_text_diff(a["run"]["request"]["source"], b["run"]["request"]["source"]),
        options=_differences(a["run"]["request"]["options"], b["run"]["request"]["options"]),
        engine=_differences(a["run"]["engine"] or {}, b["run"]["engine"] or {}),
        summary=summary,
        appeared=appeared,
        vanished=vanished,
        stages=stages,
        compiles=compiles,
    )


# --- what belongs to what


def _compiles(a: list[Document], b: list[Document]) -> Iterator[tuple[Document | None, Document | None]]:
    """Compiles by their function, in order; what is between two that agree is paired as it comes."""
    left: tuple[list[Document], list[Document]] = [], []
    for one, two in [*_aligned(a, b, _function), (None, None)]:
        if one and not two:
            left[0].append(one)
        elif two and not one:
            left[1].append(two)
        else:
            yield from itertools.zip_longest(*left)
            left = [], []
            if one:
                yield one, two


def _function(compiled: Document) -> str:
    """Its name; the line in that of a resumed function does not count."""
    return re.sub(r"_at_\d+", "_at", compiled["function"] or "")


def _stages(a: list[Document], b: list[Document]) -> Iterator[tuple[StageName, Document | None, Document | None]]:
    one, two = ({stage["name"]: stage for stage in stages} for stages in (a, b))
    for name in StageName:
        if name.value in one or name.value in two:
            yield name, one.get(name.value), two.get(name.value)


def _aligned(a: list[Any], b: list[Any], key: Callable[[Any], object]) -> Iterator[tuple[Any, Any]]:
    """Both lists once, equal keys together, in order; what is in one only has None beside it."""
    keys_a, keys_b = [key(one) for one in a], [key(one) for one in b]
    for _tag, start_a, end_a, start_b, end_b in difflib.SequenceMatcher(
        None, keys_a, keys_b, autojunk=False
    ).get_opcodes():
        if _tag == "equal":
            yield from zip(a[start_a:end_a], b[start_b:end_b], strict=True)
        else:
            yield from ((one, None) for one in a[start_a:end_a])
            yield from ((None, one) for one in b[start_b:end_b])


def _artifacts(stage: Document | None) -> dict[tuple[str, str, str | None], Document]:
    """The last artifact of each kind, name and graph; graphs between two passes belong to the passes."""
    made = [] if stage is None else stage["artifacts"]
    return {
        (one["kind"], _plain_name(one), one["graph"]): one
        for one in made
        if one["kind"] not in _LEFT_OUT and one["name"] != "step"
    }


def _plain_name(one: Document) -> str:
    """The name, where it says more than the graph does."""
    return "" if one["name"] == one["graph"] else str(one["name"])


def _paired(a: Document | None, b: Document | None) -> Iterator[tuple[Document | None, Document | None]]:
    one, two = _artifacts(a), _artifacts(b)
    for key in list(one):
        kind, name, graph = key
        # The inference run's only graph stands against the joint graph, and later against the forward.
        for other in (graph, _INFERENCE.get(graph or ""), *(g for g, i in _INFERENCE.items() if i == graph)):
            if (kind, name, other) in two:
                yield one.pop(key), two.pop((kind, name, other))
                break
    for made in one.values():
        yield made, None
    for made in two.values():
        yield None, made


# --- a stage, a payload


def _stage(name: StageName, a: Document | None, b: Document | None) -> StageComparison:
    parts = [_part(one, two) for one, two in _paired(a, b)]
    facts = _differences(a["facts"] if a else {}, b["facts"] if b else {}, measured=("ratio", "seconds"))
    sides = [StageSide(status=one["status"], seconds=one["seconds"]) if one else StageSide() for one in (a, b)]
    # A fact says in short what a payload says in full.
    equal = all(part.state == "equal" for part in parts) and sides[0].status == sides[1].status
    return StageComparison(stage=name.value, equal=equal, a=sides[0], b=sides[1], facts=facts, parts=parts)


def _part(a: Document | None, b: Document | None) -> Part:
    made = a or b
    assert made is not None
    named: dict[str, Any] = {
        "name": _plain_name(made),
        "kind": made["kind"],
        "graph_a": a and a["graph"],
        "graph_b": b and b["graph"],
        "hash_a": a["hash"] if a else "",
        "hash_b": b["hash"] if b else "",
    }
    if a is None or b is None:
        return Part(**named, state="only_b" if a is None else "only_a")
    if a["hash"] == b["hash"]:
        return Part(**named, state="equal")
    model = PAYLOADS[made["kind"]]
    one, two = model.model_validate(a["payload"]), model.model_validate(b["payload"])
    if isinstance(one, GraphPayload) and isinstance(two, GraphPayload):
        return _graph_part(named, decode(one), decode(two))
    tables = table(one), table(two)
    if tables[0] is None or tables[1] is None:
        return Part(**named, state="different")
    return _table_part(named, tables[0], tables[1])


def _graph_part(named: dict[str, Any], a: Graph, b: Graph) -> Part:
    rows = [_node_row(pair) for pair in align(a, b)]
    return _with_rows(named, rows, figures=_differences({"nodes": len(a.nodes)}, {"nodes": len(b.nodes)}))


def _node_row(pair: Pair) -> Row:
    a, b = pair.before, pair.after
    state = "removed" if b is None else "added" if a is None else "changed" if pair.what else "same"
    return Row.model_validate(
        {"state": state, "a": _text(a), "b": _text(b), "a_id": a.name if a else "", "b_id": b.name if b else "",
         "what": list(pair.what)}
    )  # fmt: skip


def _text(node: Node | None) -> str:
    if node is None:
        return ""
    if node.op == "placeholder":
        return f"{node.name}: {value_text(node.value)}  {node.args if node.args != node.name else ''}".rstrip()
    return statement(node)


def _table_part(named: dict[str, Any], a: Table, b: Table) -> Part:
    pairs = _aligned(a.items, b.items, lambda one: one.key) if a.ordered or b.ordered else _by_key(a.items, b.items)
    figures = _differences(a.figures, b.figures)
    measured = _differences(a.measured, b.measured, measured=None)
    diff = _text_diff(a.text, b.text)
    differs = bool(diff) and _code_lines(a.text) != _code_lines(b.text)
    return _with_rows(named, [_item_row(*pair) for pair in pairs], figures, measured, diff, differs)


def _by_key(a: list[Item], b: list[Item]) -> Iterator[tuple[Item | None, Item | None]]:
    """Things without an order: equal ones first, then those of one key in the order in which they come."""
    left: dict[tuple[object, ...], list[Item]] = {}
    for item in b:
        left.setdefault(item.key, []).append(item)
    for item in a:
        same = left.get(item.key, [])
        yield item, same.pop(next((i for i, one in enumerate(same) if one.text == item.text), 0)) if same else None
    for items in left.values():
        yield from ((None, item) for item in items)


def _item_row(a: Item | None, b: Item | None) -> Row:
    state = "removed" if b is None else "added" if a is None else "same" if _said(a) == _said(b) else "changed"
    return Row.model_validate(
        {"state": state, "a": _said(a), "b": _said(b), "a_id": a.id if a else "", "b_id": b.id if b else ""}
    )


def _said(item: Item | None) -> str:
    return "" if item is None else f"{item.text} {item.note}".rstrip()


def _with_rows(
    named: dict[str, Any],
    rows: list[Row],
    figures: list[Difference] | None = None,
    measured: list[Difference] | None = None,
    diff: str = "",
    text_differs: bool = False,
) -> Part:
    counts = {state: sum(row.state == state for row in rows) for state in ("added", "removed", "changed", "same")}
    shown = _folded(rows)
    different = bool(figures) or counts["same"] != len(rows) or text_differs
    return Part(
        **named,
        state="different" if different else "equal",
        figures=[*(figures or []), *(measured or [])],
        rows=shown[:_MOST_ROWS],
        **counts,
        left_out=max(0, len(shown) - _MOST_ROWS),
        diff=diff,
    )


def _folded(rows: list[Row]) -> list[Row]:
    """The rows that differ and their neighbours; `gap` says how many are left out before each."""
    near = bytearray(len(rows))
    for i, row in enumerate(rows):
        if row.state != "same":
            for k in range(max(0, i - _AROUND), min(len(rows), i + _AROUND + 1)):
                near[k] = 1
    kept: list[Row] = []
    gap = 0
    for row, shown in zip(rows, near, strict=True):
        if shown:
            kept.append(row.model_copy(update={"gap": gap}) if gap else row)
            gap = 0
        else:
            gap += 1
    return kept


# --- figures, texts, findings


def _differences(a: dict[str, Any], b: dict[str, Any], measured: tuple[str, ...] | None = ()) -> list[Difference]:
    """The figures that are not the same, by name. `measured` names those that a clock gave; None: all are."""
    found = []
    for name in dict.fromkeys((*a, *b)):
        one, two = a.get(name, _ABSENT), b.get(name, _ABSENT)
        if one == two:
            continue
        clock = measured is None or name in measured
        found.append(Difference(name=name, a=_scalar(one), b=_scalar(two), measured=clock))
    return found


def _scalar(value: Any) -> Scalar:
    if value is _ABSENT:
        return None
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _text_diff(a: str, b: str) -> str:
    one, two = a.splitlines()[:_MOST_LINES], b.splitlines()[:_MOST_LINES]
    return "" if a == b else "\n".join(difflib.unified_diff(one, two, "a", "b", lineterm="", n=3))


def _code_lines(text: str) -> list[str]:
    """What of a text does something: without comments (which name lines of the snippet) and empty lines."""
    return [
        line
        for line in (_COMMENT.sub("", raw).rstrip() if not _whole(raw) else "" for raw in text.splitlines())
        if line
    ]


def _whole(line: str) -> bool:
    hit = _COMMENT.match(line)
    return hit is not None


def _findings(a: list[Document], b: list[Document]) -> tuple[list[ComparedFinding], list[ComparedFinding]]:
    """Those of one side only. A finding's line is not part of it; how often it is said is. A sentence with measured figures
    is the same sentence."""
    return _rest(a, b), _rest(b, a)


def _rest(these: list[Document], those: list[Document]) -> list[ComparedFinding]:
    other = [_finding_key(one) for one in those]
    found = []
    for one in these:
        key = _finding_key(one)
        if key in other:
            other.remove(key)
            continue
        found.append(
            ComparedFinding(
                severity=one["severity"],
                message=Message.model_validate(one["message"]),
                line=one["line"],
                stage=one.get("stage"),
                compile=one.get("compile"),
            )
        )
    return found


def _finding_key(one: Document) -> tuple[object, ...]:
    said = one["message"]
    words = {name: value for name, value in said["params"].items() if not isinstance(value, float) and name != "line"}
    return one["severity"], said["key"], sorted((name, str(value)) for name, value in words.items())


def _name(one: Document | None) -> CompileName | None:
    return None if one is None else CompileName(id=one["id"], function=one["function"], line=one["line"])


def _state(one: Document) -> str:
    outcome = one["run"]["outcome"]
    return "" if outcome is None else str(outcome["type"])


def _run(one: Document) -> ComparedRun:
    run = one["run"]
    return ComparedRun(id=run["id"], state=_state(one), options=run["request"]["options"], engine=run["engine"])
