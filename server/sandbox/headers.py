"""The one thing that runs share: precompiled C++ headers, which they read and nobody writes once they are there.

They are built before the fork server starts, by a process of their own inside the same outer layer, from our own models."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from server.sandbox.keeper import start_kept
from server.versions import versions

_LOOK_SECONDS = 0.1


def headers_folder(data: Path, child: str) -> str:
    """Where those for these versions are, or will be; "" for a child whose package has none."""
    if importlib.util.find_spec(_builder(child)) is None:
        return ""
    name = "-".join((versions()["aotscope"], versions()["torch"], f"{sys.version_info.major}.{sys.version_info.minor}"))
    return str(data / "headers" / name)


def _builder(child: str) -> str:
    return f"{child.rpartition('.')[0]}.headers"


def build_headers(
    folder: str,
    child: str,
    scratch: str,
    before: Sequence[str],
    environment: Mapping[str, str],
    given_up: Callable[[], bool],
) -> bool:
    """Have them built where they are missing: in `scratch`, and then moved to `folder`, out of the builder's reach. Whether they
    are there now: without them runs take longer, and nothing else changes. `before` puts the builder into the outer layer."""
    if os.path.isdir(folder):
        return True
    made = os.path.join(scratch, "headers")
    builder = start_kept(
        [*before, sys.executable, "-P", "-m", _builder(child), made], pass_fds=(), env=dict(environment)
    )
    while True:
        try:
            builder.wait(_LOOK_SECONDS)
            break
        except subprocess.TimeoutExpired:
            if given_up():
                builder.kill()
    if builder.returncode or not os.path.isdir(made):
        return False
    # Copied, not moved: whoever built them keeps no right to these files.
    unfinished = f"{folder}.{os.getpid()}"
    shutil.copytree(made, unfinished, copy_function=_copy, ignore=shutil.ignore_patterns("locks"))
    shutil.rmtree(made)
    try:
        os.rename(unfinished, folder)
    except OSError:
        # Another worker's came first.
        shutil.rmtree(unfinished)
    return os.path.isdir(folder)


def _copy(source: str, target: str) -> str:
    shutil.copyfile(source, target, follow_symlinks=False)
    # A precompiled header is taken for what its source was by the time of that.
    times = os.stat(source)
    os.utime(target, ns=(times.st_atime_ns, times.st_mtime_ns))
    return target
