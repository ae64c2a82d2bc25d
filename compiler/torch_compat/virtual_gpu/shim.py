"""The C++ half: built once for each version of torch, kept in a folder of the user's own, loaded into this process for good."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shlex
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

import torch

from compiler.errors import AotscopeError
from compiler.text import message

_SOURCE = Path(__file__).with_name("shim.cpp")
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class ShimError(AotscopeError):
    """It cannot be built or loaded here; `detail` is the compiler's own text."""


def load(half_attention: int) -> None:
    """Build the shim where it is not built yet, and put it in force. `half_attention` is the number of the attention backend
    that is preferred for half types (at::SDPBackend). Raises ShimError."""
    built = _folder() / f"virtual-gpu-{_tag()}.so"
    if not built.exists():
        _build(built)
    _trusted(built)
    try:
        library = ctypes.CDLL(str(built))
    except OSError as fault:
        raise ShimError(message("virtual.shim_unloadable"), detail=str(fault)) from None
    library.aotscope_install(ctypes.c_int64(half_attention))
    # The first backward of the process, while there is no device to start a thread for: a fork of this process must be able to
    # run backwards, too.
    torch.ones((), requires_grad=True).backward()
    library.aotscope_appear()


def _tag() -> str:
    text = f"{torch.__version__} {torch.compiled_with_cxx11_abi()} {_SOURCE.read_text(encoding='utf-8')}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _folder() -> Path:
    """Where it is kept. What we load as code must be nobody else's to write."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = Path(base) / "aotscope"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        # A home that cannot be written to, as inside an outer layer: then it is built once for each process.
        return Path(tempfile.mkdtemp(prefix="aotscope-virtual-gpu-"))
    _trusted(folder)
    return folder


def _trusted(path: Path) -> None:
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & _OTHERS:
        raise ShimError(message("virtual.shim_untrusted", path=str(path)))


def cpp_compiler() -> list[str] | None:
    """The C++ compiler's command: $CXX, g++ or clang++; None when there is none."""
    asked = shlex.split(os.environ.get("CXX", ""))
    if asked and shutil.which(asked[0]):
        return asked
    found = shutil.which("g++") or shutil.which("clang++")
    return [found] if found else None


def _build(built: Path) -> None:
    compiler = cpp_compiler()
    if compiler is None:
        raise ShimError(message("virtual.no_compiler"))
    root = Path(torch.__file__).parent
    with tempfile.TemporaryDirectory(dir=built.parent, prefix="building-") as folder:
        fresh = Path(folder) / built.name
        command = [
            *compiler, "-O1", "-std=c++20", "-shared", "-fPIC", f"-I{root / 'include'}", str(_SOURCE), "-o", str(fresh),
            f"-L{root / 'lib'}", "-lc10", "-ltorch_cpu",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ShimError(message("virtual.shim_failed"), detail=done.stderr[-4000:])
        fresh.chmod(0o700)
        os.replace(fresh, built)  # whole or not at all, whoever builds at the same time
