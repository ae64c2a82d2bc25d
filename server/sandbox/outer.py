"""The layer around the fork server itself: bubblewrap on a laptop, a container in the scaled form.

Whoever breaks out of a run then stands in a process that has no network, no rights, no database and nothing to write but
scratches. What the layer promises is looked at from inside (`openings`), not taken from how it was started."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path

from server.sandbox.isolation import IsolationError, syscalls
from server.sandbox.isolation.reading import SYSTEM_FILES, needed, outermost


class Outer(StrEnum):
    """What stands around the fork server."""

    BUBBLEWRAP = "bubblewrap"
    CONTAINER = "container"
    NONE = "none"


def code_folders(child: str) -> tuple[str, ...]:
    """The packages that a fork server imports: ours, and the one of the child's module. Nothing is imported for it."""
    found = []
    for package in dict.fromkeys(("server", "compiler", child.partition(".")[0])):
        spec = importlib.util.find_spec(package)
        if spec is not None:
            found += spec.submodule_search_locations or []
    return tuple(found)


def bubblewrap(
    readable: Iterable[str], writable: Iterable[str], user: int | None, devices: Iterable[str] = ()
) -> list[str]:
    """The words before a command that put it into bubblewrap. `user`: whom a command of root's becomes in there; None for an
    ordinary user, who is root of nothing but a namespace of their own. `devices`: nodes of a GPU, shown too.
    Raises IsolationError when a program is missing."""
    words = [_program("bwrap"), "--die-with-parent", "--new-session", "--chdir", "/"]
    if user is None:
        words += ["--unshare-all"]
    else:
        # No user namespace: in one, root's processes would still be root's to the rest of the machine.
        words += [f"--unshare-{what}" for what in ("ipc", "pid", "net", "uts", "cgroup")]
        words += ["--cap-drop", "ALL"]
        words += [word for right in ("SETUID", "SETGID", "SETPCAP") for word in ("--cap-add", f"CAP_{right}")]
    shown = [*outermost((*readable, *SYSTEM_FILES))]
    writable = [*writable]
    # bubblewrap makes them for its own user only.
    above = {str(folder) for path in (*shown, *writable) for folder in Path(path).parents if folder != Path("/")}
    for folder in sorted(above, key=len):
        if not any(folder == path or folder.startswith(path + "/") for path in shown):
            words += ["--perms", "0755", "--dir", folder]
    for path in shown:
        words += ["--symlink", os.readlink(path), path] if os.path.islink(path) else ["--ro-bind", path, path]
    words += ["--proc", "/proc", "--dev", "/dev"]
    words += [word for node in devices for word in ("--dev-bind", node, node)]
    for path in writable:
        words += ["--bind", path, path]
    words += ["--remount-ro", "/"]
    if user is not None:
        words += [_program("setpriv"), f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        words += ["--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"]
    return words


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise IsolationError("outer", f"{name} is not installed")
    return found


def readable_for(child: str) -> tuple[str, ...]:
    """What a fork server of this child module reads."""
    return needed(*code_folders(child))


def openings() -> list[str]:
    """What an outer layer has to close and is open, seen from this process. Empty: it stands."""
    with open("/proc/self/status") as file:
        status = dict(line.split(":", 1) for line in file)
    others = [name for _index, name in socket.if_nameindex() if name != "lo"]
    return [
        said
        for said, is_open in (
            ("it is root", os.geteuid() == 0),
            ("it has capabilities", any(syscalls.capabilities())),
            ("it may gain privileges", status["NoNewPrivs"].strip() != "1"),
            (f"it has a network ({', '.join(others)})", bool(others)),
            ("the root file system can be written", not os.statvfs("/").f_flag & os.ST_RDONLY),
            ("its own code can be written", not os.statvfs(__file__).f_flag & os.ST_RDONLY),
        )
        if is_open
    ]
