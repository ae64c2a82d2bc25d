"""aotscope from Python: `from aotscope import explore` in a notebook or a script."""

from __future__ import annotations

from aotscope.notebook import Explored, explore

__all__ = ["Explored", "explore"]
