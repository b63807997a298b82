"""How long the pages of `tacit web` and a search over MCP take, in a library of some size.

    .venv/bin/python -m bench.pages                          # 11,493 skills, 2,000 sessions
    .venv/bin/python -m bench.pages --sessions 20000

Each page is asked for three times inside one process; printed is the middle one, beside a bare
start of Python on the same machine.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

from bench.made_sessions import write_sessions
from bench.pool import synthetic_skills

PAGES = (
    "/", "/inbox", "/skills", "/skills?page=100", "/skills?q=deploy", "/skills/{skill}",
    "/sessions", "/sessions?page=10", "/sessions?q=build", "/jobs", "/cost", "/memory",
    "/schedules", "/settings",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.pages")
    parser.add_argument("--skills", type=int, default=11_493)
    parser.add_argument("--sessions", type=int, default=2_000)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"HOME": home, "TACIT_HOME": f"{home}/tacit"}
        os.makedirs(f"{home}/work")
        os.chdir(f"{home}/work")
        name = _furnish(home, chosen.skills, chosen.sessions)
        start = _milliseconds(lambda: subprocess.run([sys.executable, "-c", ""], check=True))
        print(
            f"{chosen.skills:,} skills, {chosen.sessions:,} sessions; a bare start: {start:.0f} ms"
        )
        print("\n| page | ms | bare starts |\n|---|---|---|")
        for path, took in _pages(name):
            print(f"| {path} | {took:.0f} | {took / start:.1f} |")


def _furnish(home: str, skills: int, sessions: int) -> str:
    """Put the skills and the sessions there; the name of one skill."""
    name = ""
    for skill in synthetic_skills(0, skills):
        folder = f"{home}/.agents/skills/{skill.id}"
        os.makedirs(folder)
        with open(f"{folder}/SKILL.md", "w", encoding="utf-8") as file:
            file.write(skill.text)
        name = skill.text.partition("name: ")[2].partition("\n")[0]
    write_sessions(home, sessions)
    from tacit.traces.store import Store
    from tacit.work.intake import sources, take_in

    with Store.open() as store:
        take_in(store, sources("claude-code"), lambda source: None)
    return name


def _pages(skill: str) -> list[tuple[str, float]]:
    from starlette.testclient import TestClient

    from tacit.ui.mcp.client_tools import Desk, Shelf, call_tool
    from tacit.ui.web.page_guard import PageKeys
    from tacit.ui.web.web_server import make_app

    keys = PageKeys()
    client = TestClient(make_app(keys, ("127.0.0.1:1",)), base_url="http://127.0.0.1:1")
    client.get(f"/?token={keys.new_token()}")
    found = [(path, _page(client, path.format(skill=skill))) for path in PAGES]
    shelf = Shelf(os.getcwd())
    desk = Desk(os.getcwd(), shelf=shelf)
    search = {"query": "deploy a service"}
    took = _milliseconds(lambda: call_tool("search_skills", search, desk))
    return [*found, ("MCP search_skills", took)]


def _page(client: object, path: str) -> float:
    def ask() -> None:
        answer = client.get(path)  # type: ignore[attr-defined]
        assert answer.status_code == 200, (path, answer.text)

    return _milliseconds(ask)


def _milliseconds(work: Callable[[], object]) -> float:
    taken = []
    for _ in range(4):
        begin = time.perf_counter()
        work()
        taken.append((time.perf_counter() - begin) * 1000)
    return statistics.median(taken[1:])  # the first loads what the others find


if __name__ == "__main__":
    main()
