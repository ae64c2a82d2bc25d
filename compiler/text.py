"""What the product says in words: a key and its parameters, put into a language by whoever shows it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """Base of every value that travels: immutable, and strict about unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="null")


class Message(Frozen):
    """A sentence of the product. `key` names an entry of `compiler/messages/<language>.json`; what torch or the
    user said travels as a parameter and stays as it is."""

    key: str
    params: dict[str, str | int | float | bool | None] = {}


def message(key: str, **params: str | int | float | bool | None) -> Message:
    """A `Message`. Keys are written as literals, so that a test can find each of them in the message files."""
    return Message(key=key, params=params)
