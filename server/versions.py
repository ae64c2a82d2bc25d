"""Which engine would run a snippet, found out without importing it."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache
def versions() -> dict[str, str]:
    """Installed versions that a run's result depends on; "" for a package that is absent here (the worker may have it)."""
    found = {}
    for package in ("aotscope", "torch", "triton"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = ""
    return found
