"""A run, or a part of it, in the forms that other tools read. All from a document (`document/1`); nothing here imports torch."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

Document = dict[str, Any]


def stages_of(document: Document) -> Iterator[tuple[str | None, Document]]:
    """Every stage with its compile: those of the run (None) first."""
    yield from ((None, stage) for stage in document["stages"])
    for compiled in document["compiles"]:
        yield from ((compiled["id"], stage) for stage in compiled["stages"])


def payloads(document: Document, kind: str) -> Iterator[tuple[str | None, Document, Document]]:
    """(compile, artifact, payload) of every artifact of a kind, in the order in which they were made."""
    for compiled, stage in stages_of(document):
        for made in stage["artifacts"]:
            if made["kind"] == kind:
                yield compiled, made, made["payload"]


def safe_name(*parts: str) -> str:
    """A file's name out of texts that may be the snippet's: letters, digits, `_`, `-` and `.`, at most 100 of them, and never
    one that a shell or a file system reads in another way."""
    joined = "-".join(part for part in parts if part)
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", joined)[:100].strip(".-") or "aotscope"
