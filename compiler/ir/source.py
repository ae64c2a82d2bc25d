"""The source stage: the snippet as understood."""

from __future__ import annotations

from typing import Literal

from compiler.ir.graph import Value
from compiler.text import Frozen, Message


class InputValue(Frozen):
    """One argument of the model: `name` is its parameter's name where it is known."""

    name: str
    value: Value | None
    text: str = ""


class Parameters(Frozen):
    tensors: int
    elements: int
    bytes: int
    buffers: int
    buffer_bytes: int


class SourcePayload(Frozen):
    """`assumed` says what the snippet left open and was decided for it."""

    format: Literal["source/1"] = "source/1"
    form: Literal["declared", "script"]
    model: str = ""
    model_text: str = ""
    parameters: Parameters | None = None
    inputs: list[InputValue] = []
    calls: int = 1
    loss: str = ""
    mode: Literal["training", "inference"] | None = None
    backend: str = "inductor"
    compile_kwargs: str = ""
    config: str = ""
    assumed: list[Message] = []
