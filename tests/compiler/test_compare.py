"""Eager against compiled: what is found equal, what is not, and what is said of it."""

from __future__ import annotations

from types import ModuleType

import torch

from compiler.compare import compare_printed, compare_results, compare_tensor, compare_tensors, worst
from compiler.ir.execution import Comparison
from compiler.snippet import CallResult
from compiler.stages.execute import Outcome, finding, graphs_differ, judged
from compiler.text import message
from compiler.torch_compat.wrapper import Built, code_digest

ONES = torch.ones(2, 3)


def test_equal_tensors_agree_with_zero_differences() -> None:
    assert compare_tensor("out", "output", 0, ONES, ONES.clone()) == Comparison(
        name="out", kind="output", dtype="float32", shape=[2, 3], max_abs=0.0, max_rel=0.0, agrees=True
    )


def test_one_wrong_element_is_found_with_its_figures() -> None:
    wrong = ONES.clone()
    wrong[1, 2] = 1.25
    found = compare_tensor("out", "output", 0, ONES, wrong)
    assert (found.max_abs, found.max_rel, found.agrees) == (0.25, 0.25, False)


def test_nan_and_infinity_agree_with_themselves_only() -> None:
    odd = torch.tensor([float("nan"), float("inf"), 0.0])
    assert compare_tensor("out", "output", 0, odd, odd.clone()).agrees
    found = compare_tensor("out", "output", 0, odd, torch.tensor([float("nan"), 1.0, 0.0]))
    assert (found.agrees, found.max_abs) == (False, None)


def test_half_types_integers_booleans_and_complex() -> None:
    half = torch.full((4,), 1.0, dtype=torch.bfloat16)
    assert compare_tensor("h", "output", 0, half, half + 0.01).agrees
    assert not compare_tensor("i", "buffer", 0, torch.tensor([3]), torch.tensor([4])).agrees
    assert compare_tensor("b", "output", 0, torch.tensor([True]), torch.tensor([True])).agrees
    turned = torch.tensor([1 + 1j])
    assert compare_tensor("c", "output", 0, turned, turned + 1).max_abs == 1.0
    assert compare_tensor("e", "output", 0, torch.zeros(0), torch.zeros(0)).agrees


def test_other_shapes_types_and_names_are_mismatches() -> None:
    assert compare_tensor("out", "output", 0, ONES, ONES[0]).mismatch == "shape [2, 3] in eager, [3] compiled"
    assert "dtype" in compare_tensor("out", "output", 0, ONES, ONES.double()).mismatch
    found = compare_tensors("gradient", 1, {"w": ONES}, {"b": ONES})
    assert [(one.name, one.mismatch, one.agrees) for one in found] == [
        ("w", "only in eager", False),
        ("b", "only in compiled", False),
    ]


def test_printed_lines() -> None:
    found = compare_printed("a 1.00001\nsame\nloss 1.5\ntook\n", "a 1.00002\nsame\nloss 9.5\ntaken\nmore\n")
    assert [one.agrees for one in found] == [True, True, None, False, False]


def test_results_of_a_scenario() -> None:
    assert compare_results({"a": 1.0, "b": [2]}, {"b": [2], "a": 1.0000001}).agrees
    assert not compare_results({"a": 1}, {"a": 2}).agrees


def outcome(value: torch.Tensor, random: bytes | None = None) -> Outcome:
    return Outcome(calls=[CallResult(outputs={"out": value}, gradients={"w": ONES})], random=random)


def test_a_wrong_result_is_a_finding_and_random_ones_are_not_compared() -> None:
    right, wrong = outcome(ONES), outcome(ONES * 2)
    options = {"declared_random": False, "same_generator": False, "printed": False}
    found, why = judged(right, wrong, **options)
    assert why is None
    said = finding(found)
    assert said is not None
    assert said.severity == "error"
    assert said.message == message(
        "execute.diverges", name="out", kind="output", call=1, max_abs="1", max_rel="1", count=1
    )
    assert judged(outcome(ONES, b"x"), wrong, **options) == ([], message("execute.random"))
    assert judged(outcome(ONES, b"x"), right, **options)[1] is None
    assert judged(right, wrong, **(options | {"declared_random": True})) == ([], message("execute.declared_random"))
    assert worst(judged(right, right, **options)[0]) is None


def test_a_call_that_is_missing_is_a_mismatch() -> None:
    found, _ = judged(outcome(ONES), Outcome(), declared_random=False, same_generator=False, printed=False)
    assert [one.mismatch for one in found] == ["1 calls in eager, 0 compiled"]


def test_graphs_that_are_not_those_captured_are_told() -> None:
    built = [
        Built("0/0", graph, f"# AOT ID: ['1_{graph}']\ncode", ModuleType("m")) for graph in ("forward", "backward")
    ]
    same = [code_digest("# AOT ID: ['0_forward']\ncode")] * 2
    assert graphs_differ(built, None) is None
    assert graphs_differ(built, same) is None
    assert graphs_differ(built, same[:1]) == message("execute.graphs_differ", captured=1, built=2, different=1)
    assert graphs_differ(built, [same[0], code_digest("other")]) == message(
        "execute.graphs_differ", captured=2, built=2, different=1
    )
