"""`/r/{id}/plain`: a run without scripts, and its stylesheet."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import HTMLResponse
from jinja2 import TemplateError

from compiler.text import message
from server import errors
from server.context import Shared
from server.document import stored
from server.plain import absent, plain, stylesheet

router = APIRouter(include_in_schema=False)


@router.get("/r/{id}/plain", response_class=HTMLResponse)
def page(
    id: str,
    shared: Shared,
    lang: Annotated[Literal["en", "zh"] | None, Query()] = None,
    accept_language: Annotated[str | None, Header()] = None,
) -> HTMLResponse:
    """The run as it stands, in the language asked for, else in the browser's."""
    language = lang or errors.language(accept_language)
    headers = {"content-language": language, "vary": "accept-language"}
    run = shared.runs.get(id)
    if run is None:
        return HTMLResponse(absent(id[:100], language), 404, headers)
    try:
        text = plain(stored(shared.runs, shared.artifacts, run), run.state, language)
    except (LookupError, TypeError, ValueError, ArithmeticError, TemplateError):
        # What each payload says of itself was checked; what they say of each other, a run can forge.
        raise errors.ApiError(409, message("server.artifact_contradicts")) from None
    return HTMLResponse(text, headers=headers)


@router.get("/plain.css")
def css() -> Response:
    return Response(stylesheet(), media_type="text/css", headers={"cache-control": "public, max-age=3600"})
