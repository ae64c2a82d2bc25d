"""The figures of devices and the formula of occupancy, against what others have published and we did not write: NVIDIA's own
calculator (a header that Triton's wheel brings along) and torch's table of data sheets."""

from __future__ import annotations

import itertools
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest
from torch._inductor.analysis.device_info import lookup_device_info

from compiler.metal.occupancy import Usage, occupancy, reserved_shared
from compiler.targets import BY_ID, TARGETS, Device
from compiler.torch_compat.virtual_gpu.shim import cpp_compiler

NVIDIA = [target.id for target in TARGETS if target.device is not None and target.device.vendor == "nvidia"]
# Triton's blocks are powers of two of warps. Others would meet a check of the calculator's that ours does not make.
THREADS = (32, 64, 128, 256, 512, 1024)
REGISTERS = (16, 24, 32, 33, 40, 41, 63, 64, 65, 80, 96, 97, 128, 168, 200, 255)
SHARED = (0, 1, 100, 1023, 1024, 7000, 16384, 33000, 49152, 65536, 99 << 10, 163 << 10, 227 << 10, 228 << 10)

# Lines of four numbers (threads, registers, shared bytes of the block) in, resident blocks out.
CALCULATOR = """
#include <cstdio>
#include <cstdlib>
#include "cuda_occupancy.h"
int main(int, char** argv) {
  cudaOccDeviceProp device;
  device.computeMajor = atoi(argv[1]);
  device.computeMinor = atoi(argv[2]);
  device.maxThreadsPerBlock = atoi(argv[3]);
  device.maxThreadsPerMultiprocessor = atoi(argv[4]);
  device.regsPerBlock = device.regsPerMultiprocessor = atoi(argv[5]);
  device.warpSize = 32;
  device.sharedMemPerBlock = 48 << 10;
  device.sharedMemPerBlockOptin = atoi(argv[6]);
  device.sharedMemPerMultiprocessor = atoi(argv[7]);
  device.reservedSharedMemPerBlock = atoi(argv[8]);
  device.numSms = 1;
  cudaOccDeviceState state;
  int threads, registers, shared;
  while (scanf("%d %d %d", &threads, &registers, &shared) == 3) {
    cudaOccFuncAttributes kernel;
    kernel.maxThreadsPerBlock = device.maxThreadsPerBlock;
    kernel.numRegs = registers;
    kernel.sharedSizeBytes = 0;
    kernel.partitionedGCConfig = PARTITIONED_GC_OFF;
    kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    kernel.maxDynamicSharedSizeBytes = shared;
    kernel.numBlockBarriers = 1;
    cudaOccResult result;
    if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state, threads, shared)) return 1;
    printf("%d\\n", result.activeBlocksPerMultiprocessor);
  }
}
"""


@pytest.fixture(scope="module")
def calculator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    triton = find_spec("triton")
    compiler = cpp_compiler()
    if triton is None or triton.origin is None or compiler is None:
        pytest.skip("needs Triton's wheel and a C++ compiler")
    include = Path(triton.origin).parent / "backends" / "nvidia" / "include"
    folder = tmp_path_factory.mktemp("calculator")
    source, built = folder / "calculator.cpp", folder / "calculator"
    source.write_text(CALCULATOR, encoding="utf-8")
    subprocess.run([*compiler, "-O1", f"-I{include}", str(source), "-o", str(built)], check=True, timeout=120)
    return built


def described(device: Device) -> list[str]:
    figures = (
        *device.capability,
        device.threads_per_block.value,
        device.threads_per_multiprocessor.value,
        device.registers_per_multiprocessor.value,
        device.shared_bytes_per_block.value,
        device.shared_bytes_per_multiprocessor.value,
        reserved_shared(device),
    )
    return [str(int(figure)) for figure in figures]


@pytest.mark.parametrize("target", NVIDIA)
def test_occupancy_is_that_of_nvidias_calculator(calculator: Path, target: str) -> None:
    device = BY_ID[target].device
    assert device is not None
    cases = list(itertools.product(THREADS, REGISTERS, SHARED))
    asked = "".join(f"{threads} {registers} {shared}\n" for threads, registers, shared in cases)
    command = [str(calculator), *described(device)]
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=True, timeout=60)
    wanted = dict(zip(cases, map(int, done.stdout.split()), strict=True))
    assert len(set(wanted.values())) > 5
    ours = {case: occupancy(device, Usage(*case)) for case in cases}
    found = {case: one.blocks for case, one in ours.items() if one is not None}
    assert found == wanted


@pytest.mark.parametrize(
    ("target", "name"), [("sm_80", "NVIDIA A100"), ("sm_90", "NVIDIA H100"), ("gfx942", "AMD MI300X")]
)
def test_published_rates_are_those_of_torchs_own_table(target: str, name: str) -> None:
    """Within what the data sheets round."""
    device, theirs = BY_ID[target].device, lookup_device_info(name)
    assert device is not None
    assert theirs is not None
    # Its double precision has no sparse form.
    dense = {
        str(dtype).removeprefix("torch."): rate
        / (1 if str(dtype) in ("torch.float64", "torch.float32") else theirs.tops_sparsity_factor)
        for dtype, rate in theirs.tops.items()
    }
    shared = (device.matrix.keys() | {"float32"}) & dense.keys()
    assert len(shared) >= 5
    for dtype in shared:
        rate = (device.matrix.get(dtype) or device.vector[dtype]).value / 1e12
        assert rate == pytest.approx(dense[dtype], rel=0.005), dtype
    assert device.bandwidth.value / 1e9 == theirs.dram_bw_gbs
    assert device.memory_bytes.value / (1 << 30) == theirs.dram_gb
