"""The pages of a small library, asked as a browser asks."""
# ruff: noqa: E402

import sys
from pathlib import Path
from typing import NamedTuple

import httpx2
import pytest

sys.modules.setdefault("httpx", httpx2)  # the oldest Starlette's test client knows that name alone

from starlette.testclient import TestClient

from tacit.changes.change import Edit, acting_as, make_change
from tacit.changes.gate import Gate
from tacit.changes.place import user_place
from tacit.testing.sample_sessions import made, ran
from tacit.traces.store import Store
from tacit.ui.web.page_guard import PageKeys
from tacit.ui.web.web_server import make_app

HOST = "127.0.0.1:8766"
HOSTILE = "<script>alert(1)</script><img src=https://evil.example/x onerror=alert(2)>"
SKILL = """---
name: ship-it
description: "Ship a release of the shop. {hostile}"
metadata:
  source: auto-skill
---

# Ship it

1. Run `make ship`. {hostile}
2. See [the page](javascript:alert(3)) and ![a picture](https://evil.example/p.png).
"""


class Opened(NamedTuple):
    client: TestClient
    keys: PageKeys

    def post(self, path: str, **form: str) -> str:
        """Send a form of ours; the page that it leads to."""
        answer = self.client.post(path, data={"csrf": self.keys.form, **form})
        assert answer.status_code == 200, answer.text
        return answer.text


def skill_text() -> bytes:
    return SKILL.format(hostile=HOSTILE).encode()


@pytest.fixture
def library(home: Path) -> str:
    """A learned skill, a proposal to edit it and one for a new skill, and a session; an id."""
    place = user_place()
    folder = Path(place.root) / "ship-it"  # as a hand, or a clone, would bring it
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_bytes(skill_text())
    with Store.open() as store:
        store.write(
            made(
                [f"Ship it. {HOSTILE}", ran("make ship", HOSTILE, failed=True), ran("make ship")],
                ["No, always tag first."],
                session="s-0001",
                project=str(home / "work"),
            )
        )
    gate = Gate([place], always_ask=("reviewer",))
    with acting_as("reviewer"):
        edit = Edit("Run `make ship`.", "Run `make ship-all`.")
        why = f"ship alone is gone {HOSTILE}"
        evidence = ("claude-code:s-0001",)
        return gate.propose(
            make_change("ship-it", edit, reason=why, evidence=evidence, root=place.root)
        ).change


@pytest.fixture
def opened(library: str) -> Opened:
    keys = PageKeys()
    client = TestClient(make_app(keys, (HOST,)), base_url=f"http://{HOST}{keys.room}")
    assert client.get(f"/?token={keys.new_token()}").status_code == 200
    return Opened(client, keys)
