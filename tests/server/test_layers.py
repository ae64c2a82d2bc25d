"""What imports what, settings, messages."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from compiler.text import catalogue
from server.settings import SETTINGS, load
from tests.server.conftest import ROOT


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("server.app", {"torch"}),
        ("server.worker.agent", {"torch"}),
        ("server.local", {"torch", "dbos", "fastapi", "uvicorn"}),
        ("server.cli", {"torch", "dbos", "fastapi", "uvicorn", "sqlalchemy"}),
        ("server.sandbox.forkserver", {"torch", "dbos", "fastapi", "sqlalchemy", "rich"}),
    ],
)
def test_heavy_imports_stay_away(module: str, absent: set[str]) -> None:
    code = f"import sys, {module}; print(sorted(set(sys.modules) & {absent!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def test_no_file_of_the_server_imports_torch() -> None:
    examples = ROOT / "server" / "examples"
    files = [file for file in (ROOT / "server").rglob("*.py") if examples not in file.parents]
    guilty = [file for file in files if re.search(r"^\s*(import|from) torch\b", file.read_text(), re.M)]
    assert (guilty, len(files) > 20) == ([], True)


def test_settings_come_from_the_environment_and_go_back_to_it() -> None:
    settings = load({"AOTSCOPE_PORT": "9", "AOTSCOPE_BATCH_SECONDS": "0.5", "AOTSCOPE_DATA": "/x"}, port=7)
    assert (settings.port, settings.batch_seconds, settings.url) == (7, 0.5, "sqlite:////x/aotscope.sqlite3")
    assert load(settings.environment()) == settings
    assert all(row.help for row in SETTINGS)
    with pytest.raises(ValueError, match="AOTSCOPE_PORT='x' is not a valid int"):
        load({"AOTSCOPE_PORT": "x"})


def test_every_key_that_the_server_says_is_in_both_languages_and_none_else() -> None:
    files = [*(ROOT / "server").rglob("*.py")]
    said = {key for file in files for key in re.findall(r'message\(\s*"(server\.\w+)"', file.read_text())}
    for language in ("en", "zh"):
        assert {key for key in catalogue(language) if key.startswith("server.")} == said
    for key in said:
        fields = [set(re.findall(r"\{(\w+)\}", catalogue(language)[key])) for language in ("en", "zh")]
        assert (key, fields[0]) == (key, fields[1])


def test_compose_is_loopback_only_and_not_root() -> None:
    yaml = pytest.importorskip("yaml")
    compose = yaml.safe_load(Path(ROOT / "docker-compose.yml").read_text())
    services = compose["services"]
    assert set(services) == {"api", "worker", "runner", "worker-gpu", "runner-gpu"}
    # Where strangers' programs are: no network, no data, nothing to write to but memory and the socket's folder.
    for name, scratch in (("runner", "4g"), ("runner-gpu", "8g")):
        runner = services[name]
        volumes = [f"{name}:/run/aotscope"]
        assert (runner["network_mode"], runner["read_only"], runner["volumes"]) == ("none", True, volumes)
        assert (runner["cap_drop"], runner["security_opt"]) == (["ALL"], ["no-new-privileges:true"])
        assert runner["tmpfs"] == [f"/tmp:exec,size={scratch}"]
    assert "environment" not in services["runner"]
    # The GPU is the runner's alone, and its worker takes no other runs.
    reserving = [name for name, service in services.items() if "deploy" in service]
    assert reserving == ["runner-gpu"]
    (device,) = services["runner-gpu"]["deploy"]["resources"]["reservations"]["devices"]
    assert (device["driver"], device["capabilities"]) == ("nvidia", ["gpu"])
    assert services["runner-gpu"]["command"][-2:] == ["--target", "cuda"]
    assert services["worker-gpu"]["environment"]["AOTSCOPE_TARGETS"] == "cuda"
    assert all(services[name]["profiles"] == ["gpu"] for name in ("worker-gpu", "runner-gpu"))
    assert services["api"]["ports"] == ["127.0.0.1:8000:8000"]
    assert not any("ports" in service for name, service in services.items() if name != "api")
    assert re.search(r"^USER (?!root)", (ROOT / "Dockerfile").read_text(), re.M)
