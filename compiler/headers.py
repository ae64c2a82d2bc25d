"""`python -m compiler.headers FOLDER`: precompile the C++ headers that runs then read there. Nothing of a snippet runs in
this process.

Without a C++ compiler there is nothing to build, and no run needs one."""

from __future__ import annotations

import sys
from pathlib import Path

from compiler.torch_compat import headers, warming
from compiler.torch_compat.build import cpp_compiler


def main() -> None:
    """Raises what torch raises."""
    if cpp_compiler() is None:
        return
    with warming.quiet():
        headers.build_headers(Path(sys.argv[1]))


if __name__ == "__main__":
    main()
