"""Which isolation works here: by doing it, in a fork, and looking at the result from inside."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass

from server.sandbox.isolation import IsolationError, Mode, Policy, enclose, isolate, landlock, needed

# Root's children become this one when nothing else is said; per child, a number is added.
FIRST_USER = 60_000
_RESULT = 3


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of one mode. `step` and `reason` say what failed, empty when it works."""

    mode: Mode
    works: bool
    step: str = ""
    reason: str = ""

    @property
    def said(self) -> str:
        """Why it does not work; empty when it does."""
        return "" if self.works else f"{self.step}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Probe:
    """What is possible for this user on this machine. `landlock_abi` is 0 where the kernel has none."""

    system: str
    kernel: str
    root: bool
    landlock_abi: int
    namespaces: Trial
    landlock: Trial

    @property
    def best(self) -> Mode:
        """The strongest mode that works."""
        return next((trial.mode for trial in (self.namespaces, self.landlock) if trial.works), Mode.NONE)


def choose(wanted: str, found: Probe) -> Mode:
    """The mode for a setting, `auto` or a mode's name. Raises IsolationError when a mode is asked for that does not
    work here."""
    if wanted == "auto":
        return found.best
    if wanted not in list(Mode):
        raise IsolationError("setting", f"it is none of auto, {', '.join(Mode)}")
    mode = Mode(wanted)
    trial = {Mode.NAMESPACES: found.namespaces, Mode.LANDLOCK: found.landlock}.get(mode)
    if trial is not None and not trial.works:
        raise IsolationError(trial.step, trial.reason)
    return mode


def probe(*more: str) -> Probe:
    """Try every mode, with what `reading.needed` says and `more` to read. Forks, so it is called by a process of one
    thread; others use `probe_apart`."""
    return Probe(
        system=sys.platform,
        kernel=platform.release(),
        root=hasattr(os, "geteuid") and os.geteuid() == 0,
        landlock_abi=landlock.abi() if sys.platform == "linux" else 0,
        namespaces=_try(Mode.NAMESPACES, more),
        landlock=_try(Mode.LANDLOCK, more),
    )


def probe_apart(before: Sequence[str] = ()) -> Probe:
    """`probe` in a fresh interpreter, for a process that has threads. `before`: words that put a command into an outer layer.
    Raises OSError when that ends badly."""
    done = subprocess.run(
        [*before, sys.executable, "-P", "-m", "server.sandbox.isolation"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if done.returncode:
        raise OSError(f"the probe ended with {done.returncode}: {done.stderr.strip()[-500:]}")
    found = json.loads(done.stdout)
    trials = {name: Trial(**found[name] | {"mode": Mode(found[name]["mode"])}) for name in ("namespaces", "landlock")}
    return Probe(**found | trials)


def _try(mode: Mode, more: tuple[str, ...]) -> Trial:
    if sys.platform != "linux":
        return Trial(mode, False, "start", f"no isolation on {sys.platform}")
    ours, theirs = os.pipe()
    with tempfile.TemporaryDirectory(prefix="aotscope-probe-") as scratch:
        warden = os.fork()
        if not warden:
            os.close(ours)
            _be_warden(mode, os.path.realpath(scratch), theirs, more)
        os.close(theirs)
        with os.fdopen(ours, "rb") as pipe:
            said = pipe.read().decode(errors="replace")
        os.waitpid(warden, 0)
    step, _, reason = said.partition("\0")
    return Trial(mode, True) if step == "works" else Trial(mode, False, step or "ended", reason)


def _be_warden(mode: Mode, scratch: str, result: int, more: tuple[str, ...]) -> None:
    """Never returns."""
    try:
        user = FIRST_USER if os.geteuid() == 0 else None
        os.dup2(result, _RESULT)
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        policy = enclose(Policy(mode, scratch, needed(*more), user, keep=(0, 1, 2, _RESULT)))
        child = os.fork()
        if not child:
            isolate(policy)
            _look_around(policy)
            os.write(_RESULT, b"works")
        else:
            os.waitpid(child, 0)
    except IsolationError as fault:
        os.write(_RESULT, f"{fault.step}\0{fault.reason}".encode())
    except BaseException as fault:  # noqa: BLE001 - the fork may not return into the caller's code; the result tells
        os.write(_RESULT, f"look\0{fault}".encode())
    finally:
        os._exit(0)


def _look_around(policy: Policy) -> None:
    """Inside: what a run needs works, and what it must not have fails. Raises OSError."""
    with open(os.path.join(policy.scratch, "file"), "w") as file:
        file.write("x")
    with open(os.__file__, "rb") as source:
        source.read(1)
    child = os.posix_spawn("/bin/true", ["true"], {})
    if os.waitpid(child, 0)[1]:
        raise OSError("/bin/true does not run")
    for path in ("/etc/passwd", "/proc/1/environ" if policy.mode is Mode.LANDLOCK else "/proc/2/environ", "/home"):
        try:
            os.close(os.open(path, os.O_RDONLY))
        except OSError:
            continue
        raise OSError(f"{path} can be opened")
