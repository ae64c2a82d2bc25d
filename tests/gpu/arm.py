"""One arm: models compiled for a virtual GPU, or for the real one, and what came of each.

`python -m tests.gpu.arm virtual|real TARGET OUT SECONDS EACH AT_ONCE MODEL…` writes OUT, one JSON object, within SECONDS; each
model gets at most EACH, in a fork of this process, AT_ONCE at a time. The arms differ in the GPU alone: `_virtual` puts it in
place and keeps what is generated from being run; `_real` compiles and runs as any program does. Both write down what goes through
the same two places: Inductor's `save_output_code`, and `triton.compile`.

This process does not touch CUDA: its forks do.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.gpu import plain

_LOOK_SECONDS = 0.02
# A kernel of the generated file: the comment above it, its name, its source.
_KERNEL = re.compile(r"((?:^#[^\n]*\n)*)^(\w+) = async_compile\.triton\('[^']+', '''(.*?)'''", re.M | re.S)
_NODE = re.compile(r"^#   %(\w+) : .*? = call_function", re.M)


@dataclass
class Recorded:
    """Generated files in order, and of each kernel that Triton compiled the configuration → its PTX or assembly."""

    codes: list[str] = field(default_factory=list)
    machine: dict[str, dict[str, str]] = field(default_factory=dict)


@contextmanager
def recording() -> Iterator[Recorded]:
    import triton
    from torch._inductor.graph import GraphLowering

    found = Recorded()
    compile_, save = triton.compile, GraphLowering.save_output_code

    def compiled(source: Any, *args: Any, **kwargs: Any) -> Any:
        kernel = compile_(source, *args, **kwargs)
        text = kernel.asm.get("ptx") or kernel.asm.get("amdgcn") or ""
        name = getattr(source.fn, "__name__", str(source))
        options = kernel.metadata
        constants = {
            source.fn.arg_names[place[0]]: value
            for place, value in source.constants.items()
            if isinstance(place, tuple) and len(place) == 1
        }
        config = f"{json.dumps(constants, sort_keys=True, default=str)} warps={options.num_warps} stages={options.num_stages}"
        found.machine.setdefault(name, {})[config] = text
        return kernel

    triton.compile, GraphLowering.save_output_code = compiled, staticmethod(found.codes.append)
    try:
        yield found
    finally:
        triton.compile, GraphLowering.save_output_code = compile_, save


# --- the arms --------------------------------------------------------------------------------------------------------


@contextmanager
def _settings() -> Iterator[None]:
    """Of both arms: nothing out of a cache, nothing in another process, and kernels that are compiled where they are recorded."""
    import torch._functorch.config as functorch_config
    import torch._inductor.config as inductor_config

    wanted = {
        "force_disable_caches": True,
        "compile_threads": 1,
        "use_static_cuda_launcher": False,
        "use_static_triton_launcher": False,
    }
    there = {name: value for name, value in wanted.items() if hasattr(inductor_config, name)}
    with inductor_config.patch(there), functorch_config.patch(enable_autograd_cache=False):
        yield


@contextmanager
def _virtual(found: Recorded) -> Iterator[None]:
    from torch._inductor.codecache import PyCodeCache

    from compiler.torch_compat.interpreter import interpreted
    from compiler.torch_compat.virtual_gpu.fakes import fake_world

    with fake_world(), interpreted(lambda: None, lambda _: None):
        yield
    # What the first call would have done on a GPU: each kernel's autotuner compiles its configurations.
    for code in found.codes:
        for _, name, source in _KERNEL.findall(code):
            tuner = getattr(PyCodeCache.load(source), name)
            for config in tuner.configs:
                tuner._precompile_config(config)


@contextmanager
def _real(found: Recorded) -> Iterator[None]:
    import torch

    del found
    with torch.device("cuda"):
        yield
    torch.cuda.synchronize()


def perform(arm: str, file: Path) -> dict[str, Any]:
    """One model, by the rules of the corpus; what was generated, and what it raised ("" when nothing)."""
    import torch

    from compiler.events import Mode
    from compiler.snippet import Snippet, load, run_calls, run_scenario
    from compiler.torch_compat.settings import applied

    source = file.read_text(encoding="utf-8")
    snippet = Snippet(source, "declared", file, {}, {})
    error = ""
    with recording() as found, _settings():
        try:
            with (_virtual if arm == "virtual" else _real)(found), ExitStack() as stack:
                loaded = load(snippet, "cuda")
                stack.enter_context(applied(loaded.config))
                compiled = torch.compile(loaded.model, **loaded.compile_kwargs)
                if loaded.scenario is not None:
                    run_scenario(loaded, compiled)
                else:
                    run_calls(loaded, compiled, Mode.AUTO, keep=False)
        except Exception as fault:  # noqa: BLE001 - a model that fails is a row of the table
            detail = getattr(fault, "detail", "") or str(fault)
            error = f"{type(fault).__name__}: {detail}"[:2000]
            if os.environ.get("AOTSCOPE_GPU_TRACE"):
                traceback.print_exc()
    return {"error": error, "codes": found.codes, "kernels": kernels(found)}


def kernels(found: Recorded) -> list[dict[str, Any]]:
    """In the order of the generated files: `group` are the FX nodes that a kernel computes, `machine` configuration → text."""
    return [
        {"graph": graph, "name": name, "group": _NODE.findall(comment), "source": source, "machine": found.machine.get(name, {})}
        for graph, code in enumerate(found.codes)
        for comment, name, source in _KERNEL.findall(code)
    ]  # fmt: skip


# --- the process -----------------------------------------------------------------------------------------------------


def prepare(arm: str, target: str) -> None:
    """Everything that the forks need, imported once. A private part of torch that is not there is said by its name."""
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    plain.stand_in()
    from compiler.targets import BY_ID

    if target not in BY_ID:
        raise SystemExit(f"there is no virtual GPU {target}: --target takes one of {', '.join(BY_ID)}")
    try:
        if arm == "virtual":
            from compiler.torch_compat.virtual_gpu import install

            install(target)  # type: ignore[arg-type]
        import torch._inductor.compile_fx
        import torch._inductor.runtime.triton_heuristics

        import compiler.snippet
        import compiler.torch_compat.interpreter
        import compiler.torch_compat.virtual_gpu.fakes  # noqa: F401
    except (ImportError, AttributeError) as missing:
        import torch

        raise SystemExit(f"torch {torch.__version__} has not what the virtual GPU is built on: {missing}") from missing


@dataclass
class _Child:
    file: Path
    pid: int
    answer: Path
    began: float


def run_all(
    work: Callable[[Path], dict[str, Any]], files: list[Path], seconds: float, each: float, at_once: int
) -> dict[str, Any]:
    """Each file's answer, or why there is none. Whoever has no time left is left out, and said to be."""
    until = time.monotonic() + seconds
    waiting, running, results = list(files), list[_Child](), dict[str, Any]()
    with tempfile.TemporaryDirectory(prefix="aotscope-gpu-") as folder:
        while waiting or running:
            now = time.monotonic()
            while waiting and len(running) < at_once and now < until:
                file = waiting.pop(0)
                running.append(_start(work, file, Path(folder, f"{file.stem}.json")))
            if now >= until:
                results |= {file.stem: {"left_out": "no time was left"} for file in waiting}
                waiting = []
            for child in list(running):
                done, status = os.waitpid(child.pid, os.WNOHANG)
                late = now - child.began > each or now > until
                if not done and late:
                    os.killpg(child.pid, signal.SIGKILL)
                    os.waitpid(child.pid, 0)
                    why = f"it took longer than {each:.0f} s" if now <= until else "no time was left"
                    results[child.file.stem] = {"left_out": why}
                elif done:
                    code = os.waitstatus_to_exitcode(status)
                    told = json.loads(child.answer.read_text(encoding="utf-8")) if child.answer.exists() else None
                    found = told or {"left_out": f"its process ended with {code}"}
                    results[child.file.stem] = found | {"seconds": round(now - child.began, 2)}
                else:
                    continue
                running.remove(child)
            time.sleep(_LOOK_SECONDS)
    return results


def _start(work: Callable[[Path], dict[str, Any]], file: Path, answer: Path) -> _Child:
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        try:
            os.setpgid(0, 0)
            own = answer.with_suffix("")
            own.mkdir()
            os.environ |= {"TORCHINDUCTOR_CACHE_DIR": str(own / "inductor"), "TRITON_CACHE_DIR": str(own / "triton")}
            found = json.dumps(work(file))
            answer.with_suffix(".part").write_text(found, encoding="utf-8")
            os.replace(answer.with_suffix(".part"), answer)
        except BaseException:  # noqa: BLE001 - nothing may return into the parent's loop
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(0)
    return _Child(file, pid, answer, time.monotonic())


def described(arm: str, target: str) -> dict[str, Any]:
    """The versions, and the device's properties as Inductor reads them. Of the real device in a fork: this touches it."""
    import torch
    import triton

    about: dict[str, Any] = {"arm": arm, "target": target, "torch": torch.__version__, "triton": triton.__version__}
    about["plain"] = plain.used()
    properties = torch.cuda.get_device_properties(0)
    names = (
        "name", "major", "minor", "multi_processor_count", "regs_per_multiprocessor", "max_threads_per_multi_processor",
        "warp_size", "total_memory", "L2_cache_size", "shared_memory_per_block_optin", "gcnArchName",
    )  # fmt: skip
    return about | {"device": {name: getattr(properties, name) for name in names if hasattr(properties, name)}}


def main() -> None:
    arm, target, out, seconds, each, at_once, *files = sys.argv[1:]
    began = time.monotonic()
    prepare(arm, target)
    limit = float(seconds) - (time.monotonic() - began)
    about = run_all(lambda _: described(arm, target), [Path("about")], limit, limit, 1)["about"]
    limit = float(seconds) - (time.monotonic() - began)
    models = run_all(lambda file: perform(arm, file), [*map(Path, files)], limit, float(each), int(at_once))
    spent = round(time.monotonic() - began, 1)
    Path(out).write_text(json.dumps({"about": about, "models": models, "seconds": spent}), encoding="utf-8")


if __name__ == "__main__":
    main()
