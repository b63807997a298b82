"""The pages say what the command line says, do what it does, and take nothing for HTML."""

import html
import json
import os
import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from inside import answer, tacit

from tacit.agent.agent_events import Usage
from tacit.agent.budget import record_spending
from tacit.base import trust
from tacit.base.display import unified_diff
from tacit.base.settings import load_settings
from tacit.changes.change import Edit, acting_as, make_change
from tacit.changes.gate import Gate
from tacit.learn.ledger import DecidedJob, open_ledger
from tacit.testing.sample_sessions import made, ran
from tacit.traces.skill_uses import open_use_tables
from tacit.traces.store import Store
from tacit.ui.web import answers, pages
from tacit.ui.web.page_parts import diff_rows, markdown_html

PATHS = (
    "/", "/inbox", "/inbox?all=1", "/skills", "/skills?q=ship", "/skills/ship-it", "/sessions",
    "/sessions?q=ship", "/sessions/claude-code:s-0001", "/sessions/claude-code:s-0001/digest",
    "/jobs", "/cost", "/cost?days=7", "/memory", "/schedules", "/settings", "/doctor",
)  # fmt: skip


class Seen(HTMLParser):
    """The tags and attributes that a browser would see."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_nothing_hostile_is_ever_html(opened: Any, library: str) -> None:
    """No script, no picture, no handler and no address outside of ours, on any page."""
    found, ours = [], f"{opened.keys.room}/"
    for path in (*PATHS, f"/inbox/{library}", "/skills/ship-it/lines", "/doctor?now=1"):
        answer = opened.client.get(path)
        assert answer.status_code == 200, answer.text
        found += Seen(answer.text).found
    for tag, attributes in found:
        assert tag not in ("img", "iframe", "object", "embed", "base")
        assert tag != "script" or (attributes["src"] or "").startswith(f"{ours}static/")
        assert not any(name.startswith("on") or name == "style" for name in attributes)
        if tag == "a" and attributes.get("rel") == "noreferrer noopener nofollow":
            continue  # followed only by who clicks it, and not told where from
        for name in ("href", "src", "action", "hx-get"):
            assert (attributes.get(name) or ours).startswith((ours, "#", "?"))


def test_a_proposal_shows_all_that_one_has_to_know(opened: Any, library: str) -> None:
    page = opened.client.get(f"/inbox/{library}").text
    text = html.unescape(re.sub(r"<[^>]+>", "", page))
    for words in ("reviewer", "ship alone is gone", "make ship-all", "waits", "claude-code:s-0001"):
        assert words in text
    assert "<script>alert" not in page
    assert "&lt;img src=https://evil.example" in page


@pytest.fixture
def schedule(opened: Any) -> str:
    """A schedule, whose name it is, a fact, a job, a cost and a use."""
    answers.ask("memory add --user", "package-manager", "The shop uses pnpm.")
    with open_ledger() as ledger:
        ledger.add_jobs([DecidedJob("review", "claude-code:s-0001", {})])
    usage = Usage(input_tokens=1, output_tokens=2, cost=0.25, model="a-model")
    record_spending("review", "claude-code:s-0001", usage)
    with open_use_tables() as tables:
        row = ("codex:c-1", 0, "ship-it", "", "user", "2026-11-01T00:00:00Z", "", 3, 1)
        tables.execute("INSERT INTO uses VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    made = answers.ask("schedule add", "every weekday 9:00", "Say what is new.")
    return str(made["schedule"]["name"])


def test_the_pages_and_the_command_line_say_the_same(
    opened: Any, library: str, schedule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each page is made of the very values that commands print with --json."""
    asked: list[tuple[list[str], Any]] = []

    def noted(command: str | list[str], *arguments: str) -> Any:
        words = command.split(" ") if isinstance(command, str) else command
        value = answers.ask(command, *arguments)
        asked.append(([*words, "--json", *(("--", *arguments) if arguments else ())], value))
        return value

    monkeypatch.setattr(pages, "ask", noted)
    job = answers.ask("jobs")["jobs"][0]["id"]
    more = (f"/inbox/{library}", f"/jobs/{job}", "/skills/ship-it/lines", "/doctor?now=1")
    for path in (*PATHS, *more):
        assert opened.client.get(path).status_code == 200
        assert asked or path == "/doctor"
        for words, value in asked:
            printed = tacit(*words).stdout
            assert json.loads(printed) == value if printed else not value, (path, words)
        asked.clear()


def test_every_list_shows_its_rows(opened: Any, schedule: str) -> None:
    """What stands in each is shown, and nothing that a template asks for is missing."""
    shown = {
        "/": ("1 skill", "1 use", "33 % of the calls", "1 of 3", "$0.25"),
        "/skills": ("1 failed",),
        "/skills/ship-it": ("1 of 3 calls failed",),
        "/schedules": (schedule, "every weekday 9:00", "Pause"),
        "/memory": ("The shop uses pnpm.",),
        "/jobs": ("no worker has taken it up yet", "Cancel"),
        "/cost": ("$0.25", "a-model"),
    }
    for path, texts in shown.items():
        page = opened.client.get(path).text
        assert [text for text in texts if text not in page] == [], path
    assert "Forgotten" in opened.post("/memory/forget", name="package-manager", scope="user")
    assert "paused" in opened.post("/schedules/do", name=schedule, act="pause", back="/schedules")
    assert "Resume" in opened.client.get("/schedules").text


def test_names_and_signs_that_mislead_are_shown_for_what_they_are(
    opened: Any, library: str, home: Path
) -> None:
    """A file whose name is no text, or HTML; letters that turn the line round, in every place."""
    folder = home / ".agents/skills/ship-it"
    (folder / "<img src=x onerror=alert(1)>.md").write_text("x")
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff\xfe.md")).write_text("x")
    text = (folder / "SKILL.md").read_text()
    (folder / "SKILL.md").write_text(text.replace("# Ship it", "# Ship \u202eti\u2066"))
    page = opened.client.get("/skills/ship-it")
    assert page.status_code == 200
    assert "<img" not in page.text
    assert "\\udcff" in page.text
    assert "Ship \ufffdti" in page.text
    edited = opened.client.get(f"/inbox/{library}").text
    assert "\u202e" not in edited.replace("# Ship \u202eti\u2066", "", 1)  # the text to be edited


def test_no_address_is_a_fault(opened: Any, library: str, home: Path) -> None:
    """Whatever somebody types, it is shown, is not there, or is not understood."""
    (home / "secret").write_text("the secret")
    hostile = ("..%2f..%2fetc%2fpasswd", "%00", "%ff", "~", "-", "x" * 3000, "%2e%2e", "a%0ab")
    paths = [
        f"/{kind}/{one}" for kind in ("skills", "inbox", "sessions", "jobs") for one in hostile
    ]
    paths += [f"/skills/ship-it?at={home}/{one}" for one in ("secret", ".agents", "%00")]
    paths += [f"/skills/ship-it/diff?old={one}&new={one}" for one in hostile]
    paths += [f"/cost?days={one}" for one in ("9" * 5000, "-1", "٣", "x")]
    paths += ["/skills?page=" + "9" * 5000, "/sessions?q=%00", '/sessions?q="', "/skills?q=%00"]
    paths += ["/sessions/claude-code:s-0001?turn=x", "/static/..%2fpages.py", "/static/%00"]
    for path in paths:
        answer = opened.client.get(path)
        assert answer.status_code < 500, path
        assert "the secret" not in answer.text
    for act in ("/skills/do", "/jobs/do", "/schedules/do", "/memory/forget", "/settings/do"):
        form = {"csrf": opened.keys.form, "name": "\0", "id": "\0", "key": "\0", "act": "pin"}
        assert opened.client.post(act, data=form).status_code < 500, act


def test_a_long_session_comes_in_pages(opened: Any) -> None:
    """A place that a search found is on the page that its address leads to."""
    with Store.open() as store:
        turns = [[f"Do number {n}.", *[ran("true")] * (400 if n == 110 else 1)] for n in range(120)]
        store.write(made(*turns, session="s-0002", project="/work"))
    first, third = (
        opened.client.get(f"/sessions/claude-code:s-0002{more}").text for more in ("", "?turn=111")
    )
    assert "Do number 0." in first
    assert "Do number 110." not in first
    assert 'id="turn-111"' in third
    assert "3 of 3" in third
    assert "and 100 more" in third


def test_days_without_cost_have_a_place_in_the_chart(opened: Any) -> None:
    now = datetime.now(UTC)
    for ago in (0, 9):
        usage = Usage(input_tokens=1, output_tokens=2, cost=0.25, model="a-model")
        record_spending("review", "x", usage, now=now - timedelta(days=ago))
    assert opened.client.get("/cost").text.count("<rect") == 10


def test_a_shadowed_skill_has_a_page_of_its_own(opened: Any, home: Path, put: Any) -> None:
    put(home / ".claude" / "skills" / "ship-it", description="Another one.")
    link = re.search(r'href="[^"]+(/skills/ship-it\?at=[^"]+)"', opened.client.get("/skills").text)
    assert link is not None
    assert "shadowed by" in opened.client.get(html.unescape(link[1])).text
    assert "shadows" in opened.client.get("/skills/ship-it").text


def test_accept_then_undo(opened: Any, library: str, home: Path) -> None:
    file = home / ".agents/skills/ship-it/SKILL.md"
    page = opened.post("/inbox/accept", id=library, back="/inbox")
    assert "Accepted: ship-it" in page
    assert "make ship-all" in file.read_text()
    change = re.search(r'name="change" value="([^"]+)"', page)
    assert change is not None
    assert "Undone" in opened.post("/undo", change=change[1], back="/")
    assert "make ship-all" not in file.read_text()


def test_reject_with_a_reason(opened: Any, library: str) -> None:
    opened.post("/inbox/reject", id=library, reason="--forget", back="/inbox")
    found = Gate().inbox.get(library)
    assert (found.state, found.answer) == ("rejected", "--forget")
    opened.post("/inbox/reject", id=library, undo="1", back="/inbox")
    found = Gate().inbox.get(library)
    assert (found.state, found.answer) == ("waiting", "")


def test_all_of_one_kind_and_all_back(opened: Any, library: str, home: Path) -> None:
    """The notice takes back everything that the button did."""
    gate = Gate(always_ask=("reviewer",))
    with acting_as("reviewer"):
        gate.propose(make_change("ship-it", Edit("# Ship it", "# Ship it well")))
    ids = re.search(r'name="id" value="([^"]+ [^"]+)"', opened.client.get("/inbox").text)
    assert ids is not None
    file = home / ".agents/skills/ship-it/SKILL.md"
    before = file.read_text()
    page = opened.post("/inbox/accept", id=ids[1], back="/inbox")
    assert "# Ship it well" in file.read_text()
    change = re.search(r'name="change" value="([^"]+)"', page)
    assert change is not None
    opened.post("/undo", change=change[1], back="/")
    assert file.read_text() == before


def test_settings_are_set_refused_and_taken_back(opened: Any) -> None:
    """As `tacit config` does it, in the user's file."""

    def limit() -> Any:
        found = answer("config", "search.limit")
        return found["value"], found["source"]

    page = opened.post("/settings/do", key="search.limit", value="7", back="/settings")
    assert "search.limit is 7" in page
    assert 'name="act" value="unset"' in page  # how the notice takes it back
    assert limit() == (7, answer("config", "--path")["path"])
    page = opened.post("/settings/do", key="search.limit", value="8", back="/settings")
    assert 'name="value" value="7"' in page
    assert "notice bad" in opened.post("/settings/do", key="search.limit", value="many")
    assert limit()[0] == 8
    opened.post("/settings/do", key="search.limit", act="unset")
    assert limit() == (10, "default")
    opened.post("/settings/do", key="agent.allow", value="run_command:git *\nrun_command:make *")
    assert answer("config", "agent.allow")["value"] == ["run_command:git *", "run_command:make *"]


def test_secrets_are_not_shown_and_not_lost(opened: Any) -> None:
    """What stands for one in a form is never written in its place."""
    whole = "https://me:very-secret@models.example/v1?key=very-secret"
    answers.ask("config", "set", "agent.base_url", whole)
    page = opened.client.get("/settings").text
    assert "models.example" in page
    assert "very-secret" not in page
    shown = answer("config", "agent.base_url")["value"]
    page = opened.post("/settings/do", key="agent.base_url", value=shown, back="/settings")
    assert "that would be lost" in html.unescape(page)
    assert load_settings().settings.agent.base_url == whole
    page = opened.post("/settings/do", key="agent.base_url", value=shown, act="unset")
    assert "very-secret" not in page
    assert load_settings().settings.agent.base_url == ""


def test_nobody_makes_up_a_notice(opened: Any) -> None:
    """An address brings no words and no button: a link in a skill could hold it."""
    made_up = "path=/settings/do&key=agent.allow&value=*"
    page = opened.client.get("/", params={"said": "Hello", "undo": made_up, "notice": "x"}).text
    assert "Hello" not in page
    assert "agent.allow" not in page


def test_edit_and_accept(opened: Any, library: str, home: Path) -> None:
    file = home / ".agents/skills/ship-it/SKILL.md"
    text = file.read_text().replace("make ship", "make ship-mine")
    opened.post("/inbox/edit", id=library, text=text, back="/inbox")
    assert file.read_text() == text
    assert Gate().inbox.get(library).state == "accepted"
    life = answer("history", "ship-it")
    changes = [one["change"] for one in reversed(life["versions"])]
    assert [one["change"] for one in life["events"] if one["change"]] == changes  # in one second


def test_what_is_edited_is_what_was_proposed(
    library: str, home: Path, put: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not a skill of the same name that wins here."""
    project = home / "shop"
    (project / ".git").mkdir(parents=True)
    trust.add(str(project))
    theirs = put(project / ".agents" / "skills" / "ship-it") / "SKILL.md"
    before = theirs.read_text()
    monkeypatch.chdir(project)
    file = home / ".agents/skills/ship-it/SKILL.md"
    text = file.read_text().replace("make ship", "make ship-mine")
    answers.accept_edited(library, text)
    assert (file.read_text(), theirs.read_text()) == (text, before)


def test_a_skill_is_pinned_rolled_back_and_archived(opened: Any, library: str, home: Path) -> None:
    opened.post("/inbox/accept", id=library, back="/inbox")
    assert "Pin" in opened.post("/skills/do", name="ship-it", act="pin", back="/skills/ship-it")
    page = opened.client.get("/skills/ship-it").text
    assert "<td>pin</td>" not in page  # which changed nothing of its text
    versions = re.findall(r'name="old" value="([^"]+)"', page)
    shown = opened.client.get(f"/skills/ship-it/diff?old={versions[-1]}&new={versions[0]}").text
    assert "make ship-all" in shown
    until_now = opened.client.get(f"/skills/ship-it/diff?old={versions[0]}").text
    assert "No difference." in until_now
    opened.post("/skills/do", name="ship-it", act="rollback", version=versions[-1], back="/")
    assert "make ship-all" not in (home / ".agents/skills/ship-it/SKILL.md").read_text()
    opened.post("/skills/do", name="ship-it", act="archive", back="/skills")
    assert not (home / ".agents/skills/ship-it").exists()


def test_what_is_not_there_is_said(opened: Any) -> None:
    for path in (
        "/skills/nothing",
        "/sessions/nothing",
        "/inbox/0000",
        "/jobs/no",
        "/x",
        "/skills/-",
    ):
        answer = opened.client.get(path)
        assert answer.status_code in (400, 404), path
        assert "That did not work" in answer.text


def test_words_of_a_page_are_never_options(opened: Any) -> None:
    """A name that looks like an option names nothing."""
    assert "That did not work" in opened.client.get("/skills/--help").text
    opened.post("/inbox/accept", id="--all", back="/inbox")
    assert len(Gate().inbox.waiting()) == 1


def test_many_rows_come_in_pages(opened: Any, home: Path) -> None:
    for number in range(120):
        folder = home / ".agents" / "skills" / f"made-{number:03}"
        folder.mkdir()
        (folder / "SKILL.md").write_text(f"---\nname: {folder.name}\ndescription: x.\n---\n\nx\n")
    first, third = (opened.client.get(f"/skills?page={n}").text for n in (1, 3))
    assert "1 of 3" in first
    assert 'rel="next"' in first
    assert "3 of 3" in third
    assert opened.client.get("/skills?page=99999999999").status_code == 200


def test_no_line_of_a_text_is_taken_for_a_part_of_the_diff() -> None:
    """What was added looks like it, also where it reads as a head or holds other ends of lines."""
    added = ["++ one", "@@ two", "-- three\u2028four\x0cfive"]
    rows = diff_rows(unified_diff("x\n-- y\n", "\n".join(["x", *added, ""]), "a", "b"))
    assert [row.kind for row in rows] == [*["head"] * 3, "same", "changed", "added", "added"]
    assert [row.new for row in rows[4:]] == added
    assert rows[4].old == "-- y"


def test_a_diff_stands_side_by_side() -> None:
    rows = diff_rows("--- a\n+++ b\n@@ -1,3 +1,4 @@\n one\n-two\n+2\n+3\n four\n")
    assert [(r.kind, r.old, r.new) for r in rows[3:]] == [
        ("same", "one", "one"),
        ("changed", "two", "2"),
        ("added", "", "3"),
        ("same", "four", "four"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "<script>x</script>", "[a](javascript:x)", "[a](data:text/html,x)", "![a](https://x/y.png)",
        "<javascript:x>", "[a](&#106;avascript:x)", "[a](java\nscript:x)", "<svg onload=x>",
        "[a](vbscript:x)", "![a](data:image/svg+xml,x)", "[a](//evil.example)", "[a](/undo)",
        "<a href=x onclick=y>", "[a]: javascript:x\n\n[a]", "[a](file:///etc/passwd)", "<!-- x -->",
    ],
)  # fmt: skip
def test_markdown_stays_text(text: str) -> None:
    for tag, attributes in Seen(str(markdown_html(text))).found:
        assert tag in ("p", "a", "code", "em", "strong")
        assert attributes.get("href", "https://x").startswith("http")
