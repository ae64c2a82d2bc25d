"""Who may ask, where a token is required: programs by `Authorization: Bearer`, browsers by `?token=`, then by a cookie."""

from __future__ import annotations

import hashlib
import hmac
import math
import threading
import time
from urllib.parse import parse_qsl, urlencode

from fastapi.responses import HTMLResponse
from starlette.datastructures import Headers
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from compiler.text import message
from server.errors import answer, language
from server.pages import token_page

# Read by whoever starts the server, before a token is known.
_OPEN = ("/api/v1/health",)
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
_MOST_CLIENTS = 10_000


class Access:
    """ASGI middleware: without the token, nothing but the health."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token.encode()
        # Cookies are sent to every port of a host: what another port's server may see is not the token itself.
        self._session = hmac.new(self._token, b"aotscope cookie", hashlib.sha256).hexdigest().encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in _OPEN:
            headers = Headers(scope=scope)
            query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
            given = next((value for name, value in query if name == "token"), None)
            if given is not None and scope["method"] in ("GET", "HEAD") and self._is(given, self._token):
                await self._enter(scope, headers, query)(scope, receive, send)
                return
            if not self._knows(headers):
                await _refuse(scope, headers, wrong=given is not None or "authorization" in headers)(
                    scope, receive, send
                )
                return
        await self._app(scope, receive, send)

    def _knows(self, headers: Headers) -> bool:
        scheme, _, said = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._is(said.strip(), self._token):
            return True
        name = _cookie_name(headers)
        pairs = (part.strip().partition("=") for part in headers.get("cookie", "").split(";"))
        return any(key == name and self._is(value, self._session) for key, _, value in pairs)

    @staticmethod
    def _is(given: str, wanted: bytes) -> bool:
        return hmac.compare_digest(given.encode(errors="replace"), wanted)

    def _enter(self, scope: Scope, headers: Headers, query: list[tuple[str, str]]) -> RedirectResponse:
        """To the same address without the token, which a history or a copied address must not keep."""
        rest = urlencode([(name, value) for name, value in query if name != "token"])
        # Every path of ours has one slash in front: with two, a browser would take what follows for a host.
        path = "/" + scope["raw_path"].decode("latin-1").lstrip("/\\")
        to = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
        to.set_cookie(
            _cookie_name(headers),
            self._session.decode(),
            path="/",
            httponly=True,
            samesite="strict",
            secure=scope["scheme"] == "https",
        )
        return to


def _cookie_name(headers: Headers) -> str:
    """One for each port: cookies of a host are shared by its ports."""
    return f"aotscope-{headers.get('host', '').rpartition(':')[2]}" if ":" in headers.get("host", "") else "aotscope"


def _refuse(scope: Scope, headers: Headers, wrong: bool) -> ASGIApp:
    cause = message("server.token_wrong") if wrong else message("server.token_required")
    if scope["path"].startswith("/api/") or "text/html" not in headers.get("accept", ""):
        return answer(401, cause, headers.get("accept-language"), {"www-authenticate": "Bearer"})
    text = token_page(cause, language(headers.get("accept-language")))
    return HTMLResponse(text, 401, {"www-authenticate": "Bearer", "content-security-policy": _POLICY})


class Pace:
    """How many runs a client may still ask for: a bucket for each, filled evenly. Safe for several threads."""

    def __init__(self, per_minute: int) -> None:
        """`per_minute` at once, and as many in a minute; 0: no limit."""
        self._per_minute = per_minute
        self._lock = threading.Lock()
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, client: str) -> int | None:
        """Take one; else the seconds after which to ask again."""
        if not self._per_minute:
            return None
        now = time.monotonic()
        with self._lock:
            left, at = self._left.pop(client, (float(self._per_minute), now))
            left = min(float(self._per_minute), left + (now - at) * self._per_minute / 60)
            # The longest silent are in front, and forgotten first.
            while len(self._left) >= _MOST_CLIENTS:
                del self._left[next(iter(self._left))]
            self._left[client] = (left - 1 if left >= 1 else left, now)
        return None if left >= 1 else math.ceil((1 - left) * 60 / self._per_minute)


def client_of(scope: Scope, headers: Headers, proxies: int) -> str:
    """Who asks: the address of the connection; behind `proxies` reverse proxies, the one that the outermost of them has seen.
    An IPv6 client is its network of 64 bits."""
    peer = scope["client"][0] if scope.get("client") else ""
    said = [part.strip() for line in headers.getlist("x-forwarded-for") for part in line.split(",")]
    # Only what our own proxies added is true: the last ones.
    client = said[-proxies] if proxies and len(said) >= proxies else peer
    if client.count(":") > 1:
        return ":".join(client.strip("[]").split("%")[0].split(":")[:4])
    return client[:64]
