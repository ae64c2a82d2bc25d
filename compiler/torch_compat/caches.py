"""Inductor's and AOTAutograd's caches on disk: put in a place of their own, and watched."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
import torch._dynamo
import torch._functorch.config
import torch._inductor.config
from torch._functorch._aot_autograd.autograd_cache import AOTAutogradCache
from torch._inductor.codecache import FxGraphCache
from torch._inductor.utils import clear_caches

_FOLDER = "TORCHINDUCTOR_CACHE_DIR"
_AOT_ARTIFACT = "aotautograd_cache_"

Outcome = Literal["hit", "miss", "bypass"]
_OUTCOMES: dict[str, Outcome] = {"hit": "hit", "miss": "miss", "bypass": "bypass"}


@dataclass(frozen=True, slots=True)
class CacheEvent:
    """One look-up. `reason` is torch's own text of a bypass; `key` is empty when none could be made. `parts` are torch's lines
    on what the key is a hash of, `[hash] name: text`; there are none where torch does not tell."""

    cache: Literal["aot_autograd", "fx_graph"]
    outcome: Outcome
    key: str = ""
    reason: str = ""
    parts: tuple[str, ...] = ()


@contextmanager
def private_caches(folder: Path) -> Iterator[None]:
    """Caches in `folder` and on, as torch has them by default, and kernels built in this process one by one."""
    before = os.environ.get(_FOLDER)
    os.environ[_FOLDER] = str(folder)
    try:
        with ExitStack() as stack:
            stack.enter_context(
                torch._inductor.config.patch(force_disable_caches=False, fx_graph_cache=True, compile_threads=1)
            )
            stack.enter_context(torch._functorch.config.patch(enable_autograd_cache=True))
            yield
    finally:
        if before is None:
            del os.environ[_FOLDER]
        else:
            os.environ[_FOLDER] = before


def forget_compiled() -> None:
    """Drop what this process has compiled, in memory: what is on disk stays."""
    torch._dynamo.reset()
    clear_caches()


@contextmanager
def cache_events(*, saving: bool = True) -> Iterator[list[CacheEvent]]:
    """Collect every look-up in the two caches until the context ends, in order. With `saving`, what AOTAutograd found when it
    saved its result, too: only then it sees that some cannot be."""
    found: list[CacheEvent] = []
    load, prepare, save_error = (
        FxGraphCache.load_with_key,
        FxGraphCache.prepare_key,
        AOTAutogradCache._handle_save_error,
    )
    trace = torch._logging.trace_structured

    @functools.wraps(load)
    def load_with_key(key: str, debug_lines: list[str], *args: Any, **options: Any) -> Any:
        graph, info = load(key, debug_lines, *args, **options)
        found.append(CacheEvent("fx_graph", info["cache_state"], info.get("key") or "", parts=tuple(debug_lines)))
        return graph, info

    @functools.wraps(prepare)
    def prepare_key(*args: Any, **options: Any) -> Any:
        key, info = prepare(*args, **options)
        if key is None:
            found.append(CacheEvent("fx_graph", "bypass", reason=info.get("cache_bypass_reason", "")))
        return key, info

    @functools.wraps(save_error)
    def handle_save_error(error: Exception, *args: Any, **options: Any) -> None:
        if saving:
            found.append(CacheEvent("aot_autograd", "bypass", reason=str(error)))
        save_error(error, *args, **options)

    @functools.wraps(trace)
    def trace_structured(name: str, metadata_fn: Callable[[], Any] = dict, *args: Any, **options: Any) -> None:
        # AOTAutograd tells the key and the reason nowhere else.
        if name == "artifact" and "payload_fn" in options:
            artifact = metadata_fn()["name"]
            if artifact.startswith(_AOT_ARTIFACT) and (event := _aot_event(artifact, options["payload_fn"])):
                found.append(event)
        trace(name, metadata_fn, *args, **options)

    FxGraphCache.load_with_key = staticmethod(load_with_key)
    FxGraphCache.prepare_key = staticmethod(prepare_key)
    AOTAutogradCache._handle_save_error = staticmethod(handle_save_error)
    torch._logging.trace_structured = trace_structured
    try:
        yield found
    finally:
        FxGraphCache.load_with_key = staticmethod(load)
        FxGraphCache.prepare_key = staticmethod(prepare)
        AOTAutogradCache._handle_save_error = staticmethod(save_error)
        torch._logging.trace_structured = trace


def _aot_event(artifact: str, payload: Callable[[], str]) -> CacheEvent | None:
    outcome = _OUTCOMES.get(artifact[len(_AOT_ARTIFACT) :])
    if outcome is None:
        return None
    info = json.loads(payload())
    parts = tuple(str(line) for line in info.get("components") or ())
    return CacheEvent("aot_autograd", outcome, info.get("key") or "", info.get("cache_bypass_reason") or "", parts)
