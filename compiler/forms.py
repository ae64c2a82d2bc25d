"""The two forms of a snippet, for the native phase: each can be run whole, eagerly, compiled, or with another backend."""

from __future__ import annotations

import io
import random
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any

import numpy as np
import torch

from compiler.events import Mode
from compiler.snippet import CALL_SEED, CallResult, Loaded, Snippet, load, run_calls, run_scenario, run_script
from compiler.stages.execute import Outcome
from compiler.step import Step, Subject, in_float64, script_subject, subject_of
from compiler.torch_compat import real_gpu
from compiler.torch_compat.compile_calls import with_backend


class Form(ABC):
    """A snippet that can be run whole, eagerly and compiled, and whose step can be repeated. `eager` and `compiled` are the
    steps' subjects and `function` what was compiled; they exist after the runs."""

    printed = False
    declared_random = False
    eager: Subject | None = None
    compiled: Subject | None = None
    function: Callable[..., Any] | None = None

    @abstractmethod
    def run_eager(self) -> Outcome: ...

    @abstractmethod
    def run_compiled(self) -> Outcome: ...

    @abstractmethod
    def run_on(self, backend: str) -> Outcome:
        """All of it anew, compiled with this backend of torch's."""

    @abstractmethod
    def run_exact(self) -> Outcome | None:
        """All of it anew, eagerly in float64; None where that cannot be."""

    @abstractmethod
    def repeat(self) -> None:
        """Once more what is compiled already."""

    @property
    def backend(self) -> str:
        """The name of what it is compiled with."""
        chosen = self.compiled.compile_kwargs.get("backend", "inductor") if self.compiled is not None else "inductor"
        return chosen if isinstance(chosen, str) else getattr(chosen, "__name__", type(chosen).__name__)


class Declared(Form):
    def __init__(self, snippet: Snippet, eager: Loaded, asked: Mode, resolved: Mode, device: str = "cpu") -> None:
        self._snippet = snippet
        self._device = device
        self._asked = asked
        self._resolved = resolved
        self._loaded_eager = eager
        self._loaded: Loaded | None = None
        self.declared_random = eager.rng
        self.eager = subject_of(eager, resolved, asked)

    def run_eager(self) -> Outcome:
        return self._run(self._loaded_eager, self._loaded_eager.model)

    def run_compiled(self) -> Outcome:
        if self._loaded is None:
            _seed_others()
            self._loaded = load(self._snippet, self._device)
            self.compiled = subject_of(self._loaded, self._resolved, self._asked)
        self.function = torch.compile(self._loaded.model, **self._loaded.compile_kwargs)
        return self._run(self._loaded, self.function)

    def run_on(self, backend: str) -> Outcome:
        _seed_others()
        loaded = load(self._snippet, self._device)
        return self._run(loaded, torch.compile(loaded.model, **with_backend(loaded.compile_kwargs, backend)))

    def run_exact(self) -> Outcome | None:
        _seed_others()
        loaded = load(self._snippet, self._device)
        if loaded.scenario is not None:
            return None
        exact = in_float64(loaded)
        return self._run(exact, exact.model)

    def repeat(self) -> None:
        if self._loaded is not None and self.function is not None:
            self._run(self._loaded, self.function)

    def _run(self, loaded: Loaded, function: Callable[..., Any]) -> Outcome:
        _seed_others()
        torch.manual_seed(CALL_SEED)
        seeded = _generator_state()
        calls: list[CallResult] = []
        value = None
        error: BaseException | None = None
        try:
            if loaded.scenario is not None:
                value = run_scenario(loaded, function)
            else:
                calls = run_calls(loaded, function, self._asked, keep=True)  # resolved, auto would add a no_grad
        except (Exception, SystemExit) as raised:  # noqa: BLE001 - the user's model: told as its outcome
            error = raised
        after = _generator_state()
        drew = after if after != seeded else None
        return Outcome(calls, value, loaded.scenario is not None, error=error, random=drew)


class Script(Form):
    """The step of a script is its first call of something compiled, repeated: it exists once for eager and once compiled, of
    two runs of the script."""

    printed = True

    def __init__(self, snippet: Snippet) -> None:
        self._snippet = snippet

    def run_eager(self) -> Outcome:
        outcome, self.eager = self._run(identity=True)
        return outcome

    def run_compiled(self) -> Outcome:
        outcome, first = self._run(identity=False)
        self.compiled = first
        self.function = torch.compile(first.model, **first.compile_kwargs) if first is not None else None
        return outcome

    def run_on(self, backend: str) -> Outcome:
        return self._run(identity=False, backend=backend)[0]

    def run_exact(self) -> Outcome | None:
        return None  # its tensors are the script's own affair

    def repeat(self) -> None:
        if self.compiled is not None and self.function is not None:
            step = Step(self.compiled, self.function)
            step.clear()
            step.once()

    def _run(self, *, identity: bool, backend: str | None = None) -> tuple[Outcome, Subject | None]:
        first: Subject | None = None

        def called(original: Any, options: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            nonlocal first
            call = original, args, kwargs, torch.is_grad_enabled()
            first = script_subject(call, str(self._snippet.file), options)

        calls: list[CallResult] = []
        error: BaseException | None = None
        with redirect_stdout(io.StringIO()) as printed:
            try:
                run = run_script(
                    self._snippet, compile_identity=identity, before_call=called, keep=True, backend=backend
                )
                calls = [CallResult(outputs=_named(call.name, call.index, call.outputs)) for call in run.calls]
            except (Exception, SystemExit) as raised:  # noqa: BLE001 - the user's script: told as its outcome
                error = raised
        outcome = Outcome(calls, printed=printed.getvalue(), error=error, random=_generator_state())
        return outcome, first


def _named(name: str, index: int, outputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {f"{name} #{index + 1} {path}": tensor for path, tensor in outputs.items()}


def _seed_others() -> None:
    random.seed(CALL_SEED)
    np.random.seed(CALL_SEED)


def _generator_state() -> bytes:
    own = bytes(torch.get_rng_state().numpy())
    return own + real_gpu.generator_state() if real_gpu.in_use() else own
