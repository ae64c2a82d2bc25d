"""Triton without a device: the kernel file that Inductor wrote is loaded, its own autotuner gives the configurations and the
options, and Triton compiles one of them. Nothing is launched and nothing is timed.

For a process of its own: the loaded file is the user's program as much as the snippet is, and Triton's settings are process-wide.
"""

from __future__ import annotations

import io
import linecache
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from compiler.errors import AotscopeError
from compiler.text import message
from compiler.torch_compat.hooks import replaced

FILE = "kernel.py"
_TOOL_SECONDS = 60.0


class NoKernelError(AotscopeError):
    """The text is not a kernel that Inductor wrote, or has no such configuration."""


class BuildError(AotscopeError):
    """Triton or the assembler refused; `detail` is what they said."""


@dataclass(frozen=True)
class Loaded:
    """A kernel as its autotuner has it. `configs` are Triton's own; `tuner` is Inductor's."""

    tuner: Any
    configs: list[Any]


@dataclass(frozen=True)
class Compiled:
    """`texts` maps Triton's name of a level to its text; `sass` and `usage` are what the CUDA tools say of the binary ("" for
    AMD); `log` is the assembler's. `metadata` is Triton's."""

    texts: dict[str, str]
    sass: str
    usage: str
    log: str
    metadata: Mapping[str, Any]
    warp_size: int


def triton_version() -> str:
    import triton

    return str(triton.__version__)


def warm_up() -> None:
    """Import what the first compile of a process would: half a second of it."""
    import triton.compiler.code_generator  # noqa: F401


def load_kernel(name: str, text: str) -> Loaded:
    """Run a kernel's source under the name `FILE`, which is what the compiled levels will say. Raises NoKernelError."""
    from torch._inductor.runtime import triton_helpers, triton_heuristics

    module = ModuleType("aotscope_kernel")
    module.__file__ = FILE
    # Triton reads a function's source from its file. There is none, so that no folder of this process gets into what it compiles.
    linecache.cache[FILE] = (len(text), None, text.splitlines(keepends=True), FILE)
    with (
        replaced(triton_helpers, "set_driver_to_gpu", _no_driver),
        replaced(triton_heuristics, "check_autotune_cache", _no_choice),
    ):
        try:
            exec(compile(text, FILE, "exec"), vars(module))
        except (Exception, SystemExit) as error:
            raise NoKernelError(
                message("metal.no_kernel", name=name), detail=f"{type(error).__name__}: {error}"
            ) from error
    tuner = vars(module).get(name)
    if not isinstance(tuner, triton_heuristics.CachingAutotuner):
        raise NoKernelError(message("metal.no_kernel", name=name))
    return Loaded(tuner, list(tuner.configs))


def compile_config(loaded: Loaded, config: Any) -> Compiled:
    """One configuration, with the options that Inductor would give Triton, for the target that the kernel's own text
    names. Raises BuildError."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    tuner = loaded.tuner
    meta = tuner._create_compile_meta(config)
    source = ASTSource(tuner.fn, meta["signature"], meta["constants"], meta["configs"][0])
    warp_size = int(tuner.device_props.warp_size_or_default)
    target = GPUTarget(meta["device_type"], meta["cc"], warp_size)
    said = io.StringIO()
    compilation, nvidia = triton.knobs.compilation, triton.knobs.nvidia
    # A hit of Triton's own cache would print no log.
    compilation.always_compile = True
    nvidia.dump_ptxas_log = True
    try:
        with redirect_stdout(said):
            kernel = triton.compile(source, target=target, options=tuner._create_compile_options(config, meta))
    except Exception as error:
        raise BuildError(
            message("metal.refused", name=tuner.fn.__name__), detail=f"{type(error).__name__}: {error}"
        ) from error
    texts = {level: text for level, text in kernel.asm.items() if isinstance(text, str)}
    cubin = kernel.asm.get("cubin")
    sass, usage = _disassembled(cubin) if isinstance(cubin, bytes) else ("", "")
    return Compiled(texts, sass, usage, said.getvalue(), kernel.metadata._asdict(), warp_size)


def _no_driver(original: Callable[[], None]) -> Callable[[], None]:
    """The kernel's file asks for the driver of a GPU when it is loaded; only a launch needs one."""
    del original
    return lambda: None


def _no_choice(original: Callable[..., Any]) -> Callable[..., Any]:
    """What an earlier run on some GPU chose, by a file beside the kernel's, would leave one configuration of all."""
    del original
    return lambda configs, filename, meta: (configs, None, {})


def _disassembled(cubin: bytes) -> tuple[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "kernel.cubin")
        file.write_bytes(cubin)
        # Without -ndf it takes half as long again, for an analysis that this form of a binary does not get.
        return _tool("nvdisasm", "-c", "-gp", "-ndf", str(file)), _tool("cuobjdump", "-res-usage", str(file))


def _tool(name: str, *arguments: str) -> str:
    import triton

    program = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / name
    try:
        done = subprocess.run(
            [str(program), *arguments], capture_output=True, text=True, timeout=_TOOL_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise BuildError(message("metal.tool_failed", name=name), detail=str(error)) from error
    return done.stdout
