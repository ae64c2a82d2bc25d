"""Every attack, as root and as an ordinary user, in every mode that this machine can run, and without a sandbox."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ORDINARY = 65534
LEAST = 60


@dataclass(frozen=True, slots=True)
class Report:
    """What a host said as one user: which modes work for it, and mode → attack → line."""

    works: dict[str, bool]
    lines: dict[str, dict[str, dict[str, Any]]]
    control: dict[str, bool]


def _host(user: str, outer: bool) -> Report:
    identity = ["already"] if user == "user" and os.geteuid() else [str(ORDINARY)] if user == "user" else ["root"]
    done = subprocess.run(
        [sys.executable, str(HERE / "host.py"), *identity, *(["--outer"] if outer else [])],
        capture_output=True,
        text=True,
        timeout=560,
        stdin=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": str(HERE.parents[1]), "PYTHONDONTWRITEBYTECODE": "1"},
        check=False,
    )
    assert not done.returncode, done.stderr
    first, *lines = map(json.loads, done.stdout.splitlines())
    by_mode: dict[str, dict[str, dict[str, Any]]] = {}
    for line in lines:
        by_mode.setdefault(line["mode"], {})[line["attack"]] = line
    works = {mode: first["probe"][mode]["works"] for mode in ("namespaces", "landlock")}
    return Report(works, by_mode, {name: user in whom for name, whom in first["control"].items()})


@pytest.fixture(scope="session")
def reports(request: pytest.FixtureRequest) -> dict[str, Report]:
    users = ("root", "user") if os.geteuid() == 0 else ("user",)
    # Both layers where bubblewrap is installed, and the inner alone.
    layers = (False, True) if shutil.which("bwrap") else (False,)
    hosts = [(user, outer) for outer in layers for user in users]
    with ThreadPoolExecutor(2) as pool:
        made = pool.map(lambda host: _host(*host), hosts)
        found = {_name(*host): report for host, report in zip(hosts, made, strict=True)}
    request.config.stash[request.config.attack_lines] = _summary(found)  # type: ignore[attr-defined]
    return found


def _name(user: str, outer: bool) -> str:
    return f"{user} in bubblewrap" if outer else user


def _summary(reports: dict[str, Report]) -> str:
    parts = []
    for user, report in reports.items():
        for mode, lines in report.lines.items():
            held = sum(line["outcome"] in ("contained", "absent") for line in lines.values())
            if mode == "none":
                possible = sum(report.control[name] and lines[name]["outcome"] != "absent" for name in lines)
                parts.append(f"{user} × no sandbox: {len(lines) - held} of {possible} succeed")
            else:
                parts.append(f"{user} × {mode}: {held} of {len(lines)} contained")
    return "attacks: " + ", ".join(parts)


def _reports_of(reports: dict[str, Report], user: str) -> Report:
    if user not in reports:
        pytest.skip("needs root, or bubblewrap")
    return reports[user]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", ["namespaces", "landlock"])
@pytest.mark.parametrize("user", ["root", "user", "root in bubblewrap", "user in bubblewrap"])
def test_every_attack_is_contained(reports: dict[str, Report], user: str, mode: str) -> None:
    report = _reports_of(reports, user)
    if not report.works[mode]:
        pytest.skip(f"{mode} does not work here for {user}")
    lines = report.lines[mode]
    assert len(lines) >= LEAST
    assert {name: line for name, line in lines.items() if line["outcome"] not in ("contained", "absent")} == {}
    assert [name for name, line in lines.items() if not line["normal"]] == []


@pytest.mark.parametrize("user", ["root", "user"])
def test_without_a_sandbox_every_attack_succeeds(reports: dict[str, Report], user: str) -> None:
    report = _reports_of(reports, user)
    failed = {
        name: line
        for name, line in report.lines["none"].items()
        if line["outcome"] not in ("won", "absent") and report.control[name]
    }
    assert failed == {}
    assert sum(line["outcome"] == "won" for line in report.lines["none"].values()) >= LEAST


def test_every_mode_that_works_was_run(reports: dict[str, Report]) -> None:
    for name, report in reports.items():
        control = set() if "bubblewrap" in name else {"none"}
        assert {mode for mode, works in report.works.items() if works} | control == set(report.lines)
        assert any(report.works.values()), "no isolation works here: nothing was tested"
