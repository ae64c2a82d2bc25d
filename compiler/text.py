"""What the product says in words: a key and its parameters, put into a language by whoever shows it."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic_core import PydanticSerializationError


class Frozen(BaseModel):
    """Base of every value that travels: immutable, and strict about unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="null")


def to_json(value: Frozen) -> bytes:
    """A value as it travels. A user's text may hold lone surrogates, which UTF-8 cannot: each becomes its escape, `\\udc80`."""
    try:
        return value.model_dump_json().encode()
    except PydanticSerializationError:
        return type(value).model_validate(_encodable(value.model_dump())).model_dump_json().encode()


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_encodable(key): _encodable(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_encodable(inner) for inner in value)
    return value


class Message(Frozen):
    """A sentence of the product. `key` names an entry of `compiler/messages/<language>/*.json`; what torch or the
    user said travels as a parameter and stays as it is."""

    key: str
    params: dict[str, str | int | float | bool | None] = {}


def message(key: str, **params: str | int | float | bool | None) -> Message:
    """A `Message`. Keys are written as literals, so that a test can find each of them in the message files."""
    return Message(key=key, params=params)


LANGUAGES = ("en", "zh")
_FOLDER = Path(__file__).parent / "messages"


@cache
def catalogue(language: str) -> dict[str, str]:
    """Key → template of one language: all of `compiler/messages/<language>/*.json`, whose keys are distinct."""
    merged: dict[str, str] = {}
    for file in sorted((_FOLDER / language).glob("*.json")):
        merged |= json.loads(file.read_text(encoding="utf-8"))
    return merged


def render(text: Message, language: str = "en") -> str:
    """The sentence in a language. A template holds `{name}` for each parameter. An unknown key, which a run can forge,
    is its own sentence."""
    template = catalogue(language).get(text.key, text.key)
    return re.sub(r"\{(\w+)\}", lambda hit: str(text.params.get(hit[1], hit[0])), template)
