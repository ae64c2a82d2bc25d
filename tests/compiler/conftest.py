"""Torch warns of its own deprecated parts while Inductor is imported; that is not a fault of a test."""

from __future__ import annotations

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import torch._inductor.compile_fx  # noqa: F401
