"""Run every attack as one user, in every mode that works for it and without a sandbox: `host.py root|UID`, JSON lines out.

With `--outer` all of it, targets too, stands in bubblewrap, as a fork server's runs do: the inner modes have to hold there, too.
Started by root, it becomes the user itself. A line is `{"mode", "attack", "outcome", "how"}`; the first says which modes work.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NoReturn

import job
from attacks import Attack, all_attacks
from targets import Targets

from server.sandbox.isolation import Limits, Mode, Policy, disk, enclose, isolate, needed, syscalls
from server.sandbox.isolation.probe import FIRST_USER, probe
from server.sandbox.outer import bubblewrap, readable_for
from server.sandbox.processes import adopt_orphans, anonymous_bytes, descendants, end_tree

MIB = 1 << 20
LIMITS = Limits(
    memory_bytes=256 * MIB,
    processes=24,
    file_bytes=16 * MIB,
    disk_bytes=32 * MIB,
    disk_entries=1000,
    cpu_seconds=20,
    open_files=512,
)
OUTPUT_BYTES = MIB
_CONTROL_SECONDS = 20.0
NORMAL = Attack("normal", "an ordinary run works", "open('f', 'w').write('x'); import colorsys; won(open('f').read())")


@dataclass(frozen=True, slots=True)
class Ended:
    """What a run said (`won`, `absent`, `raised`, `inside`), and what its warden did."""

    said: list[tuple[str, str]]
    reason: str
    left: int


class Host:
    def __init__(self, base: Path) -> None:
        self._base = base
        self._count = 0
        self.targets = Targets(base)

    def attack(self, attack: Attack, mode: Mode) -> tuple[str, str]:
        """Outcome (`contained`, `won`, `absent`, `not started`) and how."""
        ended = self._run(attack, mode)
        said = dict(reversed(ended.said))
        broken = self.targets.broken()
        if ended.left:
            broken.append(f"{ended.left} processes left")
        if broken or mode is Mode.NONE:
            self.targets.close()
            self.targets = Targets(self._base)
        if "inside" not in said:
            return "not started", f"{ended.said} {ended.reason}"
        if "won" in said or broken:
            return "won", f"{said.get('won', '')} {broken or ''}"
        if "absent" in said:
            return "absent", said["absent"]
        return "contained", said.get("raised", ended.reason)

    def normal(self, mode: Mode) -> bool:
        return ("won", "x") in self._run(NORMAL, mode).said

    def _run(self, attack: Attack, mode: Mode) -> Ended:
        self._count += 1
        scratch = tempfile.mkdtemp(dir=self._base)
        os.chmod(scratch, 0o711)
        said, said_in = os.pipe()
        out, out_in = os.pipe()
        verdict, verdict_in = os.pipe()
        warden = os.fork()
        if not warden:
            for descriptor in (said, out, verdict):
                os.close(descriptor)
            _be_warden(attack, self._policy(mode, scratch), self.targets, (said_in, out_in, verdict_in))
        for descriptor in (said_in, out_in, verdict_in):
            os.close(descriptor)
        heard = _listen(said, out, verdict, None if mode is Mode.NONE else OUTPUT_BYTES)
        os.waitpid(warden, 0)
        alive = [pid for pid in descendants(os.getpid()) if pid != self.targets.victim.pid]
        for pid in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in alive:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
        disk.remove(scratch)
        lines = [tuple(json.loads(line)) for line in heard[said].splitlines()]
        return Ended(lines, heard[verdict].decode() or "no verdict", len(alive))

    def _policy(self, mode: Mode, scratch: str) -> Policy:
        return Policy(
            mode,
            scratch,
            needed(str(self.targets.library), str(self.targets.golden)),
            FIRST_USER + self._count % 5000 if os.geteuid() == 0 else None,
            LIMITS,
            keep=(0, 1, 2, job.RESULT),
        )


def _listen(said: int, out: int, verdict: int, most: int | None) -> dict[int, bytes]:
    """Until all have ended; `out` is closed when it gives more than `most` bytes."""
    heard = {said: b"", out: b"", verdict: b""}
    left = set(heard)
    while left:
        for descriptor in select.select(left, [], [])[0]:
            piece = os.read(descriptor, 1 << 16)
            heard[descriptor] += piece
            if not piece or (descriptor == out and most is not None and len(heard[out]) > most):
                left.discard(descriptor)
                os.close(descriptor)
        # What the warden said last is the end, whoever still holds a pipe.
        if verdict not in left:
            for descriptor in left:
                while select.select([descriptor], [], [], 0)[0] and (piece := os.read(descriptor, 1 << 16)):
                    heard[descriptor] += piece
                os.close(descriptor)
            break
    return heard


def _be_warden(attack: Attack, policy: Policy, targets: Targets, pipes: tuple[int, int, int]) -> NoReturn:
    said, out, verdict = pipes
    reason = "fault"
    try:
        os.setsid()
        adopt_orphans()
        told = targets.told | {"warden": os.getpid(), "scratch": policy.scratch}
        policy = enclose(policy)
        child = os.fork()
        if not child:
            _be_child(attack, policy, told, said, out)
        os.close(said)
        os.close(out)
        reason = _watch(child, policy, attack.wall if policy.mode is not Mode.NONE else _CONTROL_SECONDS)
        if policy.mode is not Mode.NONE:
            end_tree(os.getpid())
    finally:
        os.write(verdict, reason.encode())
        os._exit(0)


def _watch(child: int, policy: Policy, wall: float) -> str:
    """Until the child ends or has to be ended: why."""
    limits = policy.limits
    own = anonymous_bytes([os.getpid()])
    deadline = time.monotonic() + wall
    poller = select.poll()
    poller.register(os.pidfd_open(child), select.POLLIN)
    while not poller.poll(50):
        if policy.mode is Mode.NONE:
            if time.monotonic() > deadline:
                break
            continue
        tree = descendants(os.getpid())
        if time.monotonic() > deadline:
            return "wall"
        if anonymous_bytes(tree) - own > limits.memory_bytes:
            return "memory"
        if policy.mode is Mode.LANDLOCK:
            size, entries = disk.usage(policy.scratch, tree, limits.disk_entries)
            if size > limits.disk_bytes or entries > limits.disk_entries:
                return "disk"
    return f"ended with {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}"


def _be_child(attack: Attack, policy: Policy, told: dict[str, object], said: int, out: int) -> NoReturn:
    try:
        null = os.open(os.devnull, os.O_RDONLY)
        for source, descriptor in ((null, 0), (out, 1), (out, 2), (said, job.RESULT)):
            os.dup2(source, descriptor)
        os.closerange(job.RESULT + 1, 64) if policy.mode is Mode.NONE else None
        os.environ.clear()
        os.environ.update(PATH="/usr/bin:/bin", HOME=policy.scratch, TMPDIR=policy.scratch)
        os.chdir(policy.scratch)
        if policy.mode is Mode.NONE:
            os.environ["AOTSCOPE_SECRET"] = "SECRET"
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            signal.alarm(int(_CONTROL_SECONDS))
        isolate(policy)
        job.say("inside")
        job.run(attack.code, told)
    except BaseException as fault:  # noqa: BLE001 - told
        job.say("fault", repr(fault))
    finally:
        os._exit(0)


def become(user: int) -> None:
    """Be an ordinary user who has a Python of their own, wherever this one is: in a mount namespace, what only root can reach is
    shown to everyone at its own path. Then start again, as that user."""
    paths = [path for path in needed(str(Path(__file__).parents[2])) if os.path.isdir(path)]
    expose(paths)
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    os.execv(sys.executable, [sys.executable, __file__, "already", *sys.argv[2:]])


def enter_outer(arguments: list[str]) -> NoReturn:
    """Start again inside bubblewrap, as the ordinary user that a fork server would be there."""
    user = FIRST_USER + 5500 if os.geteuid() == 0 else None
    base = os.path.realpath(tempfile.mkdtemp(prefix="aotscope-outer-attacks-"))
    if user is not None:
        os.chown(base, user, user)
    words = bubblewrap(readable_for("tests.security.host"), [base], user)
    os.environ["TMPDIR"] = base
    os.execv(words[0], [*words, sys.executable, __file__, "inside", *arguments])


def expose(paths: list[str]) -> None:
    """Make folders readable for every user in a mount namespace of this process. Raises OSError where root may not."""
    blocked = {above for path in paths if (above := _first_closed(path))}
    if not blocked:
        return
    syscalls.unshare(syscalls.CLONE_NEWNS)
    syscalls.mount("none", "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)
    handles = {path: os.open(path, os.O_PATH) for path in paths}
    for above in blocked:
        syscalls.mount("tmpfs", above, "tmpfs", 0, "mode=755")
    for path, handle in handles.items():
        if any(path.startswith(above + "/") for above in blocked):
            os.makedirs(path, exist_ok=True)
            syscalls.mount(f"/proc/self/fd/{handle}", path, None, syscalls.MS_BIND | syscalls.MS_REC)
    for handle in handles.values():
        os.close(handle)


def _first_closed(path: str) -> str | None:
    for above in reversed(Path(path).parents):
        if not above.stat().st_mode & 0o001:
            return str(above)
    return None


def main() -> None:
    user = sys.argv[1]
    outer = "--outer" in sys.argv
    if user == "root":
        expose([path for path in needed(str(Path(__file__).parents[2])) if os.path.isdir(path)])
    elif user not in ("already", "inside"):
        become(int(user))
    if outer:
        enter_outer([name for name in sys.argv[2:] if name != "--outer"])
    adopt_orphans()
    names = set(sys.argv[2:])
    found = probe()
    control = {attack.name: sorted(attack.control) for attack in all_attacks()}
    print(json.dumps({"probe": asdict(found), "control": control}), flush=True)
    modes = [trial.mode for trial in (found.namespaces, found.landlock) if trial.works]
    with tempfile.TemporaryDirectory(prefix="aotscope-attacks-") as base:
        os.chmod(base, 0o711)
        host = Host(Path(os.path.realpath(base)))
        for attack in all_attacks():
            if names and attack.name not in names:
                continue
            # What succeeds without a sandbox has to succeed where nothing else is in the way.
            for mode in modes if user == "inside" else (*modes, Mode.NONE):
                outcome, how = host.attack(attack, mode)
                line = {"mode": mode, "attack": attack.name, "outcome": outcome, "how": how}
                if mode is not Mode.NONE:
                    line["normal"] = host.normal(mode)
                print(json.dumps(line), flush=True)
        host.targets.close()


if __name__ == "__main__":
    main()
