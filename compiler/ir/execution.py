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


CudaGraphKind = Literal["recorded", "again", "skipped"]


class CudaGraphEvent(Frozen):
    """What torch did about a CUDA graph, in its own words."""

    kind: CudaGraphKind
    text: str


class TimedCandidate(Frozen):
    """A kernel that Inductor timed, in torch's words; `seconds` is null when it could not be run."""

    text: str
    seconds: float | None = None


class Autotuned(Frozen):
    """One operator whose kernel was chosen by timing: the candidates, the fastest first."""

    operator: str
    candidates: list[TimedCandidate]


class StageStep(Frozen):
    """The whole snippet run with one of torch's backends, against the one before (`before`, "" for eager itself). `worst` is the
    first tensor that does not agree. `error` is the largest distance from eager in float64, as a share of the tensor's largest
    value; null without that yardstick. `failed` is the exception's type and text, when it raised."""

    backend: str
    before: str = ""
    compared: int = 0
    disagree: int = 0
    worst: Comparison | None = None
    error: float | None = None
    failed: str = ""


class WrongBuffer(Frozen):
    """The first of Inductor's buffers that is not the value of its FX node: both against the float64 value, whose largest
    magnitude is `scale`; `difference` is the buffer's, `own` that of the same graph, interpreted."""

    buffer: str
    entity: str
    kernel: str
    line: int | None = None
    difference: float | None = None
    own: float | None = None
    scale: float


class Divergence(Frozen):
    """Where results that differ come from. `first` is the first backend that differs from the one before by more than rounding
    (null: none does). `own` says that all differences are of the size of eager's own error against float64."""

    steps: list[StageStep]
    first: str | None = None
    own: bool = False
    buffer: WrongBuffer | None = None
    buffers_compared: int | None = None
    notes: list[Message] = []


class SlopeCheck(Frozen):
    """Gradients of a model that draws random numbers, at fixed seeds: how far each is from the model's difference quotient
    along a random direction, as a share of both. `agrees` is false when all of compiled's are much farther than eager's."""

    eager: list[float]
    compiled: list[float]
    agrees: bool


class ExecutionPayload(Frozen):
    """`autotuned`, `configs` (Triton kernel → the configuration that is launched) and `cuda_graphs` are of a GPU, where `timing`
    is by its own clock and `kernels` by torch's profiler."""

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
    divergence: Divergence | None = None
    slope: SlopeCheck | None = None
    why_no_slope: Message | None = None
    autotuned: list[Autotuned] = []
    configs: dict[str, str] = {}
    cuda_graphs: list[CudaGraphEvent] = []


class KeyPart(Frozen):
    """One of the things that a cache key is a hash of, under torch's name; `text` is cut."""

    name: str
    digest: str
    text: str = ""


class KeyChange(Frozen):
    """A part of the key that is not what it was in the cold compile: both texts, cut around where they differ; "" where there was
    no such part."""

    name: str
    before: str
    after: str


class CacheProbe(Frozen):
    """One look-up in an otherwise equal setting; `changed` is another batch size. `outcome` is torch's: hit, miss, bypass;
    `reason` its own text for a bypass. `parts` are those of the key where torch tells them (cold only), `changes` what differs
    from the cold look-up in the same place."""

    what: Literal["cold", "warm", "changed"]
    cache: Literal["aot_autograd", "fx_graph"]
    outcome: Literal["hit", "miss", "bypass", "unused"]
    count: int = 1
    reason: str = ""
    key: str = ""
    parts: list[KeyPart] = []
    changes: list[KeyChange] = []


class CachePayload(Frozen):
    format: Literal["cache/1"] = "cache/1"
    probes: list[CacheProbe]
    cold_seconds: float | None = None
    warm_seconds: float | None = None
    notes: list[Message] = []
