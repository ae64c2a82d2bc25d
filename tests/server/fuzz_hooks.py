"""For the fuzzer's process: most requests of a run are of one that exists, else none would get further than its id."""

from __future__ import annotations

import itertools
import os
import re
from typing import Any

import schemathesis

_COUNT = itertools.count()


@schemathesis.hook
def map_path_parameters(_context: Any, path_parameters: dict[str, Any] | None) -> dict[str, Any] | None:
    if path_parameters and "id" in path_parameters:
        number = next(_COUNT)
        if number % 3:
            path_parameters["id"] = os.environ["FUZZED_RUN"]
        # One that the pattern forbids stays: it has to be refused.
        if number % 2 and re.fullmatch("[0-9a-f]{64}", str(path_parameters.get("hash"))):
            path_parameters["hash"] = os.environ["FUZZED_HASH"]
    return path_parameters
