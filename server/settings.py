"""Every setting of the server and of the command line: one row each, read from `AOTSCOPE_<NAME>`.

A test fails when a row is missing in the documentation.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from server.targets import wanted

PREFIX = "AOTSCOPE_"
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Setting:
    """One row: the field's name, what it is when nothing is said, and what it means."""

    name: str
    default: str | int | float
    help: str


def _data_folder() -> str:
    if sys.platform == "darwin":
        return str(Path.home() / "Library" / "Application Support" / "aotscope")
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return str(Path(base) / "aotscope")


SETTINGS = (
    Setting("data", "", "Folder of the database and the artifacts. Empty: the user's data folder."),
    Setting("database", "", "SQLAlchemy URL of the database. Empty: SQLite inside the data folder."),
    Setting("host", "127.0.0.1", "Address to listen on. Only loopback addresses are accepted."),
    Setting("port", 8000, "Port to listen on."),
    Setting(
        "behind",
        "",
        "`compose`: listen on all addresses of the container, whose port is published on loopback only.",
    ),
    Setting(
        "token",
        "",
        "Token that every request must bring, 16 letters, digits, - and _ at least. "
        "Empty: none is needed, unless snippets are not isolated; then one is made at the start and printed.",
    ),
    Setting(
        "runs_per_minute", 60, "Runs that one client may ask for in a minute; more are refused with 429. 0: no limit."
    ),
    Setting("proxies", 0, "Reverse proxies before the server that add to X-Forwarded-For; tells clients apart."),
    Setting(
        "targets",
        "",
        "What a worker serves, by id or name, with commas between (`cuda`, `cpu,h100`). Empty: all that it can.",
    ),
    Setting("concurrency", 1, "Runs that one worker executes at the same time."),
    Setting(
        "idle_seconds", 900.0, "Time without a run after which the warmed process of a target other than the CPU ends."
    ),
    Setting("queue", 64, "Runs that may wait; more are refused with 429."),
    Setting("queue_poll_seconds", 0.1, "How often a worker looks for a waiting run."),
    Setting("body_bytes", 2 * MIB, "Largest body of a request."),
    Setting("capture_seconds", 120.0, "Time limit of the capture: every stage up to generated code."),
    Setting("run_seconds", 300.0, "Time limit of a whole run, the native phase included."),
    Setting("memory_bytes", 8 << 30, "Memory of a run's processes together, above that of the warmed parent."),
    Setting("processes", 64, "Processes of a run at the same time."),
    Setting("file_bytes", 1 << 30, "Largest file that a run may write."),
    Setting("output_bytes", 1_000_000, "Printed output that is kept; the rest is cut, and said to be."),
    Setting("artifact_bytes", 256 * MIB, "Largest artifact."),
    Setting("artifacts_bytes", 1 << 30, "Bytes of all artifacts of a run."),
    Setting("artifacts", 20_000, "Artifacts of a run."),
    Setting("event_bytes", 4 * MIB, "Largest event."),
    Setting("events", 100_000, "Events of a run."),
    Setting("events_bytes", 128 * MIB, "Bytes of all events of a run, what it prints aside."),
    Setting("batch_seconds", 0.02, "Longest time for which events are held back to be written together."),
    Setting("follow_seconds", 0.025, "How often a stream looks for new events of a live run."),
    Setting("keep_alive_seconds", 15.0, "Silence after which a stream sends a comment."),
    Setting("heartbeat_seconds", 1.0, "How often a worker says that it lives."),
    Setting("dead_seconds", 10.0, "Silence after which a worker of another machine counts as dead."),
    Setting("disk_bytes", 1 << 30, "What a run may write to its scratch."),
    Setting("disk_entries", 50_000, "Files and folders of a run's scratch."),
    Setting(
        "isolation", "auto", "What keeps a run apart: namespaces, landlock, none, or auto, the strongest that works."
    ),
    Setting(
        "outer",
        "auto",
        "What stands around the process that runs are forked from: bubblewrap, none, or auto, bubblewrap where it works.",
    ),
    Setting(
        "runner",
        "",
        "Folder of the sockets of runners that are kept elsewhere (`aotscope runner`), one for each target. "
        "Empty: a worker starts its own.",
    ),
    Setting("child", "compiler.child", "Module whose `run_child` a child runs. Tests put their own here."),
)


@dataclass(frozen=True, slots=True)
class Settings:
    """The rows of `SETTINGS`, with their values."""

    data: str
    database: str
    host: str
    port: int
    behind: str
    token: str
    runs_per_minute: int
    proxies: int
    targets: str
    concurrency: int
    idle_seconds: float
    queue: int
    queue_poll_seconds: float
    body_bytes: int
    capture_seconds: float
    run_seconds: float
    memory_bytes: int
    processes: int
    file_bytes: int
    output_bytes: int
    artifact_bytes: int
    artifacts_bytes: int
    artifacts: int
    event_bytes: int
    events: int
    events_bytes: int
    batch_seconds: float
    follow_seconds: float
    keep_alive_seconds: float
    heartbeat_seconds: float
    dead_seconds: float
    disk_bytes: int
    disk_entries: int
    isolation: str
    outer: str
    runner: str
    child: str

    @property
    def folder(self) -> Path:
        return Path(self.data)

    @property
    def url(self) -> str:
        return self.database or f"sqlite:///{self.folder / 'aotscope.sqlite3'}"

    def environment(self) -> dict[str, str]:
        """The variables that make `load` in another process give these settings again."""
        return {PREFIX + row.name.upper(): str(getattr(self, row.name)) for row in SETTINGS}


def load(environment: Mapping[str, str] | None = None, **overrides: Any) -> Settings:
    """Settings from the environment, then `overrides` that are not None.

    Raises ValueError with a sentence when a variable does not hold a value of its setting's type."""
    environment = os.environ if environment is None else environment
    values: dict[str, Any] = {}
    for row in SETTINGS:
        raw = environment.get(PREFIX + row.name.upper())
        if raw is None:
            values[row.name] = row.default
            continue
        kind = type(row.default)
        try:
            values[row.name] = kind(raw)
        except ValueError:
            raise ValueError(f"{PREFIX}{row.name.upper()}={raw!r} is not a valid {kind.__name__}.") from None
    try:
        wanted(values["targets"])
    except ValueError as fault:
        raise ValueError(f"{PREFIX}TARGETS={values['targets']!r}: {fault}.") from None
    values["data"] = values["data"] or _data_folder()
    settings = Settings(**values)
    return replace(settings, **{name: value for name, value in overrides.items() if value is not None})


assert tuple(field.name for field in fields(Settings)) == tuple(row.name for row in SETTINGS)
