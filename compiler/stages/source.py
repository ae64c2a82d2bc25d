"""The snippet as understood: its form, model, inputs, loss and mode, and what was assumed."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from typing import Any, Literal

import torch

from compiler.events import Mode, StageFinished, StageName, StageStarted
from compiler.ir.source import InputValue, Parameters, SourcePayload
from compiler.session import Session
from compiler.snippet import Loaded, Snippet, named_tensors, requires_grad
from compiler.text import message
from compiler.torch_compat.compile_calls import name_of
from compiler.torch_compat.fx import tensor_value

_TEXT_LIMIT = 4000


class _SourceStage:
    """The pipeline tells it what it knows, with `declared` and `script`; it hooks nothing."""

    name = StageName.SOURCE
    scope: Literal["run", "compile"] = "run"

    @contextlib.contextmanager
    def install(self, session: Session) -> Iterator[None]:
        yield

    def started(self, session: Session) -> None:
        session.emit(StageStarted(), stage=self.name)

    def declared(self, session: Session, loaded: Loaded, mode: Mode) -> None:
        """`mode` is the resolved one."""
        session.model_line = loaded.snippet.lines.get("model")
        assumed = list(loaded.assumed)
        if session.options.mode is Mode.AUTO:
            assumed.append(
                message("source.mode_training") if mode is Mode.TRAINING else message("source.mode_inference")
            )
        elif mode is Mode.TRAINING and not requires_grad(loaded):
            assumed.append(message("source.forced_training"))
        if loaded.scenario is not None:
            assumed.append(message("source.scenario"))
        elif loaded.loss is None and mode is Mode.TRAINING:
            assumed.append(message("source.default_loss"))
        texts = loaded.snippet.texts
        values = _inputs(loaded.model, loaded.calls[0], loaded.kwargs)
        self._say(
            session,
            SourcePayload(
                form="declared",
                model=name_of(loaded.model),
                model_text=_text(loaded.model),
                parameters=_parameters(loaded.model),
                inputs=values,
                calls=len(loaded.calls),
                loss=texts.get("loss", "") if loaded.loss is not None else "",
                mode="training" if mode is Mode.TRAINING else "inference",
                backend=_backend(loaded.compile_kwargs.get("backend", "inductor")),
                compile_kwargs=texts.get("compile_kwargs", "") if loaded.compile_kwargs else "",
                config=texts.get("config", "") if loaded.config else "",
                assumed=assumed,
            ),
        )

    def script(self, session: Session, original: Any, options: dict[str, Any], args: Any, kwargs: Any) -> bool:
        """`original` is what the script compiled, with `options`, and is the first to be called now. Whether it trains."""
        owner = getattr(original, "__self__", original)
        tensors = [tensor for _, tensor in named_tensors((args, kwargs), "inputs")]
        parameters = list(owner.parameters()) if isinstance(owner, torch.nn.Module) else []
        training = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (*tensors, *parameters))
        self._say(
            session,
            SourcePayload(
                form="script",
                model=name_of(original),
                model_text=_text(owner),
                parameters=_parameters(owner),
                inputs=_inputs(owner, args, kwargs),
                mode="training" if training else "inference",
                backend=_backend(options.get("backend") or "inductor"),
                compile_kwargs=", ".join(f"{key}={value!r}" for key, value in options.items()),
                assumed=[message("source.script_first_call")],
            ),
        )
        return training

    def script_without_call(self, session: Session, snippet: Snippet) -> None:
        self._say(session, SourcePayload(form="script", model=snippet.module_class))

    def _say(self, session: Session, payload: SourcePayload) -> None:
        session.artifact(payload, kind="source", name="source", stage=self.name)
        facts: dict[str, int | float | str | bool | None] = {"form": payload.form, "model": payload.model}
        if payload.mode:
            facts["mode"] = payload.mode
        if payload.parameters is not None:
            facts["parameters"] = payload.parameters.elements
        session.emit(StageFinished(facts=facts), stage=self.name)


STAGE = _SourceStage()


def _text(model: Any) -> str:
    text = str(model) if isinstance(model, torch.nn.Module) else ""
    return text if len(text) <= _TEXT_LIMIT else text[: _TEXT_LIMIT - 1] + "…"


def _backend(value: Any) -> str:
    return value if isinstance(value, str) else name_of(value)


def _parameters(model: Any) -> Parameters | None:
    if not isinstance(model, torch.nn.Module):
        return None
    parameters = [p for p in model.parameters() if not torch.nn.parameter.is_lazy(p)]
    buffers = list(model.buffers())
    return Parameters(
        tensors=len(parameters),
        elements=sum(p.numel() for p in parameters),
        bytes=sum(p.numel() * p.element_size() for p in parameters),
        buffers=len(buffers),
        buffer_bytes=sum(b.numel() * b.element_size() for b in buffers),
    )


def _inputs(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[InputValue]:
    """The arguments by the names of the parameters that take them."""
    function = model.forward if isinstance(model, torch.nn.Module) else model
    named: list[tuple[str, Any]]
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
        named = list(bound.arguments.items())
    except (TypeError, ValueError):  # the call itself will say that the arguments do not fit
        named = [(f"inputs[{i}]", value) for i, value in enumerate(args)] + list(kwargs.items())
    found = []
    for name, value in named:
        tensors = list(named_tensors(value, name))
        for path, tensor in tensors:
            found.append(InputValue(name=path, value=tensor_value(tensor)))
        if not tensors:
            text = repr(value)
            found.append(InputValue(name=name, value=None, text=text if len(text) < 200 else text[:199] + "…"))
    return found
