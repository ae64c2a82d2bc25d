"""What code is compiled for: the CPU, a GPU that is there, or a *virtual* GPU, for which Inductor and Triton compile on a machine
that has none. Torch-free: the API, the command line and the page read this table.

A device's figures are those that Inductor and Triton read to choose configurations, and the published rates that an estimate of
time rests on. Every figure names its source. Nothing here was measured on a device by us.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BeforeValidator

from compiler.text import Frozen

TargetId = Literal["cpu", "cuda", "sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "gfx942"]
Kind = Literal["cpu", "gpu", "virtual"]


class Figure(Frozen):
    """A published number, in the unit that the field which holds it says, and where it is published."""

    value: float
    source: str


class Device(Frozen):
    """One GPU as its driver would describe it. Registers are 32 bits wide; memory is in bytes, bandwidth in bytes per second;
    rates are peak operations per second without sparsity, by torch's name of the dtype ("tf32": float32 inputs on tensor cores).

    `vector` rates are those of the ordinary arithmetic units, `matrix` rates those of tensor cores (matrix cores on AMD), with
    accumulation in float32 (int32 for int8) where the vendor tells them apart. A dtype without a published rate is absent."""

    name: str
    vendor: Literal["nvidia", "amd"]
    capability: tuple[int, int]
    multiprocessors: Figure
    registers_per_multiprocessor: Figure
    threads_per_multiprocessor: Figure
    threads_per_block: Figure
    warp_size: int
    shared_bytes_per_multiprocessor: Figure
    shared_bytes_per_block: Figure
    l2_bytes: Figure
    memory_bytes: Figure
    bandwidth: Figure
    vector: dict[str, Figure]
    matrix: dict[str, Figure]


class Target(Frozen):
    """A value of `Options.target`. `name` is what people call it; `aliases` are what they type, in lower case. `device` is None
    where it is known only on the machine itself."""

    id: TargetId
    name: str
    kind: Kind
    aliases: tuple[str, ...] = ()
    device: Device | None = None

    @property
    def torch_device(self) -> Literal["cpu", "cuda"]:
        """The device type of the snippet's tensors. ROCm's torch calls its devices cuda, too."""
        return "cpu" if self.kind == "cpu" else "cuda"


_KIB: Final = 1 << 10
_MIB: Final = 1 << 20
_GIB: Final = 1 << 30
_TERA: Final = 1e12
_GIGA: Final = 1e9

_CUDA_GUIDE = "CUDA C++ Programming Guide, table of technical specifications per compute capability"
_DUMPS = "device properties in published Inductor output of this GPU"


def _rates(source: str, **tera: float) -> dict[str, Figure]:
    return {dtype: Figure(value=value * _TERA, source=source) for dtype, value in tera.items()}


def _nvidia(
    name: str,
    capability: tuple[int, int],
    multiprocessors: Figure,
    *,
    threads: int,
    shared_kib: int,
    shared_block_kib: int,
    l2_bytes: Figure,
    memory_bytes: Figure,
    bandwidth: Figure,
    vector: dict[str, Figure],
    matrix: dict[str, Figure],
) -> Device:
    """What a compute capability fixes has one source, NVIDIA's own table."""

    def fixed(value: int) -> Figure:
        return Figure(value=value, source=_CUDA_GUIDE)

    return Device(
        name=name,
        vendor="nvidia",
        capability=capability,
        multiprocessors=multiprocessors,
        registers_per_multiprocessor=fixed(65536),
        threads_per_multiprocessor=fixed(threads),
        threads_per_block=fixed(1024),
        warp_size=32,
        shared_bytes_per_multiprocessor=fixed(shared_kib * _KIB),
        shared_bytes_per_block=fixed(shared_block_kib * _KIB),
        l2_bytes=l2_bytes,
        memory_bytes=memory_bytes,
        bandwidth=bandwidth,
        vector=vector,
        matrix=matrix,
    )


_T4 = "NVIDIA T4 datasheet"
_TURING = "NVIDIA Turing GPU Architecture whitepaper, Tesla T4"
_A100 = "NVIDIA A100 Tensor Core GPU datasheet, A100 80GB SXM"
_AMPERE = "NVIDIA A100 Tensor Core GPU Architecture whitepaper"
_ADA = "NVIDIA Ada GPU Architecture whitepaper, appendix A, GeForce RTX 4090"
_HOPPER = "NVIDIA H100 Tensor Core GPU Architecture whitepaper, H100 SXM5"
_H100 = "NVIDIA H100 Tensor Core GPU datasheet, H100 SXM"
_BLACKWELL = "NVIDIA Blackwell Architecture Technical Brief, HGX B200, one GPU"
_DGX_B200 = "NVIDIA DGX B200 datasheet, an eighth of the system"
_MI300X = "AMD Instinct MI300X Accelerator data sheet"
_ROCM = "ROCm documentation, AMD GPU specifications, MI300X"
_LLVM = "LLVM AMDGPU subtarget, AMDGPUBaseInfo.cpp"
_QUERY = "device query of a B200, pytorch/ao pull request 4002"

TARGETS: Final[tuple[Target, ...]] = (
    Target(id="cpu", name="CPU", kind="cpu"),
    Target(id="cuda", name="GPU of this machine", kind="gpu", aliases=("gpu",)),
    Target(
        id="sm_90",
        name="H100",
        kind="virtual",
        aliases=("h100", "hopper", "sm90", "sm_90a"),
        device=_nvidia(
            "NVIDIA H100 80GB HBM3",
            (9, 0),
            Figure(value=132, source=_HOPPER),
            threads=2048,
            shared_kib=228,
            shared_block_kib=227,
            l2_bytes=Figure(value=50 * _MIB, source=_HOPPER),
            memory_bytes=Figure(value=80 * _GIB, source=_H100),
            bandwidth=Figure(value=3350 * _GIGA, source=_H100),
            vector=_rates(_HOPPER, float64=33.5, float32=66.9, float16=133.8, bfloat16=133.8),
            matrix=_rates(
                _HOPPER,
                float64=66.9,
                tf32=494.7,
                float16=989.4,
                bfloat16=989.4,
                float8_e4m3fn=1978.9,
                float8_e5m2=1978.9,
                int8=1978.9,
            ),
        ),
    ),
    Target(
        id="sm_100",
        name="B200",
        kind="virtual",
        aliases=("b200", "blackwell", "sm100", "sm_100a"),
        device=_nvidia(
            "NVIDIA B200",
            (10, 0),
            Figure(value=148, source=_QUERY),
            threads=2048,
            shared_kib=228,
            shared_block_kib=227,
            l2_bytes=Figure(value=126 * _MIB, source="NVIDIA Blackwell Tuning Guide"),
            memory_bytes=Figure(value=180 * _GIB, source=_DGX_B200),
            # By that query (bus width and memory clock) 7.67 TB/s: the published figure is a rounder one.
            bandwidth=Figure(value=8000 * _GIGA, source=_DGX_B200),
            vector=_rates(_BLACKWELL, float64=40, float32=80),
            matrix=_rates(
                _BLACKWELL,
                float64=40,
                tf32=1100,
                float16=2250,
                bfloat16=2250,
                float8_e4m3fn=4500,
                float8_e5m2=4500,
                int8=4500,
            ),
        ),
    ),
    Target(
        id="sm_80",
        name="A100",
        kind="virtual",
        aliases=("a100", "ampere", "sm80"),
        device=_nvidia(
            "NVIDIA A100-SXM4-80GB",
            (8, 0),
            Figure(value=108, source=_AMPERE),
            threads=2048,
            shared_kib=164,
            shared_block_kib=163,
            l2_bytes=Figure(value=40 * _MIB, source=_AMPERE),
            memory_bytes=Figure(value=80 * _GIB, source=_A100),
            bandwidth=Figure(value=2039 * _GIGA, source=_A100),
            vector=_rates(_AMPERE, float64=9.7, float32=19.5, float16=78, bfloat16=39),
            matrix=_rates(_AMPERE, float64=19.5, tf32=156, float16=312, bfloat16=312, int8=624),
        ),
    ),
    Target(
        id="sm_89",
        name="RTX 4090",
        kind="virtual",
        aliases=("rtx4090", "rtx 4090", "rtx-4090", "4090", "ada", "sm89"),
        device=_nvidia(
            "NVIDIA GeForce RTX 4090",
            (8, 9),
            Figure(value=128, source=_ADA),
            threads=1536,
            shared_kib=100,
            shared_block_kib=99,
            l2_bytes=Figure(value=72 * _MIB, source=_ADA),
            memory_bytes=Figure(value=24 * _GIB, source=_ADA),
            bandwidth=Figure(value=1008 * _GIGA, source=_ADA),
            vector=_rates(_ADA, float64=1.29, float32=82.6, float16=82.6, bfloat16=82.6),
            matrix=_rates(
                _ADA,
                tf32=82.6,
                float16=165.2,
                bfloat16=165.2,
                float8_e4m3fn=330.3,
                float8_e5m2=330.3,
                int8=660.6,
            ),
        ),
    ),
    Target(
        id="sm_75",
        name="T4",
        kind="virtual",
        aliases=("t4", "turing", "sm75"),
        device=_nvidia(
            "Tesla T4",
            (7, 5),
            Figure(value=40, source=_TURING),
            threads=1024,
            shared_kib=64,
            shared_block_kib=64,
            l2_bytes=Figure(value=4 * _MIB, source=_TURING),
            memory_bytes=Figure(value=16 * _GIB, source=_T4),
            bandwidth=Figure(value=320 * _GIGA, source=_TURING),
            vector=_rates(_TURING, float64=0.254, float32=8.1, float16=16.2),
            matrix=_rates(_T4, float16=65, int8=130),
        ),
    ),
    Target(
        id="gfx942",
        name="MI300X",
        kind="virtual",
        aliases=("mi300x", "mi300", "cdna3"),
        device=Device(
            name="AMD Instinct MI300X",
            vendor="amd",
            capability=(9, 4),
            multiprocessors=Figure(value=304, source=_MI300X),
            # As the driver says it. The unit's file holds twice as many (512 KiB), which the occupancy counts with.
            registers_per_multiprocessor=Figure(value=65536, source=_DUMPS),
            threads_per_multiprocessor=Figure(value=2048, source=_DUMPS),
            threads_per_block=Figure(value=1024, source=_LLVM),
            warp_size=64,
            shared_bytes_per_multiprocessor=Figure(value=64 * _KIB, source=_ROCM),
            shared_bytes_per_block=Figure(value=64 * _KIB, source=_ROCM),
            l2_bytes=Figure(value=4 * _MIB, source=_ROCM + ", of one die"),
            memory_bytes=Figure(value=192 * _GIB, source=_MI300X),
            bandwidth=Figure(value=5300 * _GIGA, source=_MI300X),
            vector=_rates(_MI300X, float64=81.7, float32=163.4),
            matrix=_rates(
                _MI300X,
                float64=163.4,
                float32=163.4,
                tf32=653.7,
                float16=1307.4,
                bfloat16=1307.4,
                float8_e4m3fnuz=2614.9,
                float8_e5m2fnuz=2614.9,
                int8=2614.9,
            ),
        ),
    ),
)

BY_ID: Final[dict[str, Target]] = {target.id: target for target in TARGETS}
_IDS: Final[dict[str, TargetId]] = {
    name: target.id for target in TARGETS for name in (target.id, target.name.lower(), *target.aliases)
}


def canonical(name: object) -> object:
    """The id of a target from any name that people know it by; anything else as it is, for validation to refuse."""
    return _IDS.get(name.strip().lower(), name) if isinstance(name, str) else name


def names() -> list[str]:
    """What a person may type for each target, in the order in which they are shown."""
    return [target.aliases[0] if target.aliases else target.id for target in TARGETS]


# The type of a field that takes a target by any of its names and holds its id.
TargetName = Annotated[TargetId, BeforeValidator(canonical)]
