"""The compiled graphs of a step in two ways: interpreted, which gives the right values, and then as dry runs of their wrappers,
which allocate as the real ones do and compute nothing. The dry run is handed the values that the interpreter gave for the same
call, so that what the snippet decides by them (which branch, how often) is decided as it really is.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch

from compiler.torch_compat.interpreter import InterpretedModule
from compiler.torch_compat.wrapper import dry

# What is known of an argument's size: a tensor's shape, or the number that it is.
Given = tuple[int, ...] | int | None
# The module that was called, what it gave, and how often its loops turned.
Said = tuple[int, list[torch.Tensor | None], dict[str, list[int]]]


class Replay:
    """`begin(False)` ahead of a step that is interpreted, `begin(True)` ahead of a dry one. Afterwards `used` are the
    calls of the dry step in order, each the module's index and its arguments' sizes, and `again` says whether the step made new
    modules, which were interpreted in it."""

    def __init__(self, modules: list[InterpretedModule]) -> None:
        self._modules = modules
        self._said: list[Said] = []
        self._dry = False
        self.used: list[tuple[int, list[Given]]] = []
        self.again = False

    def add(self, module: InterpretedModule) -> None:
        """A module that was made since."""
        self._modules.append(module)
        if self._dry:
            self.again = True
        else:
            module.runner = self._noted(len(self._modules) - 1, module)

    def begin(self, dry_run: bool) -> None:
        self._dry = dry_run
        if dry_run:
            self.used, self.again = [], False
        else:
            self._said.clear()
        for index, module in enumerate(self._modules):
            module.runner = self._played(index, module) if dry_run else self._noted(index, module)

    def _noted(self, index: int, module: InterpretedModule) -> Callable[[list[Any]], Sequence[Any]]:
        def run(args: list[Any]) -> Sequence[Any]:
            values = module.interpret(args)
            self._said.append((index, [_copy(value) for value in values], copy.deepcopy(module.turns)))
            return values

        return run

    def _played(self, index: int, module: InterpretedModule) -> Callable[[list[Any]], Sequence[Any]]:
        turns: dict[str, list[int]] = {}
        call = dry(module.code, module.constants, str(index), turns)

        def run(args: list[Any]) -> Sequence[Any]:
            self.used.append((index, [_sizes(value) for value in args]))
            values: list[torch.Tensor | None] = []
            if self._said and self._said[0][0] == index:
                _, values, counted = self._said.pop(0)
                turns.clear()
                turns.update(counted)
            else:  # the step took another way than the last one did
                self._said.clear()
            given = {_address(value) for value in args if isinstance(value, torch.Tensor)}
            results: Sequence[Any] = call(args)
            for result, value in zip(results, values, strict=False):
                _fill(result, value, given)
            return results

        return run


def _sizes(value: Any) -> Given:
    return tuple(value.shape) if isinstance(value, torch.Tensor) else value if isinstance(value, int) else None


def _copy(value: Any) -> torch.Tensor | None:
    return value.detach().clone() if type(value) is torch.Tensor and value.layout == torch.strided else None


def _address(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr() if tensor.layout == torch.strided else 0


def _fill(result: object, value: torch.Tensor | None, given: set[int]) -> None:
    """Write a value into the memory of a result, which allocates nothing. An argument that is returned stays as it is, and so
    does what has several elements in one place."""
    if value is None or not isinstance(result, torch.Tensor) or _address(result) in given:
        return
    spread = all(step for step, extent in zip(result.stride(), result.shape, strict=True) if extent > 1)
    if spread and (result.shape, result.dtype) == (value.shape, value.dtype):
        with torch.no_grad():
            result.copy_(value)
