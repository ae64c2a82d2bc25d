"""The figures of the whole run, as `tests/corpus/README.md` defines them."""

from __future__ import annotations

import dataclasses
from typing import Any

from compiler.events import Summary
from compiler.session import Tally


def summarise(tally: Tally) -> Summary:
    """The tally as the event that closes the capture phase. A graph whose figure before the passes is unknown has none there."""
    figures: dict[str, Any] = dataclasses.asdict(tally)
    figures["joint_nodes_before_passes"] = [count for count in tally.joint_nodes_before_passes if count is not None]
    return Summary(summary=figures)
