"""Who may talk to the pages: this machine's browser that was given the token, and nobody else.

The name in the Host header must be this machine's, so no page of another name reaches us by a
trick with DNS. The token in the address that is opened turns into a cookie that scripts cannot read
and other sites cannot send, and is of no use a second time. Browsers send a cookie to every port of
a host, so the pages lie in a folder whose name nobody can guess, and the cookie is for that folder:
another server of this machine never sees it. A write needs a second token, which only our own pages
hold. No other origin is ever answered, and no other user of this machine, whatever they know.
"""

import hmac
import secrets
import socket
from ipaddress import ip_address
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tacit.ui.cli.servers import is_of_another

CSRF_FIELD = "csrf"
BY_NUMBER = "*"
"""Among the hosts of a guard: also any address in numbers, this machine's name, and localhost."""
COOKIE = "tacit"
ANOTHER_START = "/another-start"
WORD_HEADER = "x-tacit-word"
_HEADERS = {
    b"content-security-policy": (
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src"
        b" 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-store",
}


class PageGuard:
    """What stands around all pages, also around those that say what went wrong."""

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
                more = [header for header in _HEADERS.items() if header[0] not in known]
                message["headers"] = [*message["headers"], *more]
            await send(message)

        room, path = self._keys.room, scope["path"]
        if inside := path == room or path.startswith(f"{room}/"):
            scope = {**scope, "path": path.removeprefix(room) or "/"}
        await (self._refused(scope, inside=inside) or self._app)(scope, receive, sealed)

    def _refused(self, scope: Scope, *, inside: bool) -> Response | None:
        """What a request gets instead of a page; None for one that may go on."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if is_of_another(scope.get("client"), scope.get("server")):
            return PlainTextResponse("This page is another user's.", 403)
        if host not in self._hosts and not (BY_NUMBER in self._hosts and _is_direct(host)):
            return PlainTextResponse("This address is not served here.", 421)
        if headers.get("origin", f"http://{host}") != f"http://{host}":
            return PlainTextResponse("Another site asked for this.", 403)
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return PlainTextResponse("Another site asked for this.", 403)
        if not inside:
            return _not_yours()
        if scope["path"] == ANOTHER_START:
            return self._another_start(headers.get(WORD_HEADER, ""))
        if given := parse_qs(scope["query_string"].decode("latin-1")).get("token"):
            return self._enter(scope["path"], given[0])
        if not _same(Request(scope).cookies.get(COOKIE, ""), self._keys.cookie):
            return _not_yours()
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return PlainTextResponse("Not served.", 405)
        if "\0" in scope["path"] or b"%00" in scope["query_string"]:
            return PlainTextResponse("No name holds such a sign.", 400)
        return None

    def _another_start(self, word: str) -> Response:
        """A token for a second start, which knows the word from the note of the first."""
        if not _same(word, self._keys.word):
            return PlainTextResponse("no", 401)
        return PlainTextResponse(self._keys.new_token())

    def _enter(self, path: str, token: str) -> Response:
        if not self._keys.use(token):
            return PlainTextResponse("This address was used before. Run: tacit web", 401)
        keys = self._keys
        response = RedirectResponse(f"{keys.room}{path}", 303)
        response.set_cookie(
            COOKIE, keys.cookie, httponly=True, samesite="strict", path=f"{keys.room}/"
        )
        return response


class PageKeys:
    """The secrets of a server: tokens that open it once, the folder of its pages, the cookie, and
    the words of forms and of a second start.

    Folder, cookie and forms follow from `secret`, so that pages that are open outlive a restart
    with the same one; without one they end with the server.
    """

    def __init__(self, secret: str = "") -> None:
        known = (secret or secrets.token_urlsafe(32)).encode()
        room, self.cookie, self.form = (
            hmac.new(known, part, "sha256").hexdigest() for part in (b"room", b"cookie", b"form")
        )
        self.room = f"/{room[:32]}"
        self.word = secrets.token_urlsafe(24)
        self._tokens: set[str] = set()

    def new_token(self) -> str:
        """A token that opens the pages, once."""
        token = secrets.token_urlsafe(24)
        self._tokens.add(token)
        return token

    def use(self, token: str) -> bool:
        """Whether `token` opens the pages; it does not a second time."""
        found = next((known for known in self._tokens if _same(known, token)), "")
        self._tokens.discard(found)
        return bool(found)

    def is_form(self, word: str) -> bool:
        """Whether a form is one of ours."""
        return _same(word, self.form)


def _not_yours() -> Response:
    text = "This page is for who started it. Open the address that `tacit web` prints."
    return PlainTextResponse(text, 401)


def _same(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), secret.encode())


def _is_direct(host: str) -> bool:
    """Whether no foreign name server had a say in where `host` leads."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        if name and name in ("localhost", socket.gethostname().lower()):
            return True
        return bool(ip_address(name))
    except ValueError:
        return False
