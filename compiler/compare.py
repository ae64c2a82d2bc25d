"""What the compiled run gave against what eager gave: tensors, printed lines, a scenario's result."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch

from compiler.ir.execution import Comparison

Kind = Literal["output", "gradient", "buffer", "printed"]
_NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?")
# Printed numbers are rounded, and a float's last digits may differ: relative and absolute tolerance.
_PRINTED = 1e-3, 1e-4


def compare_tensors(
    kind: Kind, call: int, eager: Mapping[str, torch.Tensor], compiled: Mapping[str, torch.Tensor]
) -> list[Comparison]:
    """One comparison for each name in either, eager's order first."""
    found = []
    for name in (*eager, *(name for name in compiled if name not in eager)):
        expected, actual = eager.get(name), compiled.get(name)
        if expected is None or actual is None:
            where = "compiled" if expected is None else "eager"
            present = actual if expected is None else expected
            assert present is not None
            found.append(_described(name, kind, call, present, mismatch=f"only in {where}"))
        else:
            found.append(compare_tensor(name, kind, call, expected, actual))
    return found


def compare_tensor(name: str, kind: Kind, call: int, expected: torch.Tensor, actual: torch.Tensor) -> Comparison:
    """`max_rel` is over the elements that are not zero in eager. NaN agrees with NaN, and an infinity with itself."""
    for what, one, other in (
        ("shape", list(expected.shape), list(actual.shape)),
        ("dtype", str(expected.dtype), str(actual.dtype)),
    ):
        if one != other:
            return _described(name, kind, call, expected, mismatch=f"{what} {one} in eager, {other} compiled")
    wide = torch.complex128 if expected.is_complex() else torch.float64
    one, two = expected.detach().to(wide), actual.detach().to(wide)
    same = (one == two) | (one.isnan() & two.isnan())
    difference = torch.where(same, torch.zeros_like(one), one - two).abs()
    relative = (difference / one.abs())[one != 0]
    try:
        torch.testing.assert_close(actual, expected, equal_nan=True, check_stride=False)
        agrees = True
    except AssertionError:
        agrees = False
    return _described(
        name, kind, call, expected, max_abs=_largest(difference), max_rel=_largest(relative), agrees=agrees
    )


def _largest(values: torch.Tensor) -> float | None:
    """The largest element; 0 of none; None when it is not a finite number."""
    if not values.numel():
        return 0.0
    found = float(values.max())
    return found if math.isfinite(found) else None


def _described(
    name: str,
    kind: Kind,
    call: int,
    tensor: torch.Tensor,
    *,
    max_abs: float | None = None,
    max_rel: float | None = None,
    agrees: bool = False,
    mismatch: str = "",
) -> Comparison:
    return Comparison(
        name=name,
        kind=kind,
        call=call,
        dtype=str(tensor.dtype).removeprefix("torch."),
        shape=list(tensor.shape),
        max_abs=max_abs,
        max_rel=max_rel,
        agrees=agrees,
        mismatch=mismatch,
    )


def compare_printed(eager: str, compiled: str) -> list[Comparison]:
    """Line by line. Lines that differ only in their numbers agree when these are close, and else it is not decided:
    they may be times."""
    ours, theirs = eager.splitlines(), compiled.splitlines()
    found = []
    for index in range(max(len(ours), len(theirs))):
        one = ours[index] if index < len(ours) else None
        other = theirs[index] if index < len(theirs) else None
        agrees = False if one is None or other is None else _same_text(one, other)
        mismatch = "" if agrees else f"eager: {one!r}, compiled: {other!r}"
        found.append(Comparison(name=f"line {index + 1}", kind="printed", agrees=agrees, mismatch=mismatch))
    return found


def _same_text(one: str, other: str) -> bool | None:
    if one == other:
        return True
    if _NUMBER.sub("#", one) != _NUMBER.sub("#", other):
        return False
    pairs = zip(_NUMBER.findall(one), _NUMBER.findall(other), strict=True)
    relative, absolute = _PRINTED
    close = all(math.isclose(float(a), float(b), rel_tol=relative, abs_tol=absolute) for a, b in pairs)
    return True if close else None


def compare_results(eager: Any, compiled: Any) -> Comparison:
    """What a scenario returned, both times, by its JSON."""
    one, other = (json.dumps(value, sort_keys=True, default=repr) for value in (eager, compiled))
    agrees = _same_text(one, other)
    mismatch = "" if agrees else f"eager: {one[:300]}, compiled: {other[:300]}"
    return Comparison(name="scenario", kind="output", agrees=bool(agrees), mismatch=mismatch)


def worst(comparisons: Sequence[Comparison]) -> Comparison | None:
    """The first that does not agree: outputs before gradients before buffers, as they are listed."""
    return next((comparison for comparison in comparisons if comparison.agrees is False), None)
