"""The target `cuda` as far as it goes without a GPU: that it says so, and each part that reads what torch would give. What
torch.cuda answers is faked at its edge; nothing here has been held against hardware."""

from __future__ import annotations

import importlib.machinery
import logging
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.autograd import DeviceType

import server.targets
from compiler.events import Failed, Options, RunRequest
from compiler.fork import AsideError, aside
from compiler.ir.execution import CudaGraphEvent
from compiler.native import native
from compiler.paired import paired
from compiler.pipeline import capture
from compiler.targets import TARGETS
from compiler.text import message
from compiler.torch_compat import real_gpu
from compiler.torch_compat.autotuning import autotuned
from compiler.torch_compat.cuda_allocator import allocations, record_on_device
from compiler.torch_compat.logs import cuda_graph_records
from compiler.torch_compat.profiler import mark
from server.engine import queues_of
from server.sandbox.limits import parent_environment
from server.sandbox.outer import bubblewrap
from server.settings import load
from tests.compiler.phases_run import Keeping

ROOT = Path(__file__).parents[2]
MODEL = "import torch\nmodel = torch.nn.Linear(2, 2)\ninputs = (torch.randn(1, 2),)\n"
without_gpu = pytest.mark.skipif(torch.version.cuda is not None, reason="this torch has CUDA")


@without_gpu
@pytest.mark.parametrize("phase", [capture, native])
def test_without_a_gpu_both_phases_say_so(tmp_path: Path, phase: Any) -> None:
    request = RunRequest(source=MODEL, options=Options(target="cuda"))
    outcome = phase(request, Keeping(), root=tmp_path)
    assert isinstance(outcome, Failed)
    assert outcome.cause == message("gpu.absent", torch=torch.__version__, cuda="-")


def test_nothing_is_forked_once_the_gpu_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    assert aside(lambda: 1, 10.0) == 1
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    with pytest.raises(AsideError) as refused:
        aside(lambda: 1, 10.0)
    assert refused.value.cause == message("aside.cuda")
    # A model of the CPU in a notebook that has used the GPU.
    assert aside(lambda: 1, 10.0, without_gpu=True) == 1


# As on a machine with a GPU, where the driver's management library answers and everything else would touch the device.
_TOUCHING = """
import os, torch
def touched(*_, **__):
    raise SystemExit("touched")
torch.cuda._is_compiled = lambda: True
torch.cuda.device_count = lambda: 1
torch.cuda._lazy_init = touched
torch._C._cuda_getDeviceCount = torch._C._cuda_getCurrentRawStream = touched
assert torch.cuda.is_available()
from compiler import warm
warm.warm_up("cuda")
print("untouched", warm.threads())
"""


@without_gpu
def test_the_process_that_children_are_forked_from_never_touches_the_gpu() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _TOUCHING],
        cwd=ROOT,
        env=os.environ | parent_environment(whole=False, gpu=True) | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.stdout == "untouched 1\n", done.stderr[-3000:]


# --- the allocator


def entry(action: str, address: int, size: int) -> dict[str, Any]:
    return {"action": action, "addr": address, "size": size}


def test_each_event_of_the_allocator_has_the_marks_before_it() -> None:
    trace = [
        entry("segment_alloc", 0, 1 << 21),
        entry("alloc", 16, 100),
        entry("alloc", 32, 50),
        entry("free_requested", 16, 100),
        entry("free_completed", 16, 100),
        entry("alloc", 16, 8),
        entry("alloc", 64, 9),  # after the step
    ]
    marks: list[Any] = [
        (0, "phase", "forward"),
        (1, "wrapper", "0:12"),
        (2, "wrapper", ""),
        (2, "phase", "backward"),
        (3, "user", "7"),
    ]
    found = allocations(trace, marks, 4)
    assert [(one.bytes, one.ptr) for one in found] == [(100, 16), (50, 32), (-100, 16), (8, 16)]
    assert [one.marks.get("phase") for one in found] == ["forward", "forward", "backward", "backward"]
    assert [one.marks.get("wrapper", "") for one in found] == ["", "0:12", "", ""]
    assert found[3].marks["user"] == "7"
    assert [one.scope for one in found] == [0, -1, 0, 0]


def test_the_history_is_on_for_the_step_and_off_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    trace: list[dict[str, Any]] = []
    told: list[Any] = []
    stats = {"allocation.all.allocated": 40, "allocation.all.freed": 2}

    def step() -> str:
        for name, size in (("forward", 10), ("backward", 20)):
            mark("phase", name)
            trace.append(entry("alloc", size, size))
            stats["allocation.all.allocated"] += 1
        return "result"

    memory = torch.cuda.memory
    monkeypatch.setattr(memory, "_record_memory_history", lambda **options: told.append(options["enabled"]))
    monkeypatch.setattr(memory, "_snapshot", lambda: {"device_traces": [trace]})
    monkeypatch.setattr(torch.cuda, "memory_stats", lambda: stats)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    result, found = record_on_device(step)
    assert (result, told) == ("result", ["all", None])
    assert [(one.bytes, one.marks["phase"]) for one in found] == [(10, "forward"), (20, "backward")]


# --- times and choices


def test_the_gpus_clock_is_the_one_that_is_read() -> None:
    seconds = iter([2.0, 1.0] * 100)
    found = paired(
        lambda: None,
        lambda: None,
        before_eager=lambda: None,
        before_compiled=lambda: None,
        budget_seconds=0.0,
        limit_seconds=5.0,
        what=message("execute.timed_on_device"),
        clock=lambda step: next(seconds),
    )
    assert {*found.eager, *found.compiled} == {1.0, 2.0}


def test_kernels_of_the_device_are_summed_by_name() -> None:
    def event(name: str, device: Any, microseconds: float) -> SimpleNamespace:
        return SimpleNamespace(
            name=name, device_type=device, time_range=SimpleNamespace(elapsed_us=lambda: microseconds)
        )

    events = [
        event("triton_poi_fused_0", DeviceType.CUDA, 3.0),
        event("aten::add", DeviceType.CPU, 90.0),
        event("triton_poi_fused_0", DeviceType.CUDA, 5.0),
    ]
    found = real_gpu.by_name(events)
    assert found == {"triton_poi_fused_0": (pytest.approx(8e-6), 2)}


def test_a_choice_lists_the_fastest_first_and_what_failed_without_a_time() -> None:
    found = autotuned("mm", [("triton_mm_1", 0.5), ("bad", float("inf")), ("mm", 0.25)])
    assert [(one.text, one.seconds) for one in found.candidates] == [
        ("mm", 0.25e-3),
        ("triton_mm_1", 0.5e-3),
        ("bad", None),
    ]


def test_torchs_log_of_cuda_graphs_is_heard_and_printed_nowhere(capfd: pytest.CaptureFixture[str]) -> None:
    found: list[CudaGraphEvent] = []
    trees = logging.getLogger("torch._inductor.cudagraph_trees.__cudagraphs")
    from torch._inductor.cudagraph_utils import log_cudagraph_skip_and_bump_counter

    with cuda_graph_records(found.append):
        trees.info("[%s] Recording cudagraph tree for graph without symints", "0/0")
        trees.info("[%s] Re-recording function=%s, mode=%s, reason=%s", "0/0", "f", "forward", "address changed")
        log_cudagraph_skip_and_bump_counter("skipping cudagraphs due to cpu device (add)")
        trees.debug("something else")
    assert [(one.kind, one.text) for one in found] == [
        ("recorded", "[0/0] Recording cudagraph tree for graph without symints"),
        ("again", "[0/0] Re-recording function=f, mode=forward, reason=address changed"),
        ("skipped", "skipping cudagraphs due to cpu device (add)"),
    ]
    assert capfd.readouterr() == ("", "")


# --- who serves it


def test_it_is_served_where_there_is_a_gpu_and_a_torch_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node, version = tmp_path / "nvidiactl", tmp_path / "version.py"
    spec = importlib.machinery.ModuleSpec("torch", None, origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(server.targets, "_NVIDIA", str(node))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: spec)
    assert server.targets.refused()["cuda"] == message("gpu.no_device")
    node.touch()
    version.write_text("cuda: Optional[str] = None\n", encoding="utf-8")
    assert server.targets.refused()["cuda"] == message("gpu.not_built")
    version.write_text("cuda: Optional[str] = '13.0'\n", encoding="utf-8")
    assert "cuda" in server.targets.served()


def test_a_worker_takes_runs_of_what_it_serves_and_of_nothing_else() -> None:
    """On a machine with a GPU beside one without, no run for the GPU goes to the other."""
    assert queues_of(["cpu", "sm_90"]) == ["runs"]
    assert queues_of(["cuda"]) == ["runs-gpu"]
    assert queues_of(["cpu", "cuda", "gfx942"]) == ["runs", "runs-gpu"]
    assert server.targets.wanted("") == [target.id for target in TARGETS]
    assert server.targets.wanted("H100, gpu") == ["cuda", "sm_90"]
    with pytest.raises(ValueError, match="AOTSCOPE_TARGETS='h1000': no target is called h1000"):
        load({"AOTSCOPE_TARGETS": "h1000"})


@without_gpu
@pytest.mark.parametrize("command", [["worker"], ["runner", "sockets", "--target", "cuda"]])
def test_a_worker_or_runner_for_a_gpu_that_is_not_there_says_so_and_ends(tmp_path: Path, command: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "server.cli", *command],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT), "AOTSCOPE_DATA": str(tmp_path), "AOTSCOPE_TARGETS": "cuda"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert "GPU of this machine" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_gpus_fork_server_asks_for_the_gpu_without_touching_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    monkeypatch.setenv("SECRET", "1")
    found = parent_environment(whole=False, gpu=True)
    assert (found["PYTORCH_NVML_BASED_CUDA_CHECK"], found["CUDA_VISIBLE_DEVICES"]) == ("1", "1")
    assert "SECRET" not in found
    assert "CUDA_VISIBLE_DEVICES" not in parent_environment(whole=False)


def test_bubblewrap_shows_the_nodes_that_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    words = bubblewrap([], [], None, ["/dev/nvidia0"])
    at = words.index("--dev-bind")
    assert words[at : at + 3] == ["--dev-bind", "/dev/nvidia0", "/dev/nvidia0"]
    assert at > words.index("--dev")
    assert "--dev-bind" not in bubblewrap([], [], None)
