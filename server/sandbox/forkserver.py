"""The warmed parent: `python -m server.sandbox.forkserver FD`, where FD is a stream socket to its owner.

It imports torch through the compiler, warms it up, and then forks a warden (which forks the child) for every request. It
has one thread, an environment without secrets, and ends when its owner does.
"""

from __future__ import annotations

import fcntl
import gc
import importlib
import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from compiler.events import Engine
from server.sandbox.isolation import Mode, needed
from server.sandbox.isolation.probe import choose, probe
from server.sandbox.limits import EVENTS_FD
from server.sandbox.processes import LINUX, adopt_orphans, descendants, end_tree
from server.sandbox.protocol import Configuration, Isolation, PhaseRequest, Ready
from server.sandbox.users import lease
from server.sandbox.warden import Walls, watch

DESCRIPTORS = 5


def _warm(configuration: Configuration) -> Ready:
    """Import what a child needs, so that its forks find it there."""
    began = time.monotonic()
    engine: Engine | None = None
    if not configuration.spawn:
        importlib.import_module(configuration.child)
        package = configuration.child.rpartition(".")[0]
        warm = importlib.import_module(f"{package}.warm")
        if configuration.warm:
            warm.warm_up()
        engine = warm.engine()
        # What is here now is never garbage: keeps the collector from writing to (and so copying) shared pages.
        gc.collect()
        gc.freeze()
    threads = len(os.listdir("/proc/self/task")) if LINUX else 1
    return Ready(
        engine=engine, isolation=_isolation(configuration), threads=threads, seconds=round(time.monotonic() - began, 3)
    )


def _isolation(configuration: Configuration) -> Isolation:
    """Try out what works here. Raises IsolationError when the mode that was asked for does not."""
    if configuration.isolation == Mode.NONE:
        return Isolation(mode=Mode.NONE)
    found = probe(*(() if configuration.spawn else _own_folders(configuration)))
    mode = choose(configuration.isolation, found)
    if found.root and mode is Mode.LANDLOCK:
        # Its children are other users, each with a scratch of its own in here.
        os.chmod(configuration.scratch, 0o711)
    return Isolation(
        mode=mode,
        landlock_abi=found.landlock_abi,
        kernel=found.kernel,
        namespaces=found.namespaces.said,
        landlock=found.landlock.said,
    )


def _own_folders(configuration: Configuration) -> tuple[str, ...]:
    """Our own code that a child runs: the compiler's, and that of the child's module. Nothing of the server's."""
    modules = (sys.modules[Engine.__module__.partition(".")[0]], sys.modules[configuration.child])
    return tuple(str(Path(module.__file__).parent) for module in modules if module.__file__)


def _end_with_owner(control: socket.socket, on: bool) -> None:
    """While it is on, the owner's end of the socket ends this process too, whatever it is doing: SIGIO's default is to end it.
    (Not a thread: there must be one only. Not PR_SET_PDEATHSIG: it looks at the owner's thread, not at its process.)"""
    fcntl.fcntl(control, fcntl.F_SETOWN, os.getpid())
    flags = fcntl.fcntl(control, fcntl.F_GETFL)
    fcntl.fcntl(control, fcntl.F_SETFL, flags | os.O_ASYNC if on else flags & ~os.O_ASYNC)


def _request(descriptor: int) -> str:
    with os.fdopen(descriptor, "rb") as file:
        file.seek(0)
        return file.read().decode()


def serve(control: socket.socket, configuration: Configuration, mode: Mode, users: Sequence[int] | tuple[None]) -> None:
    """Answer requests until the owner closes its end. `users`: whom the children become, in turn."""
    readable = () if mode is Mode.NONE else needed(*_own_folders(configuration))
    next_user = itertools.cycle(users)
    adopt_orphans()
    wardens: set[int] = set()
    while True:
        try:
            message, descriptors, _flags, _address = socket.recv_fds(control, 1, DESCRIPTORS)
        except TimeoutError:
            _reap(wardens)
            continue
        if not message:
            return
        _reap(wardens)
        # A user for each: what is alive of one cannot touch another.
        walls = Walls(mode, readable, next(next_user))
        pid = os.fork()
        if pid == 0:
            control.close()
            _be_warden(configuration, walls, descriptors)
        wardens.add(pid)
        for descriptor in descriptors:
            os.close(descriptor)
        control.sendall(b"+")


def _be_warden(configuration: Configuration, walls: Walls, descriptors: list[int]) -> None:
    try:
        request_file, events, stdout, stderr, control = descriptors
        asked, _, text = _request(request_file).partition("\n")
        request = PhaseRequest.model_validate_json(asked)

        def run(phase: PhaseRequest) -> None:
            if configuration.spawn:
                _spawn(configuration, text, phase)
            else:
                module = importlib.import_module(configuration.child)
                module.run_child(text, EVENTS_FD, phase.phase, phase.path, phase.root, phase.captured)

        watch(request, walls, configuration.scratch, (events, stdout, stderr), socket.socket(fileno=control), run)
    finally:
        os._exit(1)


def _spawn(configuration: Configuration, text: str, phase: PhaseRequest) -> None:
    """The same in a fresh interpreter. Untested outside Linux."""
    captured = "" if phase.captured is None else phase.captured.model_dump_json()
    arguments = [phase.phase, phase.path or "", phase.root or "", captured]
    done = subprocess.run(
        [sys.executable, "-P", "-m", configuration.child, *arguments],
        input=text.encode(),
        pass_fds=[EVENTS_FD],
        check=False,
    )
    if done.returncode < 0:
        os.kill(os.getpid(), -done.returncode)
    os._exit(done.returncode)


def _reap(wardens: set[int]) -> None:
    """Collect ended wardens; when one was killed, end what it watched, which is now ours."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        if pid in wardens:
            wardens.discard(pid)
            if status != 0:
                alive = {below for warden in wardens for below in (warden, *descendants(warden))}
                for orphan in set(descendants(os.getpid())) - alive:
                    os.kill(orphan, signal.SIGKILL)


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    configuration = Configuration.model_validate_json(sys.argv[2])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.dont_write_bytecode = True
    _end_with_owner(control, True)
    # Held to the end: with it go the users.
    holder: socket.socket | None = None
    users: Sequence[int] | tuple[None] = (None,)
    try:
        ready = _warm(configuration)
        mode = Mode.NONE if ready.isolation is None else ready.isolation.mode
        if mode is not Mode.NONE and os.geteuid() == 0:
            holder, users = lease()
    except Exception as fault:
        control.sendall(Ready(seconds=0, error=f"{type(fault).__name__}: {fault}").model_dump_json().encode() + b"\n")
        raise
    _end_with_owner(control, False)
    control.sendall(ready.model_dump_json().encode() + b"\n")
    control.settimeout(0.5)
    serve(control, configuration, mode, users)
    end_tree(os.getpid())
    shutil.rmtree(configuration.scratch, ignore_errors=True)
    if holder is not None:
        holder.close()


if __name__ == "__main__":
    main()
