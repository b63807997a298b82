"""How long the pages of `tacit web` and a search over MCP take, in a library of some size.

    .venv/bin/python -m bench.pages                        # 11,493 skills, 20,000 sessions, …
    .venv/bin/python -m bench.pages --pool skills.jsonl.gz # real skills instead of made-up ones
    .venv/bin/python -m bench.pages --home DIR             # made there once, and kept

Each page is asked for inside one process as a browser does, five times after a first. Printed are
the middle ones: what the processor was busy, and what passed on the clock. A page about one skill,
or about none, looks at all others every ten seconds; what it takes then is printed as "at worst".
Of the changes one in twenty waits in the inbox.
"""

import argparse
import itertools
import json
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from bench import pool
from bench.made_sessions import write_sessions

LIMIT = 100
PAGES = (
    "/", "/inbox", "/inbox?page=3", "/inbox?all=1", "/inbox/{proposal}", "/skills",
    "/skills?page=100", "/skills?q=deploy+a+service", "/skills/{skill}",
    "/skills/{skill}/diff?old={version}", "/sessions", "/sessions?page=200",
    "/sessions?q={word}", "/sessions/{session}", "/jobs", "/cost", "/memory", "/schedules",
    "/settings", "/doctor",
)  # fmt: skip
AT_WORST = ("/", "/inbox/{proposal}", "/skills/{skill}")
_LEARNED = 500
_SINCE = datetime(2026, 1, 1, tzinfo=UTC)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.pages")
    parser.add_argument("--skills", type=int, default=11_493)
    parser.add_argument("--sessions", type=int, default=20_000)
    parser.add_argument("--changes", type=int, default=10_000)
    parser.add_argument("--pool", help="A file of skills, as scripts/bench takes it.")
    parser.add_argument("--home", help="Where what is measured is made, or was, to be kept.")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as other:
        home = os.path.abspath(chosen.home or other)
        os.environ |= {"HOME": home, "TACIT_HOME": f"{home}/tacit"}
        os.makedirs(f"{home}/work", exist_ok=True)
        os.chdir(f"{home}/work")
        names = _furnished(home, chosen)
        print(
            f"{chosen.skills:,} skills, {chosen.sessions:,} sessions, {chosen.changes:,} changes\n"
        )
        print("| page | processor, ms | clock, ms |\n|---|---|---|")
        slow = []
        for path, busy, passed in _pages(names):
            print(f"| {path} | {busy:.0f} | {passed:.0f} |", flush=True)
            slow += [path] if passed > LIMIT else []
        sys.exit(f"\nover {LIMIT} ms: {', '.join(slow)}" if slow else 0)


def _furnished(home: str, chosen: argparse.Namespace) -> dict[str, str]:
    """Put everything there, unless it is; the names for the addresses of pages."""
    note = f"{home}/names.json"
    if not os.path.exists(note):
        os.fsync = lambda fd: None  # what is made here need not survive the machine
        learned = _put_skills(home, chosen.skills, chosen.pool)
        session, word = _put_sessions(home, chosen.sessions)
        found = {"skill": min(learned), "session": session, "word": word}
        found |= _put_changes(learned, chosen.changes)
        _put_uses(list(learned), chosen.sessions)
        with open(note, "w", encoding="utf-8") as file:
            json.dump(found, file)
    with open(note, encoding="utf-8") as file:
        return dict(json.load(file))


def _put_skills(home: str, count: int, path: str | None) -> dict[str, str]:
    """Write the skills; the texts of those that are marked as learned, by name and folder."""
    known = pool.read(path, None).skills[:count] if path else []
    learned: dict[str, str] = {}
    for number, skill in enumerate([*known, *pool.synthetic_skills(len(known), count)]):
        folder, text = f"s{number}", skill.text
        name = re.match(r"---\nname: ([a-z0-9-]+)\n", text)
        if name and name[1] not in learned and len(learned) < _LEARNED:
            folder, text = name[1], text.replace("---\n", "---\nsource: auto-skill\n", 1)
            learned[folder] = text
        os.makedirs(f"{home}/.agents/skills/{folder}")
        with open(f"{home}/.agents/skills/{folder}/SKILL.md", "wb") as file:
            file.write(text.encode("utf-8", "surrogatepass"))
    return learned


def _put_sessions(home: str, count: int) -> tuple[str, str]:
    """Take sessions in; the id of one, and a word of it."""
    from tacit.learn.use_records import catch_up
    from tacit.traces.store import Store
    from tacit.work.intake import sources, take_in

    write_sessions(home, count, turns=2)
    with Store.open() as store:
        take_in(store, sources("claude-code"))
        catch_up(store)
        (latest,) = store.sessions(limit=1)
        return latest.id, store.trace(latest.id).turns[0].prompt.split()[0].strip(".,")


def _put_changes(learned: dict[str, str], count: int) -> dict[str, str]:
    """Give the skills a past of `count` changes, and let one in twenty more wait."""
    from tacit.changes.change import File, new_change_id
    from tacit.changes.gate import Gate
    from tacit.changes.history import Record, Version, ref_updates
    from tacit.changes.place import user_place

    gate = Gate([user_place()])
    history = gate.open_place().history
    heads: dict[str, Version] = {}
    for number, name in zip(range(count), itertools.cycle(learned), strict=False):
        at = _SINCE + timedelta(minutes=30 * number)
        last = number + len(learned) >= count
        text = learned[name] if last else f"{learned[name]}\nNot the last: {number}\n"
        head = heads.get(name)
        record = Record(
            skill=name, kind="edit" if head else "create", actor="reviewer",
            change=new_change_id(at), state="live", was="live" if head else "none",
            reason=f"it failed {number % 7 + 1} times",
        )  # fmt: skip
        files = {"SKILL.md": File(text.encode("utf-8", "surrogatepass"))}
        heads[name] = history.commit(record, files, (head.id,) if head else (), at)
        history.refs.move(ref_updates([heads[name]], head.id if head else ""))
    history.pack()
    waiting = [
        _put_proposal(gate, name, number)
        for number, name in zip(range(count // 20), itertools.cycle(learned), strict=False)
    ]
    return {"version": heads[min(learned)].parent, "proposal": waiting[0]}


def _put_proposal(gate: Any, skill: str, number: int) -> str:
    """Let an edit wait; its id."""
    from tacit.changes.change import Edit, Refusal, make_change

    line = f"name: {skill}"
    change = make_change(
        skill, Edit(line, f"{line}\nlicense: MIT-{number}"), actor="reviewer",
        reason=f"seen in {number} sessions", root=gate.open_place().place.root,
    )  # fmt: skip
    return str(gate.inbox.add(change, Refusal("approval", "asks", "new skills wait")).id)


def _put_uses(skills: list[str], count: int) -> None:
    """A use a session, of the learned skills in turn."""
    from tacit.traces.skill_uses import open_use_tables

    rows = [
        (
            f"claude-code:made-{number}", 0, skills[number % len(skills)], "", "model",
            (_SINCE + timedelta(minutes=number)).isoformat(), "/home/me/work", 9, number % 3 // 2,
        )
        for number in range(count)
    ]  # fmt: skip
    with open_use_tables() as connection:
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO uses VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        connection.execute("COMMIT")


def _pages(names: dict[str, str]) -> Iterator[tuple[str, float, float]]:
    from starlette.testclient import TestClient

    from tacit.skills import library
    from tacit.skills.skill_search import finish_index
    from tacit.ui.mcp.client_tools import Desk, call_tool
    from tacit.ui.web.page_guard import PageKeys
    from tacit.ui.web.web_server import make_app

    finish_index(os.getcwd())
    keys = PageKeys()
    with TestClient(
        make_app(keys, ("127.0.0.1:1",)), base_url=f"http://127.0.0.1:1{keys.room}"
    ) as client:
        client.get(f"/?token={keys.new_token()}")
        for number, path in enumerate((*PAGES, *AT_WORST)):
            worst = number >= len(PAGES)
            library._OTHERS_FRESH = 0.0 if worst else library._OTHERS_FRESH

            def ask(at: str = path.format(**names)) -> None:
                answer = client.get(at)
                assert answer.status_code == 200, (at, answer.text)

            yield f"{path}, at worst" if worst else path, *_milliseconds(ask)
    desk = Desk(os.getcwd())

    def search() -> None:
        desk.put_back()
        call_tool("search_skills", {"query": "deploy a service"}, desk)

    yield "MCP search_skills", *_milliseconds(search)


def _milliseconds(work: Callable[[], object]) -> tuple[float, float]:
    """What it takes on the processor and on the clock, by the middle of five."""
    busy, passed = [], []
    for _ in range(6):
        begin, on_clock = time.process_time(), time.perf_counter()
        work()
        busy.append((time.process_time() - begin) * 1000)
        passed.append((time.perf_counter() - on_clock) * 1000)
    # The first loads what the others find.
    return statistics.median(busy[1:]), statistics.median(passed[1:])


if __name__ == "__main__":
    main()
