"""Which compile torch is in, under a name that is not given twice in a run."""

from __future__ import annotations

import contextlib
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from torch._dynamo import convert_frame
from torch._dynamo.callback import CallbackArgs, CallbackTrigger, callback_handler
from torch._guards import CompileContext
from torch.fx.experimental.symbolic_shapes import ConstraintViolationError


@dataclass
class Attempt:
    """Dynamo's compile of one frame, while it lasts.

    `reasons` are torch's own texts of the cache entries that did not fit; `own` are the seconds that our hooks took in it,
    `graphs` the graphs that it gave to its backend, and `compiled` those that came back. `whole_graph` is whether the user
    asked for one graph or nothing, `specialised` the line that turned a size into a constant last."""

    compile: str
    code: CodeType
    began: float
    reasons: list[str] = field(default_factory=list)
    whole_graph: bool = False
    specialised: int | None = None
    graphs: int = 0
    compiled: int = 0
    own: float = 0.0


class _Names:
    """`torch._dynamo.reset()` begins its ids anew: a second `0/0` of a run is called `0/0.2`."""

    def __init__(self) -> None:
        self.attempts: list[Attempt] = []
        self.failed: Attempt | None = None
        self._given: dict[str, int] = {}
        self._latest: dict[str, str] = {}
        self._by_context: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()

    def begin(self, context: Any) -> str:
        raw = str(context.compile_id)
        count = self._given[raw] = self._given.get(raw, 0) + 1
        name = self._latest[raw] = self._by_context[context] = raw if count == 1 else f"{raw}.{count}"
        return name

    def of(self, context: Any) -> str:
        return self._by_context.get(context) or self.of_id(context.compile_id)

    def of_id(self, compile_id: Any) -> str:
        raw = str(compile_id)
        return self._latest.get(raw, raw)


_names = _Names()
_listeners: list[Callable[[Attempt, Any, BaseException | None], None]] = []


def current_compile() -> str | None:
    """The compile that torch is in, forward or (lazily) backward; None outside of any."""
    context = CompileContext.try_get()
    if context is None or context.compile_id is None:
        return None
    return _names.of(context)


def compile_name(compile_id: Any) -> str:
    """The name of the latest compile with this id of torch's."""
    return _names.of_id(compile_id)


def is_generated(code: CodeType) -> bool:
    """Whether this is what Dynamo made of a function: it bears the function's name and its first line, and no other."""
    return code in convert_frame.output_codes


def current_attempt() -> Attempt | None:
    """The innermost frame that Dynamo is at."""
    return _names.attempts[-1] if _names.attempts else None


def failed_attempt() -> Attempt | None:
    """The frame whose compile an exception left last."""
    return _names.failed


def specialised_line(error: BaseException) -> int | None:
    """The snippet's line that made a constant of a size that the user had marked, where this is what a compile failed of. Torch
    says which size it is, and not always where."""
    failed = failed_attempt()
    return failed.specialised if failed is not None and isinstance(error, ConstraintViolationError) else None


@contextlib.contextmanager
def tracking() -> Iterator[None]:
    """While it lasts, compiles are named, from the first on."""
    global _names
    _names = _Names()
    original = convert_frame._compile

    def compile_(code: CodeType, *args: Any, **kwargs: Any) -> Any:
        names = _names
        attempt = Attempt(names.begin(CompileContext.try_get()), code, time.perf_counter())
        names.attempts.append(attempt)
        result: Any = None
        fault: BaseException | None = None
        try:
            result = original(code, *args, **kwargs)
            return result
        except BaseException as error:
            fault = error
            names.failed = attempt
            raise
        finally:
            names.attempts.pop()
            for ended in _listeners:
                ended(attempt, result, fault)

    convert_frame._compile = compile_
    try:
        yield
    finally:
        convert_frame._compile = original


@contextlib.contextmanager
def listening(
    started: Callable[[Attempt], None], ended: Callable[[Attempt, Any, BaseException | None], None]
) -> Iterator[None]:
    """Within `tracking`: `started` is told when Dynamo begins to trace a frame, `ended` with what the frame became (torch's
    ConvertFrameReturn) or with the exception that left it."""

    def on_start(args: CallbackArgs) -> None:
        attempt = current_attempt()
        if args.callback_trigger is CallbackTrigger.DYNAMO and attempt is not None:
            started(attempt)

    callback_handler.register_start_callback(on_start)
    _listeners.append(ended)
    try:
        yield
    finally:
        _listeners.remove(ended)
        if on_start in callback_handler.start_callbacks:  # `torch._dynamo.reset()` may have cleared them
            callback_handler.remove_start_callback(on_start)
