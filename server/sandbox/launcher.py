"""The owner's side of the fork server: start it, ask it for children, start it again when it dies."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass

from compiler.events import Engine, RunRequest
from compiler.targets import TargetId
from compiler.text import Message, message
from server.sandbox import peers
from server.sandbox.headers import build_headers
from server.sandbox.isolation import IsolationError, Mode
from server.sandbox.isolation.reading import GPU_FILES, gpu_devices
from server.sandbox.keeper import start_kept
from server.sandbox.layers import Layers, choose_layers
from server.sandbox.limits import parent_environment, places, with_headers
from server.sandbox.outer import Outer, bubblewrap, readable_for
from server.sandbox.protocol import Configuration, Isolation, PhaseRequest, Ready
from server.sandbox.users import lease

_START_SECONDS = 600.0
_LOOK_SECONDS = 0.1


class ForkServerError(Exception):
    """It could not be started, or died at once; `cause` says why."""

    def __init__(self, cause: Message) -> None:
        super().__init__(cause.key)
        self.cause = cause


@dataclass(frozen=True, slots=True)
class Child:
    """Our ends of one child's channels. `control` ends the child when it is closed or written to, and carries the verdict."""

    events: int
    stdout: int
    stderr: int
    control: socket.socket

    def stop(self) -> None:
        with contextlib.suppress(OSError):
            self.control.sendall(b"stop")

    def close(self) -> None:
        for descriptor in (self.events, self.stdout, self.stderr):
            os.close(descriptor)
        self.control.close()


def forkserver_command(where: str, configuration: Configuration) -> list[str]:
    """`where` is a descriptor's number, or the path of a socket."""
    # -P: a file of the current folder that is called as one of our modules, or torch's, is not taken for it.
    return [sys.executable, "-P", "-m", "server.sandbox.forkserver", where, configuration.model_dump_json()]


class Launcher:
    """One fork server, started at the first need (or by `ready`), and again when it has died. Safe for several threads."""

    def __init__(
        self,
        child: str,
        *,
        warm: bool,
        own: bool = False,
        isolation: str = "none",
        outer: str = Outer.NONE,
        runner: str = "",
        headers: str = "",
        strangers: bool = False,
        target: TargetId = "cpu",
    ) -> None:
        """`target`: what all children compile for. `own`: the snippet is the user's own, and sees the user's whole environment.
        `isolation`, `outer`: as in the settings. `runner`: the socket of a fork server that somebody else keeps, and that has
        been told all else itself.
        `headers`: the folder of the precompiled headers for isolated children, which is filled where it is missing.
        `strangers`: anybody's snippets may come, so that without isolation there are no children."""
        self._runner = runner
        self._outer = outer
        self._headers = headers if isolation != Mode.NONE else ""
        self._aborted = False
        self._users: socket.socket | None = None
        self._strangers = strangers
        self._target = target
        self._isolation = isolation
        self._child = child
        self._warm = warm
        self._own = own
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._ready: Ready | None = None
        self._scratch = ""

    @property
    def pid(self) -> int | None:
        """Of our own fork server (of bubblewrap around it), while it lives."""
        return None if self._process is None or self._process.poll() is not None else self._process.pid

    def ready(self) -> Engine | None:
        """Wait until children can be forked. Raises ForkServerError."""
        with self._lock:
            return self._start().engine

    @property
    def isolation(self) -> Isolation | None:
        """What is in force, once children can be forked."""
        return None if self._ready is None else self._ready.isolation

    def start(self, request: RunRequest, phase: PhaseRequest) -> Child:
        """A child for a phase. Raises ForkServerError."""
        with self._lock:
            self._start()
            try:
                return self._ask(request, phase)
            except OSError:
                # It died since the last child: start it once more.
                self._stop()
                self._start()
            try:
                return self._ask(request, phase)
            except OSError as fault:
                raise ForkServerError(message("server.fork_server_failed", error=str(fault))) from fault

    def abort(self) -> None:
        """Give up a start that is under way, from anywhere: whoever waits for it gets ForkServerError."""
        self._aborted = True
        starting = self._socket
        if starting is not None and self._ready is None:
            with contextlib.suppress(OSError):
                starting.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.abort()
        with self._lock:
            self._stop()

    def _start(self) -> Ready:
        if self._process is not None and self._process.poll() is not None:
            self._stop()
        if self._ready is not None:
            return self._ready
        ours = self._socket = self._connect() if self._runner else self._spawn()
        ours.settimeout(_START_SECONDS)
        ready = self._first_message(ours)
        if ready.error:
            self._stop()
            raise ForkServerError(ready.cause or message("server.fork_server_failed", error=ready.error))
        if self._strangers and (ready.isolation is None or ready.isolation.mode is Mode.NONE):
            self._stop()
            raise ForkServerError(message("server.strangers_refused"))
        self._ready = ready
        return ready

    def _connect(self) -> socket.socket:
        """To a runner, which may have to warm up first. Raises ForkServerError."""
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                return peers.connect(self._runner)
            except peers.StrangerError as fault:
                raise ForkServerError(message("server.fork_server_failed", error=str(fault))) from fault
            except OSError as fault:
                if self._aborted or time.monotonic() > deadline:
                    raise ForkServerError(message("server.runner_absent", path=self._runner)) from fault
            time.sleep(_LOOK_SECONDS)

    def _spawn(self) -> socket.socket:
        """Start a fork server of our own, inside the outer layer that works here. Raises ForkServerError."""
        try:
            layers = self._choose()
            self._scratch = os.path.realpath(tempfile.mkdtemp(prefix="aotscope-children-"))
            user = self._lease_user(layers)
            inside = layers is not None and layers.outer is not Outer.NONE
            environment = parent_environment(self._own, self._isolation != Mode.NONE, self._target == "cuda")
            environment |= places(self._scratch) if inside else {}
            headers = self._headers and self._build_headers(self._words(inside, user), environment)
            before = self._words(inside, user, headers)
        except (IsolationError, OSError) as fault:
            self._stop()
            raise ForkServerError(message("server.fork_server_failed", error=str(fault))) from fault
        ours, theirs = socket.socketpair()
        configuration = Configuration(
            child=self._child,
            target=self._target,
            warm=self._warm,
            spawn=sys.platform == "darwin",
            scratch=self._scratch,
            isolation=layers.mode if layers is not None and inside else self._isolation,
            outer=Outer.NONE if layers is None else layers.outer,
            outer_reason="switched off" if layers is None else layers.outer_reason,
            headers=headers,
        )
        self._process = start_kept(
            [*before, *forkserver_command(str(theirs.fileno()), configuration)],
            pass_fds=[theirs.fileno()],
            env=environment | (with_headers() if headers else {}),
        )
        theirs.close()
        return ours

    def _choose(self) -> Layers | None:
        """None without an outer layer: the fork server then chooses for itself. Raises IsolationError, OSError."""
        if self._own or self._outer == Outer.NONE:
            return None
        return choose_layers(self._outer, self._isolation, self._child)

    def _lease_user(self, layers: Layers | None) -> int | None:
        """Whom root's fork server becomes in bubblewrap; its scratch becomes theirs."""
        if layers is None or layers.outer is not Outer.BUBBLEWRAP or os.geteuid() != 0:
            return None
        self._users, users = lease()
        os.chown(self._scratch, users[0], users[0])
        return users[0]

    def _words(self, inside: bool, user: int | None, headers: str = "") -> list[str]:
        """The words that put a command of ours into the outer layer."""
        if not inside:
            return []
        shown = (*readable_for(self._child), headers) if headers else readable_for(self._child)
        gpu = self._target == "cuda"
        shown = (*shown, *(path for path in GPU_FILES if path.startswith("/sys/"))) if gpu else shown
        return bubblewrap(shown, [self._scratch], user, gpu_devices() if gpu else ())

    def _build_headers(self, before: list[str], environment: dict[str, str]) -> str:
        there = build_headers(self._headers, self._child, self._scratch, before, environment, lambda: self._aborted)
        return self._headers if there else ""

    def _first_message(self, ours: socket.socket) -> Ready:
        data = b""
        with contextlib.suppress(OSError):
            while not data.endswith(b"\n"):
                part = ours.recv(1 << 16)
                if not part:
                    break
                data += part
        if not data.endswith(b"\n"):
            return Ready(seconds=0, error="it ended while it was warming up")
        return Ready.model_validate_json(data)

    def _ask(self, request: RunRequest, phase: PhaseRequest) -> Child:
        assert self._socket is not None
        pipes = [os.pipe() for _ in range(3)]
        ours, theirs = socket.socketpair()
        child = Child(pipes[0][0], pipes[1][0], pipes[2][0], ours)
        try:
            with tempfile.TemporaryFile() as file:
                # In the file, not in the message: what a run found in one phase travels to the next, and may be large.
                file.write(phase.model_dump_json().encode() + b"\n" + request.model_dump_json().encode())
                file.flush()
                passed = [file.fileno(), *(pipe[1] for pipe in pipes), theirs.fileno()]
                socket.send_fds(self._socket, [b"?"], passed)
                if self._socket.recv(1) != b"+":
                    raise ConnectionError("the fork server has ended")
        except OSError:
            child.close()
            raise
        finally:
            for pipe in pipes:
                os.close(pipe[1])
            theirs.close()
        return child

    def _stop(self) -> None:
        """End the fork server, and with it everything that it has forked; take leave of one that is not ours."""
        if self._socket is not None:
            self._socket.close()
        if self._process is not None:
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._scratch:
            shutil.rmtree(self._scratch, ignore_errors=True)
        if self._users is not None:
            self._users.close()
        self._scratch = ""
        self._process = self._socket = self._ready = self._users = None
