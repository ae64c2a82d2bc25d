"""Calls of autograd's engine, for what goes wrong in the backward of a compiled graph."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch.autograd

from compiler.session import Sources
from compiler.torch_compat.hooks import replaced

_FREED = "Trying to backward through the graph a second time"
_COMPILED = "torch/_functorch/_aot_autograd/runtime_wrappers.py"


@contextmanager
def second_backwards(said: Callable[[int | None], None], sources: Sources) -> Iterator[None]:
    """While it lasts, `said` is told of each backward that fails in a compiled graph because an earlier one freed what that graph
    had saved, with the snippet's line that asked for it. The exception goes its way."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            try:
                return original(*args, **kwargs)
            except RuntimeError as error:
                stack = traceback.extract_tb(error.__traceback__)
                if str(error).startswith(_FREED) and any(frame.filename.endswith(_COMPILED) for frame in stack):
                    said(_line(sources))
                raise

        return run

    with replaced(torch.autograd, "_engine_run_backward", make):
        yield


def _line(sources: Sources) -> int | None:
    lines = [frame.lineno for frame in traceback.extract_stack() if frame.filename == sources.main]
    return lines[-1] if lines else None
