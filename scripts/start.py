"""Install everything into the project's own environment and start the explorer: `python3 scripts/start.py`.

Arguments are passed on to `aotscope serve` (`--port 9000`, `--help`)."""

from __future__ import annotations

import os
import sys

import environment


def main() -> None:
    python = environment.ensure()
    environment.say_what_is_missing()
    command = [str(python.parent / "aotscope"), "serve", *sys.argv[1:]]
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
