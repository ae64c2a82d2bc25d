"""Running: results against eager, timings, caches."""

from __future__ import annotations

from typing import Literal

from compiler.text import Frozen, Message


class Comparison(Frozen):
    """One tensor, compiled against eager. `max_abs` and `max_rel` are over all elements, null when the shapes or types differ
    (then `mismatch` says how). `agrees` uses torch.testing's default tolerances for the dtype."""

    name: str
    kind: Literal["output", "gradient", "buffer", "printed"]
    call: int = 0
    dtype: str = ""
    shape: list[int] = []
    max_abs: float | None = None
    max_rel: float | None = None
    agrees: bool | None = None
    mismatch: str = ""


class Timing(Frozen):
    """Paired samples in seconds: `eager[i]` and `compiled[i]` were measured one after the other. `ratio` is the median of
    compiled/eager over pairs, `low` and `high` its bootstrap 95 % interval."""

    eager: list[float]
    compiled: list[float]
    ratio: float
    low: float
    high: float
    what: Message


class KernelTime(Frozen):
    name: str
    entity: str = ""
    seconds: float
    calls: int


class ExecutionPayload(Frozen):
    format: Literal["execution/1"] = "execution/1"
    comparisons: list[Comparison]
    compared: bool
    why_not_compared: Message | None = None
    timing: Timing | None = None
    why_not_timed: Message | None = None
    kernels: list[KernelTime] = []
    compile_seconds: float | None = None
    native_seconds: float | None = None
    graphs_differ: Message | None = None


class CacheProbe(Frozen):
    """One compile in an otherwise equal setting. `outcome` is torch's: hit, miss, bypass; `reason` its own text for a bypass."""

    what: Literal["cold", "warm"]
    cache: Literal["aot_autograd", "fx_graph"]
    outcome: Literal["hit", "miss", "bypass", "unused"]
    count: int = 1
    reason: str = ""
    key: str = ""


class CachePayload(Frozen):
    format: Literal["cache/1"] = "cache/1"
    probes: list[CacheProbe]
    cold_seconds: float | None = None
    warm_seconds: float | None = None
    notes: list[Message] = []
