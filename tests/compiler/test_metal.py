"""One kernel down to the metal: the formulas, the locations, and what Triton makes of a small kernel without a GPU.
AOTSCOPE_UPDATE_GOLDEN=1 writes the golden files anew."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from compiler.events import KernelQuestion, Options, RunRequest
from compiler.ir.code import LineMarks
from compiler.ir.metal import MetalPayload
from compiler.metal import locations
from compiler.metal.occupancy import Usage, occupancy
from compiler.targets import BY_ID, TargetId
from compiler.torch_compat.triton_build import load_kernel
from tests.compiler.corpus_run import read_frames

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "metal"
NAME = "triton_per_fused__softmax_backward_data_0"
FIRST = 40


@pytest.mark.parametrize(
    ("target", "usage", "blocks", "warps"),
    [
        # By hand from the published limits: 65536 / (32 × 32) = 64 warps; 65536 / (128 × 32) = 16 warps;
        # 233472 / (64 KiB + 1 KiB) = 3 blocks; half of a multiprocessor's threads in one block; 32 blocks of one warp.
        ("sm_90", Usage(threads=128, registers=32, shared=0), 16, 64),
        ("sm_90", Usage(threads=128, registers=128, shared=0), 4, 16),
        ("sm_90", Usage(threads=128, registers=32, shared=65536), 3, 12),
        ("sm_90", Usage(threads=1024, registers=32, shared=0), 2, 64),
        ("sm_90", Usage(threads=32, registers=16, shared=0), 32, 32),
        ("sm_89", Usage(threads=32, registers=16, shared=0), 24, 24),
        ("sm_75", Usage(threads=256, registers=64, shared=0), 4, 32),
        # 512 / 128 = 4 waves of each of four SIMDs; half of the unit's 64 KiB.
        ("gfx942", Usage(threads=256, registers=128, shared=0), 4, 16),
        ("gfx942", Usage(threads=256, registers=17, shared=32768), 2, 8),
    ],
)
def test_occupancy(target: str, usage: Usage, blocks: int, warps: int) -> None:
    device = BY_ID[target].device
    assert device is not None
    found = occupancy(device, usage)
    assert found is not None
    assert (found.blocks, found.warps) == (blocks, warps)
    assert min(limit.blocks for limit in found.limits if limit.blocks is not None) == blocks


def test_what_was_inlined_counts_as_the_kernels_line() -> None:
    mlir = """\
#loc3 = loc(callsite(#loc1 at #loc2))
module {
  tt.func public @kernel() {
    %a = arith.addf %x, %y : f32 loc(#loc3)
    %b = arith.mulf %a, %a : f32 loc(#loc4)
    %c = arith.constant 1 : i32 loc(#loc)
    tt.return loc(#loc5)
  }
}
#loc = loc(unknown)
#loc1 = loc("triton/language/standard.py":263:15)
#loc2 = loc("tmp6"("kernel.py":31:20))
#loc4 = loc(fused[#loc2, "kernel.py":33:4])
#loc5 = loc("kernel.py":0:0)
"""
    assert locations.of_mlir(mlir, "kernel.py") == {4: 31, 5: 33}
    assert locations.mlir_statements(mlir) == {4, 5, 6, 7}
    ptx = """\
$L__func_begin0:
\t.loc\t1 30 12                         // kernel.py:30:12
\tmov.u32 \t%r1, %ctaid.x;
$L__tmp0:
\t.loc\t2 263 15                        // standard.py:263:15 @[ standard.py:293:36 @[ kernel.py:31:20 ] ]
\tadd.f32 \t%r2, %r1, %r1;
\t.loc\t1 0 0                           // kernel.py:0
\tret;
$L__func_end0:
\t.file\t1 "kernel.py"
\t.file\t2 "triton/language/standard.py"
"""
    lines = locations.of_assembly(ptx, "kernel.py")
    assert lines == {3: 30, 6: 31}
    assert locations.assembly_statements(ptx) == {3, 6, 8}
    sass = """\
\t//## File ".nv_debug_ptx_txt", line 6
        /*0010*/                   FADD R2, R1, R1 ;
\t//## File ".nv_debug_ptx_txt", line 8
        /*0020*/                   EXIT ;
"""
    assert locations.of_sass(sass, lines) == {2: 31}
    assert locations.sass_statements(sass) == {2, 4}


def down_to_metal(target: TargetId, config: int = 0, of: str = "") -> tuple[MetalPayload | None, str]:
    """By a process of the target's own, as a worker's child does it; the payload, and how the phase ended. `of`: the target whose
    kernel it is, by default the same."""
    text = (GOLDEN / f"{of or target}.kernel.txt").read_text(encoding="utf-8")
    line = next(number for number, row in enumerate(text.splitlines(), 1) if "tl.sum" in row)
    asked = KernelQuestion(
        parent="p",
        kernel=f"0_0/codegen/backward/{NAME}",
        config=config,
        text=text,
        first_line=FIRST,
        strings=["0_0/post_grad/backward/sum_2", "line/15"],
        marks=LineMarks(line=[FIRST + line - 1, FIRST + line - 1], entity=[0, 1]),
    )
    request = RunRequest(source="", options=Options(target=target), question=asked)
    read, write = os.pipe()
    # Descriptor 3 is where the child speaks.
    run = f"import os, runpy, sys; os.dup2({write}, 3); sys.argv = ['', 'kernel']; "
    run += "runpy.run_module('compiler.child', run_name='__main__')"
    child = subprocess.Popen(
        [sys.executable, "-c", run],
        stdin=subprocess.PIPE,
        pass_fds=[write],
        cwd=ROOT,
    )
    os.close(write)
    assert child.stdin is not None
    child.stdin.write(request.model_dump_json().encode())
    child.stdin.close()
    with os.fdopen(read, "rb") as pipe:
        data = pipe.read()
    child.wait()
    _, done = read_frames(data)
    start = data.find(b'{"format":"metal/1"')
    assert done is not None
    if start < 0:
        return None, done.outcome.model_dump_json()
    size = next(row.body.artifact.bytes for row in read_frames(data)[0] if row.body.type == "artifact")
    return MetalPayload.model_validate_json(data[start : start + size]), done.outcome.type


def described(value: MetalPayload) -> str:
    rows = [f"{value.kernel} for {value.target}"]
    rows += [f"candidate {one.blocks} warps={one.warps} stages={one.stages}" for one in value.candidates]
    rows += [f"{one.name} = {one.value}  ({one.source})" for one in value.needs]
    assert value.occupancy is not None
    rows += [f"{one.resource}: {one.formula} → {one.blocks}" for one in value.occupancy.limits]
    rows.append(f"occupancy {value.occupancy.warps}/{value.occupancy.most_warps}")
    for level in value.levels:
        rows.append(
            f"{level.name}: {level.linked} of {level.statements} linked, lines {sorted({*level.triton_line} - {0})}"
        )
    return "\n".join(rows) + "\n"


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")
@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
def test_a_small_kernel(target: TargetId) -> None:
    value, ended = down_to_metal(target)
    assert value is not None, ended
    machine = value.levels[-1]
    assert machine.name == ("sass" if target == "sm_90" else "amdgcn")
    # The reduction's machine code leads back to the node and to the model's line.
    summed = [
        machine.code.strings[entity]
        for line, entity in zip(machine.code.marks.line, machine.code.marks.entity, strict=True)
    ]
    assert {"0_0/post_grad/backward/sum_2", "line/15"} <= {*summed}
    for level in value.levels:
        assert len(level.triton_line) == level.code.text.count("\n") + 1
        assert level.linked >= 0.8 * level.statements
        assert str(ROOT) not in level.code.text
    file = GOLDEN / f"{target}.txt"
    if os.environ.get("AOTSCOPE_UPDATE_GOLDEN"):
        file.write_text(described(value), encoding="utf-8")
    assert described(value) == file.read_text(encoding="utf-8")


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")
def test_what_was_once_chosen_on_some_gpu_hides_no_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inductor keeps its choices in a file beside the kernel's, and takes none but the chosen one when it finds it."""
    from torch._inductor.runtime.autotune_cache import AutotuneCache
    from triton import Config

    text = (GOLDEN / "sm_90.kernel.txt").read_text(encoding="utf-8")

    class Chosen:
        def read_best(self, meta: object, configs: list[Config]) -> Config:
            return configs[-1]

    monkeypatch.setattr(AutotuneCache, "create", lambda *_: Chosen())
    loaded = load_kernel(NAME, text)
    assert len(loaded.configs) > 1


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")
def test_a_configuration_that_is_not_there_is_said() -> None:
    value, ended = down_to_metal("sm_90", config=99)
    assert value is None
    assert "metal.no_config" in ended


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")
def test_a_kernel_of_the_machines_own_gpu_is_taken_down_by_its_capability() -> None:
    """Triton needs no GPU for it: what comes out for an H100 is what the virtual one gives."""
    value, ended = down_to_metal("cuda", of="sm_90")
    assert value is not None, ended
    virtual, _ = down_to_metal("sm_90")
    assert virtual is not None
    assert value.model_copy(update={"target": "sm_90"}) == virtual
    assert down_to_metal("cuda", of="gfx942")[0] is None
