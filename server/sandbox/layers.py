"""Which layers a fork server of this process gets: the strongest pair, outer and inner, that was tried and works."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from server.sandbox.isolation import IsolationError, Mode
from server.sandbox.isolation.probe import FIRST_USER, Probe, choose, probe_apart
from server.sandbox.outer import Outer, bubblewrap, readable_for

AUTO = "auto"


@dataclass(frozen=True, slots=True)
class Layers:
    """`found` is what works inside the outer layer; `outer_reason` says why there is none, empty when there is one."""

    outer: Outer
    outer_reason: str
    mode: Mode
    found: Probe


def choose_layers(outer: str, isolation: str, child: str) -> Layers:
    """Try the layers that the settings ask for. Raises IsolationError when one is asked for by name and does not work.

    Two walls of different make are preferred to one: bubblewrap with Landlock comes before namespaces alone."""
    if outer not in (AUTO, Outer.BUBBLEWRAP, Outer.NONE):
        raise IsolationError("outer", f"it is none of {AUTO}, {Outer.BUBBLEWRAP}, {Outer.NONE}")
    reason = ""
    if outer != Outer.NONE and isolation != Mode.NONE:
        try:
            with _inside(child) as words:
                found = probe_apart(words)
            mode = choose(isolation, found)
            if mode is Mode.NONE:
                raise IsolationError("outer", f"inside it no run can be shut in: {found.landlock.said}")
            return Layers(Outer.BUBBLEWRAP, "", mode, found)
        except (OSError, IsolationError) as fault:
            reason = str(fault)
            if outer == Outer.BUBBLEWRAP:
                raise IsolationError("outer", reason) from fault
    elif outer == Outer.NONE:
        reason = "switched off"
    else:
        reason = "runs are not shut in"
    found = probe_apart()
    return Layers(Outer.NONE, reason, choose(isolation, found), found)


@contextmanager
def _inside(child: str) -> Iterator[list[str]]:
    """The words that put a trial into bubblewrap, with a scratch of its own."""
    scratch = os.path.realpath(tempfile.mkdtemp(prefix="aotscope-outer-"))
    user = FIRST_USER if os.geteuid() == 0 else None
    try:
        if user is not None:
            os.chown(scratch, user, user)
        yield [*bubblewrap(readable_for(child), [scratch], user), "env", f"TMPDIR={scratch}"]
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
