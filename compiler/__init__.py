"""The only code that imports torch: it runs a snippet's compilation and says, as events, what every stage did.

`from compiler import explore` does it for a live model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compiler.notebook import Explored, explore

__all__ = ["Explored", "explore"]


def __getattr__(name: str) -> Any:
    # The contract is imported where torch must not be.
    if name in __all__:
        import compiler.notebook

        return getattr(compiler.notebook, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
