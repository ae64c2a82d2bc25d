"""Torch's settings for one run, put back afterwards."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch._dynamo.config as dynamo_config
import torch._functorch.config as functorch_config
import torch._inductor.config as inductor_config

_CONFIGS: dict[str, Any] = {
    "dynamo": dynamo_config,
    "functorch": functorch_config,
    "inductor": inductor_config,
}


class UnknownSettingError(Exception):
    """A name that torch does not have, as `inductor.max_autotun`."""


@contextmanager
def no_caches() -> Iterator[None]:
    """On a cache hit the passes do not run, and nothing would be seen. Compiles stay in this process."""
    with (
        warnings.catch_warnings(),
        inductor_config.patch(force_disable_caches=True, fx_graph_cache=False, compile_threads=1),
        functorch_config.patch(enable_autograd_cache=False),
    ):
        warnings.filterwarnings("ignore", message="dynamo_pgo force disabled")  # by us, and so no news to the user
        yield


@contextmanager
def applied(wanted: Mapping[str, Mapping[str, Any]]) -> Iterator[None]:
    """Settings by torch's three groups: `{"inductor": {"max_autotune": True}}`. Raises UnknownSettingError before any is set."""
    for group, values in wanted.items():
        if group not in _CONFIGS:
            raise UnknownSettingError(group)
        for name in values:
            if not hasattr(_CONFIGS[group], name.split(".", 1)[0]):
                raise UnknownSettingError(f"{group}.{name}")
    with ExitStack() as stack:
        for group, values in wanted.items():
            stack.enter_context(_CONFIGS[group].patch(dict(values)))
        yield
