"""`torch.compile` as a script calls it: counted, its calls recorded, or made the identity for the eager twin."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch._dynamo import trace_rules
from torch._dynamo.eval_frame import OptimizedModule

KEPT_CALLS = 64

# Dynamo must not compile the frames of our own recorder when it is active around a call.
trace_rules.add(__name__)


@dataclass(frozen=True)
class ScriptCall:
    """One call, from outside any other, of something that the script compiled. `index` counts the calls of that callable."""

    name: str
    index: int
    outputs: dict[str, torch.Tensor]


class BeforeCall(Protocol):
    """Told of the first top-level call: what was compiled, the options of `torch.compile`, and the arguments."""

    def __call__(
        self, original: Any, options: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None: ...


class Recorder:
    """Not frozen: it is written to while the script runs. `tensors(value, name)` names the tensors in a result."""

    def __init__(
        self,
        tensors: Callable[[Any, str], Iterator[tuple[str, torch.Tensor]]] | None,
        before_call: BeforeCall | None,
    ) -> None:
        self.compiled = 0
        self.called = False
        self.calls: list[ScriptCall] = []
        self._tensors = tensors
        self._before_call = before_call
        self._depth = 0
        self._counts: dict[str, int] = {}

    def wrap(self, fn: Callable[..., Any], original: Any, options: dict[str, Any]) -> Callable[..., Any]:
        """`fn` with its top-level calls recorded under the name of `original`.

        `functools.wraps` also hands on torch's own marks, so that Dynamo inlines what was compiled and not this wrapper."""

        @functools.wraps(fn)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            if self._depth:
                return fn(*args, **kwargs)
            self._depth += 1
            try:
                if not self.called:
                    self.called = True
                    if self._before_call is not None:
                        self._before_call(original, options, args, kwargs)
                out = fn(*args, **kwargs)
            finally:
                self._depth -= 1
            self._keep(original, out)
            return out

        return recorded

    def _keep(self, original: Any, out: Any) -> None:
        if self._tensors is None or len(self.calls) >= KEPT_CALLS:
            return
        name = name_of(original)
        index = self._counts[name] = self._counts.get(name, -1) + 1
        with torch.no_grad():
            outputs = {
                path: (tensor if tensor.layout == torch.strided else tensor.to_dense()).detach().clone()
                for path, tensor in self._tensors(out, "out")
            }
        self.calls.append(ScriptCall(name, index, outputs))


def name_of(original: Any) -> str:
    """A callable as a reader knows it: the class of a module, the name of a function."""
    owner = getattr(original, "__self__", original)
    if isinstance(owner, torch.nn.Module):
        return type(owner).__name__
    return getattr(original, "__qualname__", type(original).__name__)


class _Identity:
    """Stands where torch keeps the compiling context of an OptimizedModule, and compiles nothing."""

    def __init__(self, recorder: Recorder, original: Any) -> None:
        self._recorder = recorder
        self._original = original

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        return self._recorder.wrap(fn, self._original, {})


def with_backend(options: dict[str, Any], backend: str) -> dict[str, Any]:
    """The options of a `torch.compile` for another backend, without those that only Inductor has."""
    kept = {name: value for name, value in options.items() if name not in ("mode", "options")}
    return kept | {"backend": backend}


@contextlib.contextmanager
def recording(recorder: Recorder, *, identity: bool, backend: str | None = None) -> Iterator[None]:
    """While it lasts, `torch.compile` (a call, a decorator, `nn.Module.compile`) records; with `identity` it does not compile,
    with `backend` it takes that one.

    The twin of a compiled module is an OptimizedModule too, so that names in its state are the same in both."""
    compile_ = torch.compile

    @functools.wraps(compile_)
    def recorded(model: Any = None, **options: Any) -> Any:
        if (
            model is None
        ):  # a decorator with options: torch applies `torch.compile` to what is decorated, and so comes back
            return compile_(None, **options)
        if backend is not None:
            options = with_backend(options, backend)
        recorder.compiled += 1
        if identity:
            if isinstance(model, torch.nn.Module):
                return OptimizedModule(model, _Identity(recorder, model))
            return recorder.wrap(model, model, options)
        compiled = compile_(model, **options)
        if isinstance(compiled, OptimizedModule):
            compiled.forward = recorder.wrap(compiled.forward, model, options)
            return compiled
        return recorder.wrap(compiled, model, options)

    torch.compile = recorded
    try:
        yield
    finally:
        torch.compile = compile_
