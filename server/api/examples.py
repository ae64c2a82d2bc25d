"""`GET /api/v1/examples`: the gallery."""

from __future__ import annotations

from fastapi import APIRouter

from server.context import Shared
from server.examples import Example, examples, recorded_id

router = APIRouter(tags=["service"])


@router.get("/api/v1/examples")
def gallery(shared: Shared) -> list[Example]:
    """Snippets to start from. `run` is the id of a finished run of it, recorded with the product, where there is one."""
    return [
        example.model_copy(update={"run": run}) if shared.runs.state(run := recorded_id(example.name)) else example
        for example in examples()
    ]
