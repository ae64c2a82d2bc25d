"""What stands before every request: who may ask (loopback only), how much may be sent, what a browser may do with the answer."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from compiler.text import message
from server.errors import ApiError, answer

_UNSAFE = {"POST", "PUT", "PATCH", "DELETE"}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
    "connect-src 'self'; worker-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors {ancestors}"
)


def is_loopback(host: str) -> bool:
    """Whether a host name or address, without port, can only mean this machine."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def host_of(authority: str) -> str | None:
    """The host of `host[:port]`, None when it is not one."""
    try:
        parts = urlsplit(f"//{authority}")
        _ = parts.port
    except ValueError:
        return None
    return parts.hostname if parts.username is None and not parts.path else None


class _TooLargeError(Exception):
    pass


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
        accepted = headers.get("accept-language")
        send = _with_security_headers(scope["path"], send)
        started = False
        received = 0

        async def counted() -> Message:
            nonlocal received
            part = await receive()
            received += len(part.get("body", b""))
            if received > self._body_bytes:
                raise _TooLargeError
            return part

        async def watched(part: Message) -> None:
            nonlocal started
            started = True
            await send(part)

        too_large = ApiError(413, message("server.body_too_large", limit=self._body_bytes))
        try:
            refuse(scope["method"], headers)
            if int(headers.get("content-length") or 0) > self._body_bytes:
                raise too_large
            await self._app(scope, counted, watched)
        except _TooLargeError:
            if not started:
                await answer(too_large.status, too_large.cause, accepted)(scope, receive, send)
        except ApiError as refusal:
            await answer(refusal.status, refusal.cause, accepted)(scope, receive, send)


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
