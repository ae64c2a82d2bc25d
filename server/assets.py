"""The front end's files as they are served: under an address with a hash of their bytes, and may then be kept for ever."""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from server.caching import FOR_EVER, tagged

STATIC = Path(__file__).parent / "static"
# Of what the front end's build writes; nothing that leads out of the folder.
_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,99}")


@dataclass(frozen=True)
class Asset:
    """A file's bytes, the same under gzip, and the first half of their sha256 in hex."""

    plain: bytes
    packed: bytes
    tag: str


@lru_cache(maxsize=64)
def _read(path: Path, changed_ns: int, size: int) -> Asset:
    plain = path.read_bytes()
    return Asset(plain, gzip.compress(plain, compresslevel=9, mtime=0), hashlib.sha256(plain).hexdigest()[:32])


def asset(name: str) -> Asset | None:
    """The file of this name, read and compressed once for each of its versions; None when there is none."""
    path = STATIC / name
    if not _NAME.fullmatch(name) or not path.is_file():
        return None
    stat = path.stat()
    return _read(path, stat.st_mtime_ns, stat.st_size)


def address(name: str) -> str:
    """Where the page finds a file: with its tag, so that another version of it has another address."""
    found = asset(name)
    return f"/static/{name}" if found is None else f"/static/{name}?v={found.tag}"


def serve(request: Request) -> Response:
    """`GET /static/{name}`. Asked for by its tag it may be kept for ever; by its name alone it is asked about each time."""
    name = request.path_params["name"]
    found = asset(name)
    if found is None:
        raise HTTPException(404)
    cache = f"public, {FOR_EVER}" if request.query_params.get("v") == found.tag else "no-cache"
    media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return tagged(request, found.tag, cache, media_type, lambda: found.plain, lambda: found.packed)
