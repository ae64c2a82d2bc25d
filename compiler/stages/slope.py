"""Whether a compiled gradient is the slope of the compiled model: at a fixed seed, along random directions, against eager.

It is not when a backward draws its random numbers anew. Values alone cannot tell: compiled code may draw others than eager does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from compiler.fork import AsideError, aside
from compiler.ir.execution import SlopeCheck
from compiler.step import Subject, tensors
from compiler.text import Message, message

LIMIT_SECONDS = 60.0
_TRIALS = 3
_STEP = 3e-3
# Eager's own mismatch (curvature, kinks, rounding) is below this for smooth models.
_FLOOR = 2e-3
_TIMES = 10.0


def slope_check(eager: Subject, compiled: Subject, function: Callable[..., Any]) -> SlopeCheck | Message | None:
    """None for a model that draws nothing or has no gradient; a message where it could not be found out. In a fork: inputs and
    parameters are moved."""
    try:
        return aside(lambda: _checked(eager, compiled, function), LIMIT_SECONDS)
    except AsideError as fault:
        return message("execute.no_slope", error=fault.detail.partition("\n")[0] or fault.cause.key)


def _checked(eager: Subject, compiled: Subject, function: Callable[..., Any]) -> SlopeCheck | None:
    if not _leaves(eager) or not _draws(eager):
        return None
    ours = [_mismatch(eager, eager.model, trial) for trial in range(_TRIALS)]
    theirs = [_mismatch(compiled, function, trial) for trial in range(_TRIALS)]
    wrong = min(theirs) > _TIMES * max(*ours, _FLOOR)
    return SlopeCheck(eager=ours, compiled=theirs, agrees=not wrong)


def _leaves(subject: Subject) -> list[torch.Tensor]:
    """What the model can be moved along: floating leaves that want a gradient."""
    parameters = subject.model.parameters() if isinstance(subject.model, torch.nn.Module) else ()
    given = tensors((subject.args, subject.kwargs))
    found = {id(leaf): leaf for leaf in (*parameters, *given) if leaf.is_leaf and leaf.requires_grad}
    return [leaf for leaf in found.values() if leaf.is_floating_point() and leaf.layout == torch.strided]


def _draws(subject: Subject) -> bool:
    before = torch.get_rng_state()
    subject.model(*subject.args, **subject.kwargs)
    return not torch.equal(before, torch.get_rng_state())


def _mismatch(subject: Subject, function: Callable[..., Any], trial: int) -> float:
    """How far the gradient along one direction is from the difference quotient, as a share of both."""
    leaves = _leaves(subject)
    generator = torch.Generator().manual_seed(100 + trial)
    direction = [torch.randn(leaf.shape, generator=generator, dtype=leaf.dtype) for leaf in leaves]

    def value(move: float) -> torch.Tensor:
        _move(leaves, direction, move)
        torch.manual_seed(200 + trial)
        result = _weighed(function(*subject.args, **subject.kwargs))
        _move(leaves, direction, -move)
        return result

    for leaf in leaves:
        leaf.grad = None
    value(0.0).backward()
    gradient = sum(
        float((leaf.grad.double() * along.double()).sum())
        for leaf, along in zip(leaves, direction, strict=True)
        if leaf.grad is not None
    )
    slope = float(value(_STEP).detach() - value(-_STEP).detach()) / (2 * _STEP)
    return abs(slope - gradient) / (abs(slope) + abs(gradient) + 1e-6)


def _move(leaves: list[torch.Tensor], direction: list[torch.Tensor], by: float) -> None:
    if by:
        with torch.no_grad():
            for leaf, along in zip(leaves, direction, strict=True):
                leaf.add_(along, alpha=by)


def _weighed(output: Any) -> torch.Tensor:
    """One number of all floating outputs, each element with a weight of its own."""
    generator = torch.Generator().manual_seed(1)
    total = torch.zeros((), dtype=torch.float64)
    for tensor in tensors(output):
        if tensor.is_floating_point() and tensor.requires_grad:
            total = (
                total + (tensor.double() * torch.randn(tensor.shape, generator=generator, dtype=torch.float64)).sum()
            )
    return total
