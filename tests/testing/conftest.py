"""Plain HTTP for the tests of the server, with no client library in between."""

import http.client
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

Post = Callable[..., "Plain"]


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
        headers: dict[str, str] | None = None,
        timeout: float = 10,
    ) -> Plain:
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=timeout)
        try:
            data = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
            connection.request(method, path, data, headers or {})
            return Plain(connection.getresponse())
        finally:
            connection.close()

    return send
