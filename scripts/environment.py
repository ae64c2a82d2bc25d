"""The project's own environment, made by the two commands of the README. Standard library only: it runs before anything
is installed."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
CPU_WHEELS = "https://download.pytorch.org/whl/cpu"


def stop(sentence: str) -> None:
    """End with one sentence for the user, and no traceback."""
    sys.exit(f"aotscope: {sentence}")


def is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def apt_install(*packages: str) -> bool:
    """Install Debian packages, when this is Debian and we are root. False: it could not be done."""
    if not (is_root() and shutil.which("apt-get")):
        return False
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "update", "-qq"], env=environment, stdout=subprocess.DEVNULL, check=False)
    done = subprocess.run(
        ["apt-get", "install", "-y", "-qq", *packages], env=environment, stdout=subprocess.DEVNULL, check=False
    )
    return done.returncode == 0


def extra_index() -> list[str]:
    """Where PyTorch's own index answers, take its CPU wheel: PyPI's for Linux brings gigabytes of CUDA with it."""
    try:
        urllib.request.urlopen(f"{CPU_WHEELS}/torch/", timeout=3).close()
    except OSError:
        return []
    return ["--extra-index-url", CPU_WHEELS]


def ensure(extra: str = "") -> Path:
    """Make `.venv` hold the project with Triton and, with `extra="dev"`, what its tests need. Returns its Python.

    Does nothing when the environment was made from the same pyproject.toml and constraints.txt already."""
    if sys.version_info < (3, 11):  # noqa: UP036 - the very check that tells a user of an older Python
        stop(
            f"Python 3.11 or newer is needed; this is {sys.version.split()[0]}. Start the command with a newer python3."
        )
    inputs = [(ROOT / name).read_bytes() for name in ("pyproject.toml", "constraints.txt")]
    stamp = hashlib.sha256(b"\0".join([*inputs, str(ROOT).encode(), sys.version.encode()])).hexdigest()
    marker = VENV / f".aotscope-{extra or 'run'}"
    markers = [marker] if extra else [marker, VENV / ".aotscope-dev"]
    if any(m.exists() and m.read_text() == stamp for m in markers):
        return PYTHON
    if importlib.util.find_spec("ensurepip") is None and not apt_install("python3-venv"):
        stop("this Python cannot make virtual environments. On Debian and Ubuntu: apt-get install python3-venv")
    print(f"aotscope: installing into {VENV} (torch included; this takes a few minutes the first time)", flush=True)
    if not PYTHON.exists():
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
    what = f"{ROOT}[triton,{extra}]" if extra else f"{ROOT}[triton]"
    command = [
        str(PYTHON),
        "-m",
        "pip",
        "install",
        "-q",
        "-c",
        str(ROOT / "constraints.txt"),
        *extra_index(),
        "-e",
        what,
    ]
    if subprocess.run(command, check=False).returncode != 0:
        stop(
            "pip could not install what is needed; its message is above. Check the network and start the command again."
        )
    marker.write_text(stamp)
    return PYTHON


def say_what_is_missing() -> None:
    """One sentence for each thing that the explorer can do without, but not show."""
    if not any(shutil.which(name) for name in (os.environ.get("CXX", "g++"), "g++", "clang++")):
        print(
            "aotscope: no C++ compiler found. Every stage up to generated code works; compiling it natively, running and "
            "timing do not. On Debian and Ubuntu: apt-get install g++",
            flush=True,
        )
    if shutil.which("dot") is None:
        print(
            "aotscope: Graphviz's dot not found. Static pictures come from our own layout instead. "
            "On Debian and Ubuntu: apt-get install graphviz",
            flush=True,
        )
