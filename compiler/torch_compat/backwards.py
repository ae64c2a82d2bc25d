"""The backward of a compiled graph, where autograd's engine calls it, for what goes wrong there."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch._functorch._aot_autograd.runtime_wrappers as runtime_wrappers
from torch._dynamo.eval_frame import skip_code

from compiler.session import Sources
from compiler.torch_compat.hooks import replaced

_FREED = "Trying to backward through the graph a second time"


@contextmanager
def second_backwards(said: Callable[[int | None], None], sources: Sources) -> Iterator[None]:
    """Of the graphs compiled while it lasts, `said` is told of each backward that fails because an earlier one freed what the
    graph had saved, with the snippet's line that asked for it. The exception goes its way.

    Python's own `backward` cannot be the place: Dynamo traces calls of it, and would see another function there."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def generate(*args: Any, **kwargs: Any) -> Callable[..., Any]:
            backward: Callable[..., Any] = original(*args, **kwargs)

            def run(*given: Any) -> Any:
                try:
                    return backward(*given)
                except RuntimeError as error:
                    if str(error).startswith(_FREED):
                        said(_line(sources))
                    raise

            skip_code(run.__code__)  # what Dynamo's frame evaluation meets beside a model is not to be compiled
            return run

        return generate

    with replaced(runtime_wrappers, "_codegen_compiled_backward", make):
        yield


def _line(sources: Sources) -> int | None:
    lines = [frame.lineno for frame in traceback.extract_stack() if frame.filename == sources.main]
    return lines[-1] if lines else None
