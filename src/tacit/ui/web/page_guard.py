"""Who may talk to the pages: this machine's browser that was given the token, and nobody else.

The name in the Host header must be this machine's, so no page of another name reaches us by a
trick with DNS. The token in the address that is opened turns into a cookie that scripts cannot read
and other sites cannot send, and is of no use a second time. A write needs a second token, which
only our own pages hold. No other origin is ever answered.
"""

import hmac
import secrets
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "tacit-session"
CSRF_FIELD = "csrf"
_MOST_BODY = 2_000_000
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src"
        " 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class PageGuard:
    """The middleware around all pages."""

    def __init__(self, app: ASGIApp, hosts: tuple[str, ...], keys: "PageKeys") -> None:
        self._app = app
        self._hosts = hosts
        self._keys = keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # no web sockets are served
            return

        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                known = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(
                        (name.encode(), value.encode())
                        for name, value in _HEADERS.items()
                        if name.encode() not in known
                    ),
                ]
            await send(message)

        refused = self._refused(scope)
        if refused is not None:
            await refused(scope, receive, sealed)
            return
        await self._app(scope, receive, sealed)

    def _refused(self, scope: Scope) -> Response | None:
        """What a request gets instead of a page; None for one that may go on."""
        headers = Headers(scope=scope)
        if headers.get("host", "") not in self._hosts:
            return PlainTextResponse("This address is not served here.", 421)
        origin = headers.get("origin")
        if origin is not None and origin not in {f"http://{host}" for host in self._hosts}:
            return PlainTextResponse("Another site asked for this.", 403)
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return PlainTextResponse("Another site asked for this.", 403)
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if given:
            return self._enter(scope, given)
        cookie = Request(scope).cookies.get(COOKIE, "")
        if not hmac.compare_digest(cookie.encode(), self._keys.cookie.encode()):
            text = "This page is for who started it. Open the address that `tacit web` prints."
            return PlainTextResponse(text, 401)
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return PlainTextResponse("Not served.", 405)
        if int(headers.get("content-length") or 0) > _MOST_BODY:
            return PlainTextResponse("That is too much.", 413)
        return None

    def _enter(self, scope: Scope, token: str) -> Response:
        if not self._keys.use(token):
            return PlainTextResponse("This address was used before. Run: tacit web", 401)
        response = RedirectResponse(scope["path"], 303)
        response.set_cookie(COOKIE, self._keys.cookie, httponly=True, samesite="strict", path="/")
        return response


class PageKeys:
    """The secrets of one server: tokens that open it once, the cookie, and the word of forms."""

    def __init__(self) -> None:
        self.cookie = secrets.token_urlsafe(32)
        self.form = secrets.token_urlsafe(32)
        self._tokens: set[str] = set()

    def new_token(self) -> str:
        """A token that opens the pages, once."""
        token = secrets.token_urlsafe(24)
        self._tokens.add(token)
        return token

    def use(self, token: str) -> bool:
        """Whether `token` opens the pages; it does not a second time."""
        found = next((t for t in self._tokens if hmac.compare_digest(t, token)), None)
        self._tokens.discard(found or "")
        return found is not None

    def is_form(self, word: Any) -> bool:
        """Whether a form is one of ours."""
        return isinstance(word, str) and hmac.compare_digest(word.encode(), self.form.encode())
