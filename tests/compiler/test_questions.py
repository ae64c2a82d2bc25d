"""The questions of `docs/questions.md`: the fact that answers each is in what the case's run says."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from compiler.events import StageName
from server.examples import FOLDER, examples, read_recording
from tests.compiler.phases_run import run_jobs

ROOT = Path(__file__).parents[2]
ISSUES = ROOT / "tests" / "corpus" / "issues"
EXPECTED: dict[str, Any] = json.loads((ISSUES / "EXPECTED.json").read_text(encoding="utf-8"))
ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| pytorch/pytorch#(\d+) \| `(\w+)` \| `#([^`]+)` \|$", re.M)
THREADS = {
    name: re.findall(r"#(\d+)", case["thread"])
    for name, case in EXPECTED.items()
    if case["verdict_2_13_cpu"] == "reproduces"
}


@dataclass(frozen=True)
class Answer:
    """What a run must say: a finding with this key at this line, whose parameters include `params`; and a break and a recompile
    with these fields."""

    key: str
    line: int | None
    params: dict[str, Any] = field(default_factory=dict)
    broke: dict[str, Any] = field(default_factory=dict)
    recompiled: dict[str, Any] = field(default_factory=dict)
    native: bool = False


LOOP = {"kind": "whole_function", "gb_id": "GB7000"}
SIZE = {"source": "L['x'].size()[0]", "value": "6"}
ANSWERS = {
    "backward_hook_added_later": Answer("dynamo.hooks_added", 20, {"owner": "L['fn']", "hooks": "backward_hooks"}),
    "boolean_mask_captured": Answer(
        "dynamo.break_in_library",
        17,
        {"library": "torch/nn/modules/batchnorm.py:210"},
        {
            "reason": "Could not guard on data-dependent expression Eq(u0, 1) (unhinted: Eq(u0, 1)).  (Size-like symbols: u0)"
        },
    ),
    "boolean_mask_indexing": Answer("dynamo.break", 8, broke={"gb_id": "GB0036", "count": 1}),
    "break_inside_for_loop": Answer("dynamo.whole_function_after", 10, broke=LOOP | {"cause_gb_id": "GB0124"}),
    "budget_recomputes_rng": Answer("partition.draws_again", 10, {"count": 1}),
    "cosine_similarity_bf16": Answer("execute.diverges", None, {"max_abs": "0.002"}, native=True),
    "counter_attribute": Answer(
        "dynamo.recompile_limit_values",
        13,
        {"limit": 8, "source": "L['self'].seen", "old": "7", "new": "8"},
        {"kind": "recompile_limit", "gb_id": "GB0039"},
        {"source": "L['self'].seen", "old": "0", "new": "1", "line": 14},
    ),
    "data_assignment_alias": Answer("dynamo.data_replaced", 8, {"recorded": "[2, 2]", "called": "[2, 3]"}),
    "explain_count_disagrees": Answer("dynamo.break", 7, broke={"gb_id": "GB0059", "count": 5}),
    "fullgraph_item_allowed": Answer("dynamo.item_captured", 9),
    "gan_shared_generator_graph": Answer("partition.shared_backward", 28),
    "lstm_allow_rnn": Answer("partition.absent", 11, {"operator": "aten.mkldnn_rnn_layer.default"}),
    "mark_dynamic_specialised": Answer("dynamo.specialised", 8, SIZE),
    "mark_dynamic_unify_static": Answer("dynamo.specialised", 7, SIZE),
    "numpy_complex_fallback": Answer("schedule.complex", 9, {"count": 22, "nodes": 47}),
    "requires_grad_under_no_grad": Answer(
        "dynamo.recompile_values",
        7,
        {"source": "L['a'].requires_grad", "old": "False", "new": "True"},
        recompiled={"source": "grad_mode", "old": "False", "new": "True", "line": 20},
    ),
    "skip_depends_on_call_order": Answer("dynamo.whole_function_after", 9, broke=LOOP | {"count": 2}),
    "skipfiles_stdlib_call": Answer(
        "dynamo.break_in_library", 14, {"library": "uuid.py:723"}, {"gb_id": "GB0007", "line": 14, "count": 1}
    ),
    "surrogate_gradient_break": Answer(
        "dynamo.whole_function_after", 16, {"function": "forward"}, LOOP | {"cause_gb_id": "GB0124"}
    ),
    "user_context_manager_break": Answer(
        "dynamo.whole_function_after", 18, broke={"kind": "whole_function", "gb_id": "GB0066"}
    ),
}
QUICK = ("backward_hook_added_later", "budget_recomputes_rng", "mark_dynamic_specialised", "surrogate_gradient_break")


def rows() -> dict[str, tuple[str, str]]:
    """Case → (thread, fragment)."""
    text = (ROOT / "docs" / "questions.md").read_text(encoding="utf-8")
    return {case: (thread, fragment) for _, _, thread, case, fragment in ROW.findall(text)}


def places() -> dict[str, dict[str, str]]:
    return {
        case: {key: values[0] for key, values in parse_qs(fragment).items()} for case, (_, fragment) in rows().items()
    }


def within(wanted: dict[str, Any], given: dict[str, Any]) -> bool:
    return {key: given.get(key) for key in wanted} == wanted


def check(case: str, run: dict[str, Any]) -> None:
    answer, events, place = ANSWERS[case], run["events"], places()[case]
    findings = [event for event in events if event["type"] == "finding"]
    told = [(event["message"]["key"], event["line"], event["message"]["params"]) for event in findings]
    hits = [
        event
        for event, (key, line, params) in zip(findings, told, strict=True)
        if (key, line) == (answer.key, answer.line) and within(answer.params, params)
    ]
    assert len(hits) == 1, told
    for kind, wanted in (("breaks", answer.broke), ("recompiles", answer.recompiled)):
        listed = [row for made in run["artifacts"] if made["artifact"]["kind"] == kind for row in made["payload"][kind]]
        assert not wanted or any(within(wanted, row) for row in listed), listed
    # The fragment opens on it: the stage that tells it, a compile that there is, a line that the answer names.
    assert place["stage"] == hits[0]["stage"]
    assert "compile" not in place or place["compile"] in {event["compile"] for event in events}
    if "line" in place:
        assert int(place["line"]) in {answer.line, answer.recompiled.get("line")}


def run_cases(cases: list[str], folder: Path) -> dict[str, Any]:
    phase = {case: "native" if ANSWERS[case].native else "capture" for case in cases}
    jobs = [{"name": case, "phase": phase[case], "file": str(ISSUES / f"{case}.py")} for case in cases]
    return run_jobs(jobs, folder, 600)


def test_every_thread_that_reproduces_has_its_question_and_its_answer() -> None:
    found = rows()
    assert set(found) == set(THREADS) == set(ANSWERS)
    assert [case for case, (thread, _) in found.items() if thread not in THREADS[case]] == []
    stages = {stage.value for stage in StageName}
    assert [case for case, place in places().items() if place["stage"] not in stages] == []


def test_the_gallery_has_each_question_with_its_answer() -> None:
    """Its lines are those of the corpus: two lines of comments stand for the two of META."""
    shown = {example.name: example for example in examples() if example.group == "questions"}
    text = (ROOT / "docs" / "questions.md").read_text(encoding="utf-8")
    written = {case: (question, answer, f"#{place}") for question, answer, _, case, place in ROW.findall(text)}
    assert {name: (one.title, one.description, one.place) for name, one in shown.items()} == written
    for name, one in shown.items():
        corpus = (ISSUES / f"{name}.py").read_text(encoding="utf-8").splitlines()
        assert one.source.splitlines()[2:] == corpus[2:]
        assert corpus[0].startswith("META = {")
        assert [line[:2] for line in one.source.splitlines()[:2]] == ["# ", "# "]


def test_each_recording_holds_its_answer() -> None:
    """What the page opens is a run of the same text, whose findings have the answer's key and line."""
    sources = {example.name: example.source for example in examples()}
    for case, answer in ANSWERS.items():
        recording = read_recording(FOLDER / "recorded" / f"{case}.json.gz")
        assert recording.run.request.source == sources[case]
        told = [(e["message"]["key"], e["line"]) for e in recording.events if e["type"] == "finding"]
        assert (answer.key, answer.line) in told, case


@pytest.mark.timeout(300)
def test_a_few_answers(tmp_path: Path) -> None:
    for case, run in run_cases(list(QUICK), tmp_path).items():
        check(case, run)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_all_answers(tmp_path: Path) -> None:
    wrong = []
    for case, run in run_cases(list(ANSWERS), tmp_path).items():
        try:
            check(case, run)
        except AssertionError as error:
            wrong.append(f"{case}: {error}")
    print("\n".join(wrong) or f"{len(ANSWERS)} of {len(ANSWERS)} answered")
    assert wrong == []
