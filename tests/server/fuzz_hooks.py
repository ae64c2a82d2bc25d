"""For the fuzzer's process: most requests of a run are of one that exists, else none would get further than its id."""

from __future__ import annotations

import itertools
import os
import re
from typing import Any

import httpx
import schemathesis

_COUNT = itertools.count()
_CLIENT = httpx.Client(timeout=30)


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


@schemathesis.hook
def before_call(context: Any, case: Any, _kwargs: Any) -> None:
    """The stream of a run has no end before the run has, and no worker is there: one that is to be followed is cancelled
    first."""
    run = (case.path_parameters or {}).get("id")
    if (
        context.operation.path.endswith("/events")
        and run != os.environ["FUZZED_RUN"]
        and re.fullmatch(r"\w+", str(run))
    ):
        headers = {"Authorization": token} if (token := os.environ.get("FUZZED_TOKEN")) else {}
        _CLIENT.delete(f"{os.environ['FUZZED_ADDRESS']}/api/v1/runs/{run}", headers=headers)
