"""The proof, where there is a GPU; where there is none, that its parts do what they say: one arm, twice, and the comparison."""

from __future__ import annotations

import copy
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.gpu import compared
from tests.gpu.__main__ import LEAST, MODELS, ROOT, run_arm

needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")
# Built with CUDA is not enough to have a device, and asking for one touches it: the device's node is looked for.
needs_gpu = pytest.mark.skipif(
    torch.version.cuda is None or not os.path.exists("/dev/nvidiactl"),
    reason="no NVIDIA GPU here: virtual and real code were not compared",
)


@needs_gpu
@pytest.mark.timeout(600)
def test_the_virtual_gpu_gives_the_real_ones_code(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-m", "tests.gpu", str(tmp_path)], cwd=ROOT, env=environment, check=False)
    real, virtual = (json.loads((tmp_path / f"{arm}.json").read_text(encoding="utf-8")) for arm in ("real", "virtual"))
    assert done.returncode == 0
    rows = compared.with_kernels(compared.rows(real, virtual))
    assert len(rows) >= LEAST
    assert [row.model for row in rows if not row.all] == []


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The virtual arm with pydantic out of reach, and with it."""
    files = [MODELS / f"{name}.py" for name in ("mlp", "break_logging", "break_data_dependent_if")]
    folder = tmp_path_factory.mktemp("without")
    (folder / "sitecustomize.py").write_text(
        "import importlib.util\nfind = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *rest: None if name == 'pydantic' else find(name, *rest)\n",
        encoding="utf-8",
    )
    return [run_arm("virtual", "sm_90", files, 200, 1, paths) for paths in ((str(folder),), ())]


@needs_triton
def test_an_arm_that_runs_twice_gives_the_same_without_pydantic_too(twice: list[dict[str, Any]]) -> None:
    one, other = twice
    assert (one["about"]["plain"], other["about"]["plain"]) == (True, False)
    assert not compared.devices_differ(one, other)
    rows = {row.model: row for row in compared.rows(one, other)}
    for name in ("mlp", "break_logging"):
        assert rows[name].all
        found = rows[name].found
        assert found is not None
        assert all(same.real > 0 for same in found.values())
    assert "DataDependentOutputException" in rows["break_data_dependent_if"].why
    assert "| mlp |" in compared.markdown(one, other)
    assert "2 the same in everything" in compared.markdown(one, other)
    # Every kernel that was generated was compiled, in each configuration, and computes something.
    for name in ("mlp", "break_logging"):
        told = one["models"][name]
        assert all(kernel["machine"] and kernel["group"] for kernel in told["kernels"])


@needs_triton
@pytest.mark.parametrize("thing", ["groups", "sources", "machine"])
def test_what_differs_is_told(twice: list[dict[str, Any]], thing: str) -> None:
    one, other = twice[0], copy.deepcopy(twice[1])
    kernel = other["models"]["mlp"]["kernels"][0]
    if thing == "groups":
        kernel["group"] = kernel["group"][1:]
    elif thing == "sources":
        kernel["source"] = kernel["source"].replace("tl.load", "tl.store", 1)
    else:
        config = next(iter(kernel["machine"]))
        kernel["machine"][config] = kernel["machine"][config].replace("ld.global", "st.global", 1)
    row = next(row for row in compared.rows(one, other) if row.model == "mlp")
    assert row.found is not None
    assert [name for name, same in row.found.items() if not same.all] == [thing]
    assert any(thing in text and kernel["name"] in text for text in row.differs)


def test_debug_information_is_no_difference_and_an_instruction_is() -> None:
    text = ".loc\t1 30 12 // a.py:30\n\tadd.f32 %f1, %f2, %f3; // begin\n"
    text += '.file 1 "/a/b.py"\n\t.section\t.debug_abbrev\n\t{\n.b8 1\n\t}\n'
    assert compared.plain_ptx(text) == "\tadd.f32 %f1, %f2, %f3;"
    assert compared.plain_ptx(text) != compared.plain_ptx(text.replace("%f3", "%f4"))


def test_a_model_without_time_is_left_out_and_said_to_be() -> None:
    row = compared.row("mlp", {"left_out": "no time was left"}, {"error": "", "codes": [], "kernels": []})
    assert row.found is None
    assert row.why == "real: no time was left"
    assert compared.row("mlp", None, None).why == "real: not run"


def test_a_gpu_without_a_virtual_one_is_said() -> None:
    with pytest.raises(SystemExit, match="there is no virtual GPU sm_86"):
        run_arm("virtual", "sm_86", [], 60, 1)
