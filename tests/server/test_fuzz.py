"""Requests that the OpenAPI document allows, and others near it, against the whole service: no fault, only documented answers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.conftest import ROOT, Service
from tests.server.test_forged import TOOLS

RICH = (
    TOOLS
    + """
stage("source")
event({"type": "artifact", "name": "joint", "graph": "joint", "artifact": made(graph(), "graph")}, stage="joint", compile="0/0")
"""
)


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, dict[str, str]]]:
    """The service; a finished run and one of its artifacts, as the hooks want to know them."""
    service = Service(tmp_path_factory.mktemp("fuzzed"), queue=1_000_000, follow_seconds=0.01, keep_alive_seconds=0.5)
    service.start()
    try:
        service.ready()
        run = service.submit(RICH)
        service.stream(run)
        document = service.client.get(f"/api/v1/runs/{run}/document").json()
        (artifact,) = document["compiles"][0]["stages"][0]["artifacts"]
        # From here on without a worker: the fuzzer's own runs import torch or sleep, thousands of them, and every stream of
        # one would wait for its turn in the queue.
        service.stop()
        service = Service(service.data, "--no-worker", queue=1_000_000, follow_seconds=0.01, keep_alive_seconds=0.5)
        service.start()
        yield service, {"FUZZED_RUN": run, "FUZZED_HASH": artifact["hash"]}
    finally:
        service.stop()


@pytest.mark.parametrize(
    ("examples", "phases"),
    [
        (66, "examples,fuzzing"),
        pytest.param(
            2000,
            "examples,coverage,fuzzing,stateful",
            marks=[pytest.mark.long, pytest.mark.timeout(1500)],
        ),
    ],
)
def test_only_documented_answers(
    fuzzed: tuple[Service, dict[str, str]], examples: int, phases: str, tmp_path: Path
) -> None:
    """All checks but one: DELETE cancels a run, which can be read afterwards, and so is not gone as the fuzzer expects."""
    service, known = fuzzed
    paths = service.client.get("/api/openapi.json").json()["paths"]
    operations = sum(len(methods) for methods in paths.values())
    token = service.client.headers.get("authorization")
    done = subprocess.run(
        [
            str(Path(sys.executable).parent / "schemathesis"),
            "run",
            str(service.client.base_url.join("/api/openapi.json")),
            "--checks=all",
            "--exclude-checks=use_after_free",
            f"--phases={phases}",
            f"--max-examples={-(-examples // operations)}",
            "--request-timeout=30",
            "--generation-database=none",
            "--no-color",
            *(["--seed=1"] if examples < 2000 else []),
            *([f"--header=Authorization: {token}"] if token else []),
        ],
        cwd=tmp_path,
        env=os.environ
        | known
        | {"SCHEMATHESIS_HOOKS": "tests.server.fuzz_hooks", "PYTHONPATH": str(ROOT)}
        | {"FUZZED_ADDRESS": str(service.client.base_url).rstrip("/"), "FUZZED_TOKEN": token or ""},
        capture_output=True,
        text=True,
        check=False,
    )
    print(done.stdout[-3000:])
    assert done.returncode == 0, done.stdout + done.stderr
    made = re.search(r"(\d+) generated", done.stdout)
    assert made is not None
    assert int(made[1]) >= examples // 2
    assert f"{operations} selected / {operations} total" in done.stdout
    assert service.client.get("/api/v1/health").status_code == 200
