"""Doubtful lines wait by themselves: what goes with them, what stands there, how they come back."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.base.errors import Unwritable
from tacit.changes import journal
from tacit.changes.change import Create, Edit, File, WriteFile, acting_as
from tacit.changes.file_edits import apply_operations
from tacit.changes.inbox import Inbox
from tacit.changes.left_out import MARKER, edits_between, leave_out, lines_id
from tacit.changes.provenance.deeds import Said, Sources
from tacit.changes.provenance.witness import Witness
from tacit.changes.scan import Finding, Report

HEAD = "---\nname: x\ndescription: y\n---\n"
FILLER = "".join(f"\nAn honest line about step {number}.\n" for number in range(20))


def cut(body: str, old: str | None = None) -> str | None:
    """The body without its lines that say ASK."""
    text = HEAD + body
    marked = {n for n, line in enumerate(text.split("\n"), 1) if "ASK" in line}
    found = leave_out("" if old is None else HEAD + old, text, marked)
    if found is None:
        return None
    files = {"SKILL.md": File(found.text.encode())}
    back = apply_operations(files, edits_between(found.text, text, "SKILL.md"))
    assert back["SKILL.md"].data.decode() == text
    for line, number in zip(found.text.split("\n"), found.lines, strict=True):
        assert not number or text.split("\n")[number - 1] == line
    return found.text.removeprefix(HEAD)


@pytest.mark.parametrize(
    ("block", "left"),
    [
        ("1. one\n2. ASK\n   and more\n3. three", "1. one\n2. {}\n3. three"),
        ("- one\n  - ASK\n  - two\n- three", "- one\n  - {}\n  - two\n- three"),
        ("- ASK\n  - below it\n\n  And this.\n- three", "- {}\n- three"),
        ("1. ASK\n2. ASK\n\n3. ASK\n4. four", "1. {}\n4. four"),
        ("A paragraph\nwith ASK in it.", "{}"),
        ("ASK, never do:\n\n- a\n\n- b\n  c\n\nAfter.", "{}\n\nAfter."),
        ("ASK what you never run\n\n```\nrm a\n```\n\n```\nrm b\n```\n\nAfter.", "{}\n\nAfter."),
        ("1. ASK, never this:\n```\nrm a\n```\n2. two", "1. {}\n2. two"),
        ("- **ASK, never:**\n- a\n- b\n\nAfter.", "- {}\n\nAfter."),
        ("- one\n- Delete it.\n- But ASK first.\n- four", "- one\n- {}\n- four"),
        ("- one\n- If it is ASK, stop.\n- Otherwise delete it.\n- four", "- one\n- {}\n- four"),
        ("- one\n- When it is late,\n- ASK it.\n- four", "- one\n- {}\n- four"),
        ("- one\n- ASK it,\n- and more.\n- four", "- one\n- {}\n- four"),
        ("## ASK\n\nText.\n\n### More\n\nText.\n\n## Next\n\nText.", "{}\n\n## Next\n\nText."),
        ("**ASK never**\n\nText.\n\nText.\n\n## Next", "{}\n\n## Next"),
        ("ASK\n===\n\nText.\n\nNext\n===", "{}\n\nNext\n==="),
        ("```sh\na\ncd ASK\nrm *\n```\n\nAfter.", "```sh\na\n# {}\n```\n\nAfter."),
        ("~~~ASK\na\n~~~\n\nAfter.", "{}\n\nAfter."),
        ("| a | b |\n|---|---|\n| ASK | 1 |\n| c | d |", "| a | b |\n|---|---|\n| {} |\n| c | d |"),
        ("| ASK | b |\n|---|---|\n| c | d |\n\nAfter.", "{}\n\nAfter."),
        ("> ASK\n> more\n\nAfter.", "> {}\n\nAfter."),
        ("1. one\r\n2. ASK\r\n3. three\r", "1. one\r\n2. {}\r\n3. three\r"),
        ("1. one\r\n2. ASK\r\n3. ASK\n\n4. four", "1. one\r\n2. {}\r\n\n4. four"),
        (f"- {MARKER}\n- ASK\n- three", f"- {MARKER}\n- {{}}\n- three"),
    ],
)
def test_what_is_left(block: str, left: str) -> None:
    """What hangs on a marked line goes with it; in its place stand fixed words in its form."""
    assert cut(f"{block}\n{FILLER}") == f"{left.format(MARKER)}\n{FILLER}"


@pytest.mark.parametrize(
    "body",
    [
        "- one\n- ASK\n",
        "# ASK\n" + FILLER,
        f"```\nASK\n{FILLER}",
        f"````\n```\nASK\n```\n````\n{FILLER}",
        f"> ```\n> ASK\n> ```\n{FILLER}",
        f"<!-- ASK\n\nb -->\n{FILLER}",
        f"one\rASK\n{FILLER}",
        f"ASK, never:\n\n{FILLER}",
    ],
)
def test_what_waits_whole(body: str) -> None:
    """Too much in doubt, a title, or a text of which it is not plain what is code: all waits."""
    assert cut(body) is None


@pytest.mark.parametrize(
    ("old", "new", "left"),
    [
        ("- one\n- two\n", "- one\n- ASK\n- two\n- a\n- b\n", "- one\n- {}\n- two\n- a\n- b\n"),
        ("- one\n\n- two\n", "- ASK\n\n- two\n- a\n- b\n", "- one\n\n- two\n- a\n- b\n"),
        ("- two\n- three\n", "ASK never:\n\n- two\n- three\n\na\nb\n\nc\nd\n",
         "{}\n\n- two\n- three\n\na\nb\n\nc\nd\n"),
    ],
)  # fmt: skip
def test_lines_that_stood_there_stay(old: str, new: str, left: str) -> None:
    """An edit takes nothing away for what it could not bring: the old lines stay."""
    assert cut(new, old) == left.format(MARKER)


def test_edit_of_little_else_waits_whole() -> None:
    """Of an edit the new lines count, not those of the skill that it is made to."""
    assert cut(f"{FILLER}\n- ASK\n\n- new\n", FILLER) is None


LINE = st.sampled_from(
    ["", "# Title", "Text:", "Text ASK", "- item", "  - inner ASK", "1. step:", "But ASK", "```",
     "~~~", "| a |", "> quote ASK", "    code", "---", "ASK:", "**Bold ASK**", "\tx", "It is."]
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(LINE, max_size=12), st.lists(LINE, max_size=12))
def test_nothing_marked_is_left(lines: list[str], old: list[str]) -> None:
    """Whatever a text looks like, no marked line stays, and what is put back is that text."""
    body = "\n".join(lines) + FILLER
    kept = {line for line in old if "ASK" in line}
    found = cut(body, "\n".join(line for line in old if line not in kept) + FILLER)
    assert found is None or "ASK" not in found


BODY = "# How\n\n1. one\n2. ASK the one\n3. three\n4. four\n"
LEFT = BODY.replace("ASK the one", MARKER)


def learn(kit: Any, body: str = BODY, **more: Any) -> Any:
    create = Create({"SKILL.md": kit.md("notes", body, learned=True)})
    return kit.propose("notes", create, actor="reviewer", reason="seen", session="s", **more)


def test_the_rest_lands(kit: Any) -> None:
    """A doubtful line waits by itself; the change lands without it and says so."""
    verdict = learn(kit)
    assert verdict.applied
    assert kit.text("notes").endswith(LEFT)
    (proposal,) = kit.gate.waiting()
    assert verdict.apart == proposal.id == lines_id(verdict.change)
    assert verdict.notes[0] == f"1 line waits for your yes: tacit inbox {proposal.id[-8:]}"
    assert [mark.text for mark in proposal.why.marks] == ["2. ASK the one"]
    assert proposal.why.line == 11
    assert (proposal.change.actor, proposal.change.session) == ("reviewer", "s")
    assert kit.gate.preview(proposal.change).diff.count("\n+2. ASK the one") == 1


def test_a_preview_of_the_part_is_what_lands(kit: Any) -> None:
    """What is shown before is what lands, with how many lines wait; the whole is shown as well."""
    create = Create({"SKILL.md": kit.md("notes", BODY, learned=True)})
    change = kit.change("notes", create, actor="reviewer")
    part, whole = kit.gate.preview(change, part=True), kit.gate.preview(change)
    assert (part.lines, part.asks, whole.lines, len(whole.asks)) == (1, (), 0, 1)
    assert f"+2. {MARKER}" in part.diff
    assert "+2. ASK the one" in whole.diff
    assert kit.gate.propose(change).applied


def test_yes_gives_the_text_as_written(kit: Any) -> None:
    """Accepting the lines gives what was learned; what was changed meanwhile stays."""
    learn(kit)
    assert kit.propose("notes", Edit("4. four", "4. for all")).applied
    (proposal,) = kit.gate.waiting()
    with acting_as("user"):
        assert kit.gate.accept(proposal).applied
    assert kit.text("notes").endswith(BODY.replace("4. four", "4. for all"))
    assert kit.kinds("notes") == ["create", "edit", "edit"]


def test_no_leaves_what_landed(kit: Any) -> None:
    """Lines that were turned down do not come back, nor are they asked about again."""
    learn(kit)
    (proposal,) = kit.gate.waiting()
    kit.gate.reject(proposal, "no")
    assert kit.text("notes").endswith(LEFT)
    head = kit.history.head("notes").id
    edit = Edit(f"2. {MARKER}", "2. ASK the one")
    adds = Edit("4. four\n", "4. four\n5. five\n6. six\n7. seven\n")
    verdict = kit.propose("notes", edit, adds, actor="reviewer", base=head)
    assert verdict.applied
    assert not verdict.apart
    assert kit.gate.waiting() == []


def test_twice_is_once(kit: Any) -> None:
    """The same change again finds both halves there, and tells of both."""
    create = Create({"SKILL.md": kit.md("notes", BODY, learned=True)})
    change = kit.change("notes", create, actor="reviewer")
    first, again = kit.gate.propose(change), kit.gate.propose(change)
    assert (again.apart, again.notes) == (first.apart, first.notes)
    assert len(kit.gate.waiting()) == 1
    assert kit.kinds("notes") == ["create"]


def test_undone_lines_say_so(kit: Any) -> None:
    """What belongs to a change that was taken back is refused with the way to bring it back."""
    verdict = learn(kit)
    with acting_as("user"):
        assert kit.gate.undo(verdict.change).applied
    (proposal,) = kit.gate.waiting()
    preview = kit.gate.preview(proposal.change)
    with acting_as("user"):
        refused = kit.gate.accept(proposal)
    for refusal in (preview.refusal, refused.refusal):
        assert refusal.rule == "taken-back"
        assert f"tacit undo {verdict.change[-8:]}" in refusal.hint
    with acting_as("user"):
        assert kit.gate.undo(verdict.change).applied
        assert kit.gate.accept(proposal).applied
    assert kit.text("notes").endswith(BODY)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_kill_between_the_halves(kit: Any, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    """Killed once the skill is there, before or after its lines wait: the next one finds both."""

    class Stop(BaseException):
        pass

    put = journal._put_apart

    def stop(*args: Any) -> None:
        if moment == "after":
            put(*args)
        raise Stop

    monkeypatch.setattr(journal, "_put_apart", stop)
    monkeypatch.setattr(journal, "_revert", lambda *_: None)
    with pytest.raises(Stop):
        learn(kit)
    monkeypatch.undo()
    kit.create("other")
    assert kit.text("notes").endswith(LEFT)
    assert len(kit.gate.waiting()) == 1


def test_no_inbox_no_landing(kit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the lines cannot be put into the inbox, nothing lands."""

    def fail(*_: Any) -> None:
        raise Unwritable("full", "")

    monkeypatch.setattr(Inbox, "add", fail)
    with pytest.raises(Unwritable):
        learn(kit)
    monkeypatch.undo()
    assert kit.names() == []
    assert kit.gate.waiting() == []
    assert learn(kit).applied


def test_what_else_asks_keeps_all_back(make_kit: Callable[..., Any]) -> None:
    """By the settings, by the caller's wish, by another file or the head: the whole waits."""
    assert learn(make_kit(always_ask=("reviewer",))).outcome == "proposed"
    kit = make_kit()
    change = kit.change(
        "notes", Create({"SKILL.md": kit.md("notes", BODY, learned=True)}), actor="reviewer"
    )
    assert kit.gate.propose(change, waits="most").outcome == "proposed"
    files = {"SKILL.md": make_kit().md("a", BODY, learned=True), "references/b.md": b"ASK\n"}
    assert make_kit().propose("a", Create(files), actor="reviewer").outcome == "proposed"
    head = files["SKILL.md"].replace(b"What a does", b"What ASK does")
    assert (
        make_kit().propose("a", Create({"SKILL.md": head}), actor="reviewer").outcome == "proposed"
    )
    assert make_kit().propose("a", Create(files), actor="agent").outcome == "proposed"


def test_mark_of_the_whole_keeps_all_back(make_kit: Callable[..., Any]) -> None:
    """What speaks against a skill as a whole is not answered by leaving out its first line."""
    sources = Sources(done=(Said("a", "x", "user"),), handed="somewhere")
    kit = make_kit(scanner=Witness(sources))
    verdict = learn(kit, FILLER)
    assert verdict.outcome == "proposed"
    assert verdict.refusal.whole


def test_new_marks_are_left_out_too(make_kit: Callable[..., Any]) -> None:
    """What comes up when the rest is judged again goes too; after three times all waits."""

    def first(files: Any, *, learned: bool, executable: Any = ()) -> Report:
        """Marks the first line that says ASK."""
        lines = enumerate(files["SKILL.md"].decode().split("\n"), 1)
        numbers = [number for number, line in lines if "ASK" in line]
        return Report(
            tuple(
                Finding(file="SKILL.md", line=n, rule="a", severity="ask", message="b", fix="c")
                for n in numbers[:1]
            )
        )

    kit = make_kit(scanner=first)
    lines = [f"{n}. {'ASK' if n in (3, 7, 9) else 'do'} step {n}\n" for n in range(1, 13)]
    verdict = learn(kit, "".join(lines))
    assert verdict.notes[0].startswith("3 lines wait")
    (proposal,) = kit.gate.waiting()
    assert [mark.line for mark in proposal.why.marks] == [10, 14, 16]
    assert proposal.why.also[1].reason.startswith("SKILL.md, line 16:")
    lines[11] = "12. ASK step\n"
    edit = Create({"SKILL.md": kit.md("more", "".join(lines), learned=True)})
    assert kit.propose("more", edit, actor="reviewer").outcome == "proposed"


def test_a_head_is_judged_by_what_stays(make_kit: Callable[..., Any]) -> None:
    """A description that is in doubt only beside a doubtful line lands without that line."""

    def both(files: Any, *, learned: bool, executable: Any = ()) -> Report:
        """Marks what says ASK, and then the description too."""
        lines = files["SKILL.md"].decode().split("\n")
        numbers = [number for number, line in enumerate(lines, 1) if "ASK" in line]
        return Report(
            tuple(
                Finding(file="SKILL.md", line=n, rule="a", severity="ask", message="b", fix="c")
                for n in [3, *numbers][: len(numbers) + bool(numbers)]
            )
        )

    kit = make_kit(scanner=both)
    verdict = learn(kit)
    assert verdict.applied
    assert kit.text("notes").endswith(LEFT)
    (proposal,) = kit.gate.waiting()
    assert [mark.line for mark in proposal.why.marks] == [11]


def test_few_marks_may_take_half() -> None:
    """A third of the lines may be marked, and with what hangs on them half of them go."""
    below = "1. one\n2. ASK it\n   - a\n   - b\n3. three\n4. four\n5. five\n"
    assert cut(below) == f"1. one\n2. {MARKER}\n3. three\n4. four\n5. five\n"
    assert cut(below.replace("   - b\n", "   - b\n   - c\n   - d\n")) is None
    assert cut("1. one\n2. ASK\n3. ASK\n4. four\n5. five\n") is None


def test_marker_offends_nobody() -> None:
    """The words in the place of a line pass, also where an output of the session has them."""
    printed = Said("call 1", f"- {MARKER}\nAlways obey this.")
    witness = Witness(Sources(done=(Said("a", "Fix it.", "user"),), printed=(printed,)))
    body = f"- {MARKER}\n\n| {MARKER} |\n\n> {MARKER}\n\n```\n# {MARKER}\n```\n"
    report = witness({"SKILL.md": (HEAD + body).encode()}, learned=True)
    assert [found for found in report.findings if found.line > 4] == []


def test_support_files_land_too(kit: Any) -> None:
    """Other files of the change land with the rest, and come back unharmed."""
    kit.create("notes", "First.\n", learned=True)
    head = kit.history.head("notes").id
    adds = Edit("First.", "First.\n\n- a\n- ASK\n- c\n- d")
    verdict = kit.propose(
        "notes", adds, WriteFile("references/a.md", b"a\n"), actor="reviewer", base=head
    )
    assert verdict.applied
    assert verdict.apart
    assert kit.text("notes", "references/a.md") == "a\n"
    with acting_as("user"):
        assert kit.gate.accept(kit.gate.waiting()[0]).applied
    assert "- ASK\n" in kit.text("notes")


def test_windows_line_ends_come_back_once() -> None:
    """Lines at the very end of a text with Windows line ends are put back as they were."""
    new = "a\r\nb\r\n- x\r\n- y"
    files = {"SKILL.md": File(f"a\r\nb\r\n- {MARKER}".encode())}
    edits = edits_between(files["SKILL.md"].data.decode(), new, "SKILL.md")
    assert apply_operations(files, edits)["SKILL.md"].data.decode() == new
