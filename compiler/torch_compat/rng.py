"""The random numbers of Inductor's C++ kernels, computed here: Philox 4×32-10 with a seed and an offset per element.

The eager kernels of these primitives ignore the seed, so a backward that draws a dropout mask again would draw another one.
With these, forward and backward agree, and the values equal those of the generated code bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch._inductor import inductor_prims
from torch._subclasses.fake_tensor import FakeTensor

Words = npt.NDArray[np.uint64]

_MASK = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def _philox(seed: int, count: int, start: int) -> tuple[Words, Words]:
    """The first two 32-bit words of `count` draws, each from its own counter."""
    c0 = (np.arange(count, dtype=np.uint64) + np.uint64(start)) & _MASK
    c1, c2, c3 = (np.zeros(count, np.uint64) for _ in range(3))
    k0, k1 = np.uint64(seed & 0xFFFFFFFF), np.uint64(0)
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = ((p1 >> _HALF) ^ c1 ^ k0), p1 & _MASK, ((p0 >> _HALF) ^ c3 ^ k1), p0 & _MASK
        k0, k1 = (k0 + np.uint64(0x9E3779B9)) & _MASK, (k1 + np.uint64(0xBB67AE85)) & _MASK
    return c0, c1


def _uniform(words: Words) -> npt.NDArray[np.float32]:
    return (words & np.uint64(0x7FFFFFFF)).astype(np.float32) * np.float32(4.6566127342e-10)


def _random(
    size: Sequence[int], seed: torch.Tensor, mode: str, *, offset: int = 0, align_dtype: torch.dtype | None = None
) -> torch.Tensor:
    first, second = _philox(int(seed), math.prod(size), offset)
    if mode == "rand":
        values = _uniform(first)
    else:
        u1, u2 = np.float32(1) - _uniform(first), np.float32(1) - _uniform(second)
        radius = np.sqrt(-2.0 * np.log(u1).astype(np.float64))
        values = (radius * np.cos(2.0 * np.pi * u2.astype(np.float64))).astype(np.float32)
    return torch.from_numpy(values).reshape(tuple(size))


def _randint(low: int, high: int, size: Sequence[int], seed: torch.Tensor, *, offset: int = 0) -> torch.Tensor:
    first, second = _philox(int(seed), math.prod(size), offset)
    values = ((first | (second << _HALF)) % np.uint64(high - low)).astype(np.int64) + low
    return torch.from_numpy(values).reshape(tuple(size))


def _seeds(count: int, device: torch.device) -> torch.Tensor:
    """As the generated wrapper draws them; the primitive's own eager kernel draws from zero on."""
    return torch.randint(-(2**63), 2**63 - 1, [count], device=device)


def _unless_fake(
    primitive: Callable[..., torch.Tensor], ours: Callable[..., torch.Tensor]
) -> Callable[..., torch.Tensor]:
    """Without values there is nothing to draw from: then the primitive, which knows the shape."""

    def drawn(*args: Any, **kwargs: Any) -> torch.Tensor:
        fake = any(isinstance(value, FakeTensor) for value in (*args, *kwargs.values()))
        return (primitive if fake else ours)(*args, **kwargs)

    return drawn


OVERRIDES: dict[Any, Callable[..., torch.Tensor]] = {
    inductor_prims.random: _unless_fake(inductor_prims.random, _random),
    inductor_prims.randint: _unless_fake(inductor_prims.randint, _randint),
    inductor_prims.seeds: _seeds,
}
