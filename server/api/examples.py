"""`GET /api/v1/examples`: the gallery."""

from __future__ import annotations

import gzip

from fastapi import APIRouter, Request, Response
from pydantic import TypeAdapter

from server.caching import encoded
from server.context import Shared
from server.examples import Example, examples, recorded_id

router = APIRouter(tags=["service"])


_GALLERY = TypeAdapter(list[Example])


@router.get("/api/v1/examples", response_model=list[Example])
def gallery(request: Request, shared: Shared) -> Response:
    """Snippets to start from. `run` is the id of a finished run of it, recorded with the product, where there is one."""
    found = [
        example.model_copy(update={"run": run}) if shared.runs.state(run := recorded_id(example.name)) else example
        for example in examples()
    ]
    data = _GALLERY.dump_json(found)
    return encoded(request, "application/json", {}, lambda: data, lambda: gzip.compress(data, compresslevel=6, mtime=0))
