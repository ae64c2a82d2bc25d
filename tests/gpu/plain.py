"""What stands for pydantic on a machine that has only torch: the compiler's values as plain objects, without validation.

Enough for `compiler.targets`, `compiler.text` and `compiler.events` to be imported and their values to be made; nothing here
travels, so nothing has to be checked."""

from __future__ import annotations

import importlib.util
import sys
import types
from typing import Any


class BaseModel:
    """Fields by keyword; a field that is not given has the class's own value."""

    def __init__(self, **fields: Any) -> None:
        vars(self).update(fields)

    def __init_subclass__(cls, **_: Any) -> None:
        """Takes pydantic's class keywords."""


class _Anything:
    """A piece of an annotation, or a type adapter: made at import, never asked."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __class_getitem__(cls, _: Any) -> type[_Anything]:
        return cls


def _field(default: Any = None, *, default_factory: Any = None, **_: Any) -> Any:
    return default_factory() if default_factory is not None else None if default is ... else default


def stand_in() -> None:
    """Put it in pydantic's place where there is none."""
    if "pydantic" in sys.modules or importlib.util.find_spec("pydantic") is not None:
        return
    module = types.ModuleType("pydantic")
    vars(module).update(
        BaseModel=BaseModel, ConfigDict=dict, Field=_field, BeforeValidator=_Anything, TypeAdapter=_Anything
    )
    sys.modules["pydantic"] = module


def used() -> bool:
    """Whether what is called pydantic in this process is this."""
    return getattr(sys.modules.get("pydantic"), "BaseModel", None) is BaseModel
