"""What there is to attack: a server's files, its process, its services, and a shared cache; and whether they are still
as they were."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

_VICTIM = """
import ctypes, signal, sys
b = ctypes.create_string_buffer(b"SECRET", 64)
print(ctypes.addressof(b), flush=True)
while True: signal.pause()
"""


class Targets:
    """Made anew whenever something was broken. `told` is what an attack knows of them."""

    def __init__(self, base: Path) -> None:
        self._folder = base / "targets"
        self._folder.mkdir()
        # Open to everyone: the walls have to hold, not the modes of the files.
        for name, text in (("secret", "SECRET"), ("neighbour", "NEIGHBOUR"), ("library.py", "good = 1\n")):
            self._file(self._folder / name, text)
        self.application = self._folder / "application"
        self.golden = self._folder / "golden"
        self.library = self._folder / "library"
        for folder in (self.application, self.golden, self.library):
            folder.mkdir()
        self._file(self.application / "application_settings.py", "TOKEN = 'SECRET'\n")
        self._file(self.library / "package.py", "good = 1\n")
        for name in ("kernel.so", "graph"):
            self._file(self.golden / name, "good")
        self._fifo = self._folder / "fifo"
        os.mkfifo(self._fifo, 0o666)
        self._fifo_end = os.open(self._fifo, os.O_RDONLY | os.O_NONBLOCK)
        for folder in (self._folder, self.application, self.golden, self.library):
            folder.chmod(0o777)
        self._outside = [
            Path(folder) / f"aotscope-attack-{os.getpid()}" for folder in (tempfile.gettempdir(), "/dev/shm")
        ]
        self._sockets()
        self.victim = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _VICTIM],
            stdout=subprocess.PIPE,
            env={"AOTSCOPE_SECRET": "SECRET"},
            start_new_session=True,
        )
        assert self.victim.stdout is not None
        self.told: dict[str, Any] = {
            "secret": str(self._folder / "secret"),
            "folder": str(self._folder),
            "neighbour": str(self._folder / "neighbour"),
            "application": str(self.application),
            "server_module": str(Path(__file__).parents[2] / "server" / "settings.py"),
            "library": str(self.library / "package.py"),
            "golden": str(self.golden),
            "fifo": str(self._fifo),
            "tmp": str(self._outside[0]),
            "shm": str(self._outside[1]),
            "tcp": self._tcp.getsockname()[1],
            "udp": self._udp.getsockname()[1],
            "unix": str(self._folder / "unix"),
            "unix_datagram": str(self._folder / "unix_datagram"),
            "abstract": self._abstract.getsockname(),
            "victim": self.victim.pid,
            "victim_group": self.victim.pid,
            "address": int(self.victim.stdout.readline()),
        }
        self._before = self._look()

    def _file(self, path: Path, text: str) -> None:
        path.write_text(text)
        path.chmod(0o666)

    def _sockets(self) -> None:
        self._tcp = socket.create_server(("127.0.0.1", 0))
        self._udp = socket.socket(type=socket.SOCK_DGRAM)
        self._udp.bind(("127.0.0.1", 0))
        self._unix = socket.socket(socket.AF_UNIX)
        self._unix.bind(str(self._folder / "unix"))
        self._unix.listen()
        self._unix_datagram = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._unix_datagram.bind(str(self._folder / "unix_datagram"))
        self._abstract = socket.socket(socket.AF_UNIX)
        self._abstract.bind(f"\0aotscope-{os.getpid()}")
        self._abstract.listen()
        for name in ("unix", "unix_datagram"):
            (self._folder / name).chmod(0o777)
        self._all = (self._tcp, self._udp, self._unix, self._unix_datagram, self._abstract)
        for each in self._all:
            each.setblocking(False)

    def _look(self) -> dict[str, Any]:
        """Everything that an attack could have changed."""
        files = {}
        for path in sorted(self._folder.rglob("*")):
            status = path.lstat()
            content = path.read_bytes() if path.is_file() else b""
            attributes = os.listxattr(path) if path.is_file() else []
            files[str(path)] = (status.st_mode, status.st_uid, status.st_mtime_ns, status.st_nlink, content, attributes)
        pid = self.victim.pid
        alive = self.victim.poll() is None
        return {
            "files": files,
            "outside": [path.exists() for path in self._outside],
            "victim": alive,
            "victim's state": (
                os.getpriority(os.PRIO_PROCESS, pid),
                os.sched_getaffinity(pid),
                os.sched_getscheduler(pid),
                Path(f"/proc/{pid}/limits").read_text(),
            )
            if alive
            else None,
            "named pipe": os.read(self._fifo_end, 100),
            "sockets": [self._heard(each) for each in self._all],
        }

    def _heard(self, each: socket.socket) -> bool:
        try:
            if each.type is socket.SOCK_DGRAM:
                each.recv(100)
            else:
                each.accept()[0].close()
        except BlockingIOError:
            return False
        return True

    def broken(self) -> list[str]:
        """What is no longer as it was."""
        now = self._look()
        return [name for name in self._before if now[name] != self._before[name]]

    def close(self) -> None:
        self.victim.kill()
        self.victim.wait()
        assert self.victim.stdout is not None
        self.victim.stdout.close()
        for each in self._all:
            each.close()
        os.close(self._fifo_end)
        shutil.rmtree(self._folder)
        for path in self._outside:
            path.unlink(missing_ok=True)
