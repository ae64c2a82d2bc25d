"""A fork server that is kept by itself, say in a container: `aotscope runner FOLDER`. It holds no database and knows no
worker; workers of its own user connect to its socket."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

from compiler.targets import TargetId
from server.sandbox.headers import build_headers, headers_folder
from server.sandbox.isolation import Mode
from server.sandbox.launcher import forkserver_command
from server.sandbox.limits import parent_environment, places, with_headers
from server.sandbox.outer import Outer
from server.sandbox.protocol import Configuration
from server.settings import Settings


def socket_path(folder: str, target: str = "cpu") -> str:
    """Where the runner of a target listens."""
    return str(Path(folder) / f"{target}.sock")


def replace_with_runner(folder: Path, target: TargetId, settings: Settings) -> NoReturn:
    """Become the fork server: nothing of this program, of its settings or of its environment stays. What the container keeps
    out is looked at by the fork server, which says it."""
    scratch = os.path.realpath(tempfile.mkdtemp(prefix="aotscope-children-"))
    environment = parent_environment(whole=False, apart=settings.isolation != Mode.NONE, gpu=target == "cuda") | places(
        scratch
    )
    headers = headers_folder(Path(tempfile.gettempdir()) / "aotscope", settings.child) if target == "cpu" else ""
    if headers and build_headers(headers, settings.child, scratch, (), environment, lambda: False):
        environment |= with_headers()
    else:
        headers = ""
    configuration = Configuration(
        child=settings.child,
        target=target,
        warm=True,
        spawn=sys.platform == "darwin",
        scratch=scratch,
        isolation=settings.isolation,
        outer=Outer.CONTAINER,
        headers=headers,
    )
    command = forkserver_command(socket_path(str(folder), target), configuration)
    os.execve(command[0], command, environment)
