"""Inductor's precompiled C++ headers: built once from trivial models, and then only read.

Torch keeps them in a folder that every run would write to. Here a run finds those that were built beforehand, and one whose
compiler flags need another does without: the same code, about a second of CPU more for each kernel. Kernels are not kept
that way: a cold compile that finds its kernels compiled is not cold, and its run would tell an untruth."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import torch
import torch._inductor.codecache as codecache
import torch._inductor.config as inductor_config

_INDEX = "index.json"


def _key(header: str, command_line: str) -> str:
    return f"{header}\n{command_line}"


def build_headers(folder: Path) -> None:
    """Compile trivial models with the C++ compiler, and keep the headers that it precompiled for them. An index says which
    belongs to which flags; it is written last."""
    folder.mkdir(parents=True, exist_ok=True)
    index: dict[str, str] = {}
    build = codecache._precompile_header

    @functools.wraps(build)
    def noted(header: str, command_line: str, **options: Any) -> str:
        path: str = build(header, command_line, **options)
        index[_key(header, command_line)] = Path(path).name
        return path

    codecache._HEADER_DIR = str(folder)
    codecache._HEADER_LOCK_DIR = str(folder / "locks")
    codecache._precompile_header = noted
    with inductor_config.patch(cpp_cache_precompile_headers=True, force_disable_caches=True, compile_threads=1):
        _compile_trivial_models()
    unfinished = folder / f"{_INDEX}.new"
    unfinished.write_text(json.dumps(index))
    unfinished.rename(folder / _INDEX)


def _compile_trivial_models() -> None:
    with torch.no_grad():
        torch.compile(lambda x: (x.sin() * 2).sum(0))(torch.ones(4, 4))
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.LayerNorm(4), torch.nn.GELU())
    torch.compile(model)(torch.ones(2, 4)).sum().backward()


def are_built(folder: Path) -> bool:
    return (folder / _INDEX).exists()


def read_headers(folder: Path) -> None:
    """From now on this process and its forks take precompiled headers from `folder`, and build none."""
    built = json.loads((folder / _INDEX).read_text())

    def found(header: str, command_line: str, **_options: Any) -> str:
        name = built.get(_key(header, command_line))
        return "" if name is None else str(folder / name)

    codecache._precompile_header = found
