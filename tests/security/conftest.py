"""The suite's last line: who, in which mode, contained how many."""

import pytest

_LINES = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    config.attack_lines = _LINES  # type: ignore[attr-defined]


def pytest_unconfigure(config: pytest.Config) -> None:
    if _LINES in config.stash:
        print(config.stash[_LINES])
