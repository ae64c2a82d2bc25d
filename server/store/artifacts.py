"""Artifacts as files: named by the sha256 of their bytes, compressed once when written."""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import secrets
from pathlib import Path

HASH = re.compile(r"[0-9a-f]{64}")


class Artifacts:
    """A folder of immutable gzip files. A path is only ever made from a valid hash."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, digest: str) -> Path:
        """Where an artifact lies (its file is gzip). Raises ValueError for anything but a sha256 in lower-case hex."""
        if not HASH.fullmatch(digest):
            raise ValueError("not a sha256")
        return self._folder / digest[:2] / f"{digest}.json.gz"

    def put(self, digest: str, payload: bytes) -> None:
        """Keep a payload whose sha256 is `digest`. Raises ValueError when it is not."""
        path = self.path(digest)
        if hashlib.sha256(payload).hexdigest() != digest:
            raise ValueError("the payload's sha256 differs from its name")
        if path.exists():
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{secrets.token_hex(4)}.tmp")
        draft.write_bytes(gzip.compress(payload, compresslevel=4, mtime=0))
        os.replace(draft, path)

    def get(self, digest: str) -> bytes:
        """The payload. Raises FileNotFoundError when there is none."""
        return gzip.decompress(self.path(digest).read_bytes())
