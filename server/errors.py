"""Errors as the API says them: `{"error": {"key", "params", "text"}}`."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.routing import compile_path

from compiler.text import Frozen, Message, message, render


class ErrorText(Frozen):
    """`text` is the sentence in the language that the client prefers (English or Chinese)."""

    key: str
    params: dict[str, str | int | float | bool | None] = {}
    text: str


class ErrorBody(Frozen):
    error: ErrorText = Field(
        examples=[{"key": "server.run_unknown", "params": {"id": "abc"}, "text": "There is no run with the id abc."}]
    )


class ApiError(Exception):
    """A refusal with its status, sentence and headers."""

    def __init__(self, status: int, cause: Message, headers: dict[str, str] | None = None) -> None:
        super().__init__(cause.key)
        self.status = status
        self.cause = cause
        self.headers = headers


def language(accepted: str | None) -> str:
    """The first of our languages that an Accept-Language header names."""
    for part in (accepted or "").split(","):
        tag = part.split(";")[0].strip().lower()[:2]
        if tag in ("en", "zh"):
            return tag
    return "en"


def answer(status: int, cause: Message, accepted: str | None, headers: dict[str, str] | None = None) -> JSONResponse:
    text = ErrorText(key=cause.key, params=cause.params, text=render(cause, language(accepted)))
    return JSONResponse(ErrorBody(error=text).model_dump(mode="json"), status, headers)


async def on_api_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ApiError)
    return answer(error.status, error.cause, request.headers.get("accept-language"), error.headers)


async def on_invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first: dict[str, Any] = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    cause = message("server.invalid_request", where=where, why=str(first["msg"]))
    return answer(422, cause, request.headers.get("accept-language"))


async def on_http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    accepted = request.headers.get("accept-language")
    headers = dict(error.headers) if error.headers else None
    if error.status_code == 404:
        return answer(404, message("server.not_found", path=request.url.path), accepted, headers)
    if error.status_code == 405:
        if allowed := _allowed(request):
            headers = {"allow": ", ".join(allowed)}
        return answer(405, message("server.method_not_allowed", method=request.method), accepted, headers)
    if error.status_code == 400:
        # The framework's word for a body that is not even text.
        return answer(422, message("server.invalid_request", where="body", why=str(error.detail)), accepted, headers)
    if error.status_code == 413:
        return answer(413, message("server.body_too_large", limit=int(error.detail)), accepted, headers)
    return answer(error.status_code, message("server.refused", why=str(error.detail)), accepted, headers)


def _allowed(request: Request) -> list[str]:
    """The documented methods of a path: the framework names those of one operation only."""
    found: set[str] = set()
    for path, operations in request.app.openapi()["paths"].items():
        if compile_path(path)[0].match(request.url.path):
            found |= {method.upper() for method in operations}
    return sorted(found)


async def on_fault(request: Request, _error: Exception) -> JSONResponse:
    """A mistake of ours; the exception itself goes on to the log."""
    return answer(500, message("server.fault"), request.headers.get("accept-language"))
