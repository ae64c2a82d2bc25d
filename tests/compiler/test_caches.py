"""The caches' look-ups as torch itself counts, keeps and explains them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch._dynamo.utils import counters
from torch._inductor import config

from compiler.stages.cache import probes
from compiler.torch_compat.caches import CacheEvent, cache_events, forget_compiled, private_caches


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with private_caches(tmp_path):
        yield tmp_path
    forget_compiled()


def looked_up(model: Callable[[torch.Tensor], torch.Tensor], folder: Path) -> list[CacheEvent]:
    """The look-ups of one compile in which nothing is left in memory. Torch's counts must be the same, and each key the name
    of an entry on disk."""
    forget_compiled()
    counters.clear()
    with cache_events() as events:
        torch.compile(model)(torch.ones(4, requires_grad=True)).sum().backward()
    counted = Counter(
        {
            (cache, outcome): counters[group][f"{prefix}_cache_{outcome}"]
            for cache, group, prefix in (
                ("fx_graph", "inductor", "fxgraph"),
                ("aot_autograd", "aot_autograd", "autograd"),
            )
            for outcome in ("hit", "miss", "bypass")
        }
    )
    assert Counter((event.cache, event.outcome) for event in events) == +counted
    for event in events:
        place = Path("fxgraph", event.key[1:3]) if event.cache == "fx_graph" else Path("aotautograd")
        assert (folder / place / event.key).is_dir(), event
    return events


def sine(x: torch.Tensor) -> torch.Tensor:
    return x.sin() + 1


def cosine(x: torch.Tensor) -> torch.Tensor:
    return x.cos() + 1


@pytest.mark.timeout(300)  # three builds of small kernels
def test_what_differs_in_a_key_is_what_was_changed(folder: Path) -> None:
    cold = looked_up(sine, folder)
    assert [event.outcome for event in cold] == ["miss"] * 3
    warm = looked_up(sine, folder)
    assert [event.outcome for event in warm] == ["hit"] * 3
    assert sorted(event.key for event in warm) == sorted(event.key for event in cold)
    assert not any(one.changes for one in probes("warm", warm, cold))

    with config.patch(max_fusion_size=63):
        asked = looked_up(sine, folder)
    configured = probes("changed", asked, cold)
    assert {one.outcome for one in configured} == {"miss"}
    for one in configured:
        if one.cache == "fx_graph":  # of a miss, AOTAutograd tells the key alone
            assert {change.name for change in one.changes} == {"inductor_config[max_fusion_size]"}

    other = probes("changed", looked_up(cosine, folder), cold)
    assert {one.outcome for one in other} == {"miss"}
    assert all("gm" in {change.name for change in one.changes} for one in other if one.cache == "fx_graph")
