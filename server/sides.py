"""A run by what the command line calls it: a snippet to be run, the file of one that was, or the id of one in the store."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import orjson
from pydantic import ValidationError

from compiler.recording import Recording
from compiler.text import message
from server.document import Document, document
from server.local import UnusableError
from server.settings import Settings

# A recording of 20,000 nodes is 40 MB; unpacked, a file is never read beyond this.
_MOST_BYTES = 2_000_000_000


def document_of(name: str, settings: Settings, run: Callable[[Path], Document]) -> Document:
    """The document of a run. `run` runs a snippet. Raises UnusableError."""
    path = Path(name)
    if path.suffix == ".py":
        return run(path)
    if path.is_file():
        return read(path)
    return _of_store(name, settings)


def read(path: Path) -> Document:
    """A document or a recording, as JSON or as JSON under gzip. Raises UnusableError."""
    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            with gzip.open(path) as packed:
                data = packed.read(_MOST_BYTES)
        value = orjson.loads(data)
        kind = value.get("format") if isinstance(value, dict) else None
        if kind == "recording/1":
            return document(Recording.model_validate(value))
    except (OSError, EOFError, ValueError, LookupError) as fault:
        said = "not a recording" if isinstance(fault, ValidationError) else str(fault)
        raise UnusableError(message("server.file_unreadable", file=str(path), error=said)) from None
    if kind != "document/1":
        raise UnusableError(message("server.not_a_run", file=str(path)))
    made: Document = value
    return made


def _of_store(id: str, settings: Settings) -> Document:
    from server.store.artifacts import Artifacts
    from server.store.runs import Runs

    database = settings.url.removeprefix("sqlite:///")
    if settings.url.startswith("sqlite:///") and not Path(database).is_file():
        raise UnusableError(message("server.no_such_run", id=id))
    runs = Runs(settings.url)
    try:
        found = runs.get(id)
        if found is None:
            raise UnusableError(message("server.no_such_run", id=id))
        from server.document import stored

        return document(stored(runs, Artifacts(settings.folder / "artifacts"), found))
    finally:
        runs.close()
