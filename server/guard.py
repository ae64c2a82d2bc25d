"""What stands before every request: who may ask (loopback only), how much may be sent, what a browser may do with the answer."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from compiler.text import message
from server.address import is_loopback
from server.errors import ApiError, answer

_UNSAFE = {"POST", "PUT", "PATCH", "DELETE"}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
    "connect-src 'self'; frame-src 'self'; worker-src 'self' blob:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors {ancestors}"
)


def host_of(authority: str) -> str | None:
    """The host of `host[:port]`, None when it is not one."""
    try:
        parts = urlsplit(f"//{authority}")
        _ = parts.port
    except ValueError:
        return None
    return parts.hostname if parts.username is None and not parts.path else None


class Guard:
    """ASGI middleware: Host and Origin checks, a limit on bodies, security headers."""

    def __init__(self, app: ASGIApp, body_bytes: int) -> None:
        self._app = app
        self._body_bytes = body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        send = _with_security_headers(scope["path"], send)
        received = 0

        async def counted() -> Message:
            nonlocal received
            part = await receive()
            received += len(part.get("body", b""))
            if received > self._body_bytes:
                # The framework passes this kind on as it is, to the handler that makes our answer of it.
                raise HTTPException(413, str(self._body_bytes))
            return part

        try:
            refuse(scope["method"], headers)
            # A length that is not a number never comes here: the HTTP parser refuses it.
            if int(headers.get("content-length") or 0) > self._body_bytes:
                raise ApiError(413, message("server.body_too_large", limit=self._body_bytes))
        except ApiError as refusal:
            await answer(refusal.status, refusal.cause, headers.get("accept-language"))(scope, receive, send)
            return
        await self._app(scope, counted, send)


def refuse(method: str, headers: Headers) -> None:
    """Raises ApiError for a request that some other site made a browser send.

    A name that is not this machine's own in Host is DNS rebinding; a foreign Origin is another page's script or form."""
    authority = headers.get("host", "")
    host = host_of(authority)
    if host is None or not is_loopback(host):
        raise ApiError(403, message("server.host_refused", host=authority[:200]))
    if method not in _UNSAFE:
        return
    origin = headers.get("origin")
    if origin is not None and origin not in (f"http://{authority}", f"https://{authority}"):
        raise ApiError(403, message("server.origin_refused", origin=origin[:200]))
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise ApiError(403, message("server.origin_refused", origin=headers["sec-fetch-site"][:200]))


def _with_security_headers(path: str, send: Send) -> Send:
    async def decorated(part: Message) -> None:
        if part["type"] == "http.response.start":
            headers = MutableHeaders(scope=part)
            ancestors = "*" if path.startswith("/embed/") else "'self'"
            headers.setdefault("content-security-policy", _POLICY.format(ancestors=ancestors))
            headers["x-content-type-options"] = "nosniff"
            headers["referrer-policy"] = "no-referrer"
            headers["cross-origin-resource-policy"] = "same-origin"
            headers.setdefault("cache-control", "no-store")
        await send(part)

    return decorated
