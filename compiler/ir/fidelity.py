"""What a run for a virtual GPU cannot know: the decisions that the real device would take part in."""

from __future__ import annotations

from typing import Literal

from compiler.targets import TargetId
from compiler.text import Frozen, Message


class Decision(Frozen):
    """One kind of decision. `count` of `of` (null where there is no whole) are open; `entities` are the ids of what they are
    about, kernels or FX nodes; `text` is it in a sentence. `details` are torch's own words: the candidates of a choice, why a
    CUDA graph is not recorded."""

    kind: Literal["autotune", "selection", "attention", "padding", "cudagraphs", "library"]
    count: int
    of: int | None = None
    entities: list[str] = []
    details: list[str] = []
    text: Message


class FidelityPayload(Frozen):
    """`device` is the name that the device's driver gives; `assumed` the versions that the code was compiled for."""

    format: Literal["fidelity/1"] = "fidelity/1"
    target: TargetId
    name: str
    device: str
    assumed: dict[str, str] = {}
    ran: Message
    decisions: list[Decision] = []
