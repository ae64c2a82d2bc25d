"""The outer layer alone: a program that has got out of its run, and stands where the fork server does."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from server.sandbox.isolation import IsolationError
from server.sandbox.isolation.probe import FIRST_USER
from server.sandbox.layers import choose_layers
from server.sandbox.outer import bubblewrap, readable_for
from tests.server.conftest import FAKE, ROOT

HERE = Path(__file__).parent
# Run it inside: the attack's name and its targets are an argument; what it says goes to descriptor 3.
INSIDE = f"""
import ast, os, sys
sys.path.insert(0, {str(HERE)!r})
import job
from attacks import all_attacks
name, told = ast.literal_eval(sys.argv[1])
os.dup2(1, job.RESULT)
(attack,) = (one for one in all_attacks() if one.name == name)
job.say("inside")
job.run(attack.code, told)
"""
# What these get is the attacker's own, and the inner layer forbids it: sockets of a network in which nobody else is, its own
# process, a terminal of its own; and our code, which is no secret.
OWN = {
    "asyncio_server", "netlink", "subprocess_network", "tcp_ipv6", "tcp_listen", "udp", "vsock", "kernel_crypto",
    "daemon_by_clone", "outlive_warden", "protect_from_memory_killer", "terminal", "read_server_module",
}  # fmt: skip


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    try:
        choose_layers("bubblewrap", "auto", FAKE)
    except IsolationError as fault:
        pytest.skip(str(fault))
    scratch = tmp_path_factory.mktemp("scratch")
    user = FIRST_USER + 5400 if os.geteuid() == 0 else None
    os.chown(scratch, -1 if user is None else user, -1)
    return [*bubblewrap(readable_for("tests.security.host"), [str(scratch)], user), "env", f"TMPDIR={scratch}"]


@pytest.fixture(scope="module")
def modules() -> Iterator[None]:
    sys.path.insert(0, str(HERE))
    yield
    sys.path.remove(str(HERE))


def test_nothing_outside_is_reached(words: list[str], modules: None, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Every attack on files, processes and network, in bubblewrap and nothing else; its targets stand outside."""
    from attacks import files, network, processes
    from targets import Targets

    base = tmp_path_factory.mktemp("outside")
    targets = Targets(base)
    told = targets.told | {"warden": os.getpid(), "scratch": str(base), "cache": str(targets.golden)}
    won = {}
    try:
        for attack in (*files.ATTACKS, *processes.ATTACKS, *network.ATTACKS):
            done = subprocess.run(
                [*words, sys.executable, "-c", INSIDE, repr((attack.name, told))],
                env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            said = dict(map(json.loads, done.stdout.splitlines()[::-1]))
            assert "inside" in said, done.stderr
            broken = targets.broken()
            if "won" in said or broken:
                won[attack.name] = said.get("won"), broken
    finally:
        targets.close()
        shutil.rmtree(base, ignore_errors=True)
    assert {name: how for name, how in won.items() if name not in OWN} == {}
    assert [how for how in won.values() if how[1]] == []
