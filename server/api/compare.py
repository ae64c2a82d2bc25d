"""`GET /api/v1/compare/{a}/{b}`: two runs held against each other."""

from __future__ import annotations

from fastapi import APIRouter

from compiler.ir.comparison import RunComparison
from compiler.text import message
from server.compare import compare
from server.context import Shared
from server.document import document, stored
from server.errors import ApiError, ErrorBody

router = APIRouter(tags=["runs"])


@router.get(
    "/api/v1/compare/{a}/{b}",
    responses={
        404: {"model": ErrorBody},
        409: {"model": ErrorBody, "description": "One of them is not over, or contradicts itself."},
    },
)
def compared(a: str, b: str, shared: Shared) -> RunComparison:
    """What differs between two runs that are over, stage by stage. `equal` says whether the compiler made the same of both."""
    one, two = (document(stored(shared.runs, shared.artifacts, shared.over(run))) for run in (a, b))
    try:
        return compare(one, two)
    except (LookupError, TypeError, ValueError, ArithmeticError):
        # What each payload says of itself was checked; what they say of each other, a run can forge.
        raise ApiError(409, message("server.artifact_contradicts")) from None
