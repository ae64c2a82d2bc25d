"""The warmed parent: `python -m server.sandbox.forkserver WHERE CONFIGURATION`.

It imports torch through the compiler, warms it up, and then forks a warden (which forks the child) for every request. It
has one thread and an environment without secrets. WHERE is a stream socket's descriptor, whose other end is its owner's,
with whom it ends; or the path of a socket to listen at, for workers of the same user, each of whose children end with it.
"""

from __future__ import annotations

import fcntl
import gc
import importlib
import itertools
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from compiler.errors import AotscopeError
from compiler.events import Engine
from server.sandbox.isolation import IsolationError, Mode, needed
from server.sandbox.isolation.probe import choose, probe
from server.sandbox.isolation.reading import gpu_devices
from server.sandbox.limits import EVENTS_FD
from server.sandbox.outer import Outer, openings
from server.sandbox.peers import accept, listen
from server.sandbox.processes import LINUX, adopt_orphans, descendants, end_tree
from server.sandbox.protocol import Configuration, Isolation, PhaseRequest, Ready
from server.sandbox.users import lease
from server.sandbox.warden import Walls, watch

DESCRIPTORS = 5
_LOOK_SECONDS = 0.5
# An owner reads its answer at once, or is no longer there.
_ANSWER_SECONDS = 5.0


def _warm(configuration: Configuration) -> Ready:
    """Import what a child needs, so that its forks find it there."""
    began = time.monotonic()
    engine: Engine | None = None
    if not configuration.spawn:
        child = importlib.import_module(configuration.child)
        # Before anything of torch's compiler is imported: a virtual target changes what is found there.
        child.prepare(configuration.target)
        package = configuration.child.rpartition(".")[0]
        warm = importlib.import_module(f"{package}.warm")
        if configuration.warm:
            warm.warm_up(configuration.target)
        if configuration.headers:
            warm.read_headers(Path(configuration.headers))
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
        return Isolation(mode=Mode.NONE, outer_reason=configuration.outer_reason)
    outer, outer_reason = configuration.outer, configuration.outer_reason
    if outer is not Outer.NONE and (is_open := openings()):
        if outer is Outer.BUBBLEWRAP:
            raise IsolationError("outer", "; ".join(is_open))
        outer, outer_reason = Outer.NONE, "; ".join(is_open)
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
        outer=outer,
        outer_reason=outer_reason,
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


class _Server:
    """Answers requests. `users`: whom the children become, in turn."""

    def __init__(self, configuration: Configuration, ready: Ready, users: Sequence[int] | tuple[None]) -> None:
        self._configuration = configuration
        self._ready = ready
        self._mode = Mode.NONE if ready.isolation is None else ready.isolation.mode
        headers = (configuration.headers,) if configuration.headers else ()
        self._readable = () if self._mode is Mode.NONE else needed(*_own_folders(configuration), *headers)
        self._users = itertools.cycle(users)
        self._gpu = gpu_devices() if configuration.target == "cuda" else ()
        self._wardens: set[int] = set()
        # Forked before it is asked for, because a fork of all this takes longer than most of what a run begins with.
        self._spare: tuple[int, socket.socket] | None = None
        self._selector = selectors.DefaultSelector()

    def serve(self, owner: socket.socket | None, listener: socket.socket | None) -> None:
        """Until the last owner has closed its end and no other can come."""
        adopt_orphans()
        if owner is not None:
            self._greet(owner)
        if listener is not None:
            self._selector.register(listener, selectors.EVENT_READ)
        while self._selector.get_map():
            if self._spare is None:
                self._spare = self._fork()
            ready = self._selector.select(_LOOK_SECONDS)
            _reap(self._wardens)
            for key, _mask in ready:
                if key.fileobj is listener:
                    if (caller := accept(listener)) is not None:
                        self._greet(caller)
                else:
                    assert isinstance(key.fileobj, socket.socket)
                    self._answer(key.fileobj)

    def _greet(self, owner: socket.socket) -> None:
        self._selector.register(owner, selectors.EVENT_READ)
        owner.settimeout(_ANSWER_SECONDS)
        self._guarded(owner, lambda: owner.sendall(self._ready.model_dump_json().encode() + b"\n"))

    def _guarded(self, owner: socket.socket, act: Callable[[], bool | None]) -> None:
        """What an owner's end has to do with; one that has gone, or makes us wait, is forgotten, and its children end by
        themselves."""
        try:
            gone = act() is False
        except OSError:
            gone = True
        if gone:
            self._selector.unregister(owner)
            owner.close()

    def _answer(self, owner: socket.socket) -> None:
        def answer() -> bool:
            message, descriptors, _flags, _address = socket.recv_fds(owner, 1, DESCRIPTORS)
            if not message:
                return False
            self._start(descriptors)
            owner.sendall(b"+")
            return True

        self._guarded(owner, answer)

    def _start(self, descriptors: list[int]) -> None:
        """Give the request to the waiting warden, or to a new one where that has been killed."""
        while True:
            pid, side = self._spare or self._fork()
            self._spare = None
            with side:
                try:
                    if pid in self._wardens:
                        socket.send_fds(side, [b"+"], descriptors)
                        break
                except ConnectionError:
                    _reap(self._wardens)
        for descriptor in descriptors:
            os.close(descriptor)

    def _fork(self) -> tuple[int, socket.socket]:
        """A warden that waits for a request at the other end of the socket, and ends when this end is closed."""
        # A user for each: what is alive of one cannot touch another.
        walls = Walls(self._mode, self._readable, next(self._users), self._gpu)
        ours, its = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            ours.close()
            for key in self._selector.get_map().values():
                assert isinstance(key.fileobj, socket.socket)
                key.fileobj.close()
            self._selector.close()
            _be_warden(self._configuration, walls, its)
        its.close()
        self._wardens.add(pid)
        return pid, ours


def _be_warden(configuration: Configuration, walls: Walls, side: socket.socket) -> None:
    try:
        with side:
            _message, descriptors, _flags, _address = socket.recv_fds(side, 1, DESCRIPTORS)
        if not descriptors:
            os._exit(0)  # nobody will ask any more
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
    where = sys.argv[1]
    owner = socket.socket(fileno=int(where)) if where.isdecimal() else None
    configuration = Configuration.model_validate_json(sys.argv[2])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.dont_write_bytecode = True
    if owner is not None:
        _end_with_owner(owner, True)
    # Held to the end: with it go the users.
    holder: socket.socket | None = None
    users: Sequence[int] | tuple[None] = (None,)
    try:
        ready = _warm(configuration)
        mode = Mode.NONE if ready.isolation is None else ready.isolation.mode
        if mode is not Mode.NONE and os.geteuid() == 0:
            holder, users = lease()
    except Exception as fault:
        if owner is not None:
            cause, detail = (fault.cause, fault.detail) if isinstance(fault, AotscopeError) else (None, "")
            failed = Ready(seconds=0, error=f"{type(fault).__name__}: {detail or fault}", cause=cause)
            owner.sendall(failed.model_dump_json().encode() + b"\n")
        raise
    listener = None
    if owner is None:
        listener = listen(where)
    else:
        _end_with_owner(owner, False)
    _Server(configuration, ready, users).serve(owner, listener)
    end_tree(os.getpid())
    shutil.rmtree(configuration.scratch, ignore_errors=True)
    if holder is not None:
        holder.close()


if __name__ == "__main__":
    main()
