"""Plain HTTP for the tests of the server, with no client library in between."""

import http.client
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

sys.path.insert(0, str(Path(__file__).parent))

Post = Callable[..., "Plain"]
# What the providers want of every caller.
_CALLER = {"x-api-key": "any", "anthropic-version": "2023-06-01"}


class Plain:
    """One HTTP answer, read to its end."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[tuple[str, Any]]:
        """Server-sent events: the name, and the data decoded, or as text where it is not JSON."""
        found = []
        for block in self.body.decode().split("\n\n"):
            lines = dict(line.split(": ", 1) for line in block.splitlines())
            if "data" in lines:
                data = lines["data"]
                value = json.loads(data) if data.startswith("{") else data
                found.append((lines.get("event", ""), value))
        return found


@pytest.fixture
def call() -> Post:
    """Send one request: `call(url, path, body=None, method="POST", headers=None)`."""

    def send(
        url: str,
        path: str,
        body: Any = None,
        *,
        method: str = "POST",
        headers: dict[str, str | None] | None = None,
        timeout: float = 10,
    ) -> Plain:
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=timeout)
        try:
            data = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
            own = _CALLER if method == "POST" else {}
            sent = {n: v for n, v in (own | (headers or {})).items() if v is not None}
            connection.request(method, path, data, sent)
            return Plain(connection.getresponse())
        finally:
            connection.close()

    return send
