"""How long an answer may be kept, and in which form it is sent."""

from __future__ import annotations

from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response

FOR_EVER = "max-age=31536000, immutable"


def wants_gzip(headers: Headers) -> bool:
    """Whether the client says that it reads gzip: by its name or by `*`, and not with `q=0`."""
    quality: dict[str, str] = {}
    for part in headers.get("accept-encoding", "").lower().split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        quality[name] = next((value[2:] for value in parameters if value.startswith("q=")), "1")
    return quality.get("gzip", quality.get("*", "0")).strip("0.") != ""


def encoded(
    request: Request, media_type: str, headers: dict[str, str], plain: Callable[[], bytes], packed: Callable[[], bytes]
) -> Response:
    """The bytes under gzip where the client reads it, else as they are; only the form that is sent is asked for."""
    headers = headers | {"vary": "accept-encoding"}
    if wants_gzip(request.headers):
        return Response(packed(), media_type=media_type, headers=headers | {"content-encoding": "gzip"})
    return Response(plain(), media_type=media_type, headers=headers)


def tagged(
    request: Request, tag: str, cache: str, media_type: str, plain: Callable[[], bytes], packed: Callable[[], bytes]
) -> Response:
    """What is known by a hash of its bytes: nothing but the headers, when the client has it already.

    The tag is a weak one: it stands for the same text under gzip and without."""
    headers = {"etag": f'W/"{tag}"', "cache-control": cache}
    if f'"{tag}"' in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers | {"vary": "accept-encoding"})
    return encoded(request, media_type, headers, plain, packed)
