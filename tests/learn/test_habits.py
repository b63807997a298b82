"""How changes are made in a project, counted from its sessions."""

from collections.abc import Iterable

from tacit.learn import habits
from tacit.learn.drafts import draft
from tacit.learn.findings import ChecksFinding, HabitsFinding, TroubleFinding, count_findings
from tacit.testing.sample_sessions import called, made, ran
from tacit.traces.trace import ToolCall, Trace

STATUS = """On branch main
Changes not staged for commit:
  (use "git add <file>..." to update what will be committed)
\tmodified:   src/a.py
\tmodified:   local/state.json

Untracked files:
  (use "git add <file>..." to include in what will be committed)
\tlocal/run.lock
\tlocal/sub/
"""


def pairs(traces: Iterable[Trace]) -> tuple[habits.Pair, ...]:
    return habits.pairs(map(habits.changes_of, traces))


def left_out(traces: Iterable[Trace]) -> tuple[habits.LeftOut, ...]:
    return habits.left_out(map(habits.changes_of, traces))


def messages(traces: Iterable[Trace]) -> habits.Messages | None:
    return habits.messages(map(habits.changes_of, traces))


def edited(*names: str) -> list[ToolCall]:
    return [called("Edit", {"file_path": f"/p/app/{name}"}) for name in names]


def session(number: int, *turns: list) -> Trace:
    return made(*turns, session=f"s{number}", project="/p/app")


def both(*names: str, times: int = 2) -> list[Trace]:
    return [session(n, ["go", *edited(*names)]) for n in range(times)]


def test_counterparts_go_together() -> None:
    """Files whose names differ in one word, after three sessions; others after four."""
    assert pairs(both("src/mail_smtp_send.py", "src/mail_http_send.py")) == ()
    found = pairs(both("src/mail_smtp_send.py", "src/mail_http_send.py", times=3))
    assert [(p.one, p.other, p.counterparts) for p in found] == [
        ("src/mail_http_send.py", "src/mail_smtp_send.py", True)
    ]
    assert pairs(both("api/schema.py", "web/types.py", times=3)) == ()
    (far,) = pairs(both("api/schema.py", "web/types.py", times=4))
    assert (len(far.sessions), far.of, far.counterparts) == (4, 4, False)


def test_what_nobody_needs_to_be_told_is_no_pair() -> None:
    """A file and its test, files of one folder, and names that share only that they are tests."""
    assert pairs(both("src/a.py", "src/test_a.py", times=4)) == ()
    assert pairs(both("src/config.py", "src/setup.py", times=4)) == ()
    assert pairs(both("src/config_test.go", "src/setup_test.go")) == ()
    assert pairs(both("db/0001_users.sql", "db/0002_users.sql")) == ()
    assert pairs(both("api/user_x.service.ts", "api/user_x.controller.ts")) == ()
    assert pairs(both("api/schema.py", "web/types.py", "app/share.py", times=4)) == ()


def test_files_that_are_as_often_changed_apart_are_no_pair() -> None:
    """Two of five sessions do not show that files belong together."""
    apart = [session(n + 5, ["go", *edited("src/mail_smtp_send.py")]) for n in range(3)]
    other = [session(n + 9, ["go", *edited("src/mail_http_send.py")]) for n in range(3)]
    assert pairs([*both("src/mail_smtp_send.py", "src/mail_http_send.py"), *apart, *other]) == ()


def test_one_session_is_enough_where_the_user_pointed_it_out() -> None:
    """The user named the counterpart, misspelt, after the first file was done."""
    first, second = edited("src/mail_smtp_send.py"), edited("src/mail_http_send.py")
    told = session(1, ["go", *first], ["check mail_htp_send.py, it needs that too", *second])
    assert [pair.other for pair in pairs([told])] == ["src/mail_http_send.py"]
    untold = session(1, ["go", *first], ["now rename it in mail_http_send.py", *second])
    assert pairs([untold]) == ()


def committed(number: int, add: str, status: str = STATUS) -> Trace:
    commit = ran(f"git add {add} && git commit -m 'fix: sums'", "[main 1] fix: sums")
    return session(number, ["commit", ran("git status", status), commit])


def test_what_is_never_committed_is_left_out() -> None:
    """Changed files that git named at several commits and that went into none."""
    found = left_out([committed(1, "src/a.py"), committed(2, "src/a.py")])
    assert [one.path for one in found] == ["local/run.lock", "local/state.json"]
    assert left_out([committed(1, "src/a.py")]) == ()
    once = committed(3, "src/a.py local/state.json")
    found = left_out([committed(1, "src/a.py"), committed(2, "src/a.py"), once])
    assert [one.path for one in found] == ["local/run.lock"]
    assert left_out([*(committed(n, "src/a.py") for n in (1, 2)), committed(3, "-A")]) == ()
    many = "".join(f"?? notes/day-{day}.md\n" for day in range(3))
    (notes,) = left_out(committed(n, "src/a.py", f" M src/a.py\n{many}") for n in (1, 2))
    assert (notes.path, len(notes.sessions)) == ("notes/day-….md", 2)
    short = " M src/a.py\n M local/state.json\n?? local/run.lock\n"
    assert len(left_out(committed(n, "src/a.py", short) for n in (1, 2))) == 2


def test_messages_that_begin_alike_are_a_convention() -> None:
    """Three quarters of at least five commits, in two sessions; a heredoc is read too."""
    heredoc = "git commit -m \"$(cat <<'EOF'\nfeat(cart): add sums\n\nWhy.\nEOF\n)\""
    commits = [ran("git commit -m 'fix: sums'"), ran(heredoc), ran("git commit -m 'fix: b'")]
    kept = [session(n, ["go", *commits]) for n in range(2)]
    said = messages(kept)
    assert said is not None
    assert (said.shape, said.kinds, said.count, said.of) == ("type: subject", ("fix", "feat"), 6, 6)
    plain = [session(n, ["go", *[ran("git commit -m 'Add sums'")] * 3]) for n in (7, 8)]
    assert messages([*kept, *plain]) is None
    assert messages(kept[:1]) is None


def test_habits_become_one_draft() -> None:
    """Pairs, what is left out and messages are one skill, which says when to use it."""
    traces = [committed(1, "src/a.py"), committed(2, "src/a.py")]
    (found,) = [one for one in count_findings(traces) if isinstance(one, HabitsFinding)]
    made_of = draft(found)
    assert made_of.name == "app-changes"
    assert "before staging or committing there" in made_of.text
    assert "`local/state.json`, left out in 2 sessions" in made_of.text


def test_other_commands_of_the_project_stand_with_its_checks() -> None:
    """A task that is no check is told beside them, when it worked in several sessions."""
    steps = [ran("npm run lint"), ran("npm run db:reset"), ran("npm run lint"), ran("ls -la")]
    (found,) = [
        one
        for one in count_findings(session(n, ["go", *steps]) for n in range(2))
        if isinstance(one, ChecksFinding)
    ]
    assert [rate.purpose for rate in found.others] == ["npm run db:reset"]
    assert "`npm run db:reset`: worked in all 2 runs" in draft(found).text


def test_a_missing_program_is_told_once_with_what_serves_in_its_place() -> None:
    """That a program is not there is no accident; the project's own way is named beside it."""
    missing = ran("golangci-lint run", "sh: command not found: golangci-lint", failed=True)
    traces = [session(n, ["go", ran("mise run lint"), ran("mise run lint")]) for n in range(2)]
    traces.append(session(3, ["go", missing]))
    (found,) = [one for one in count_findings(traces) if isinstance(one, ChecksFinding)]
    assert [t.instead for t in found.troubles] == [(("mise run lint", 2),)]


def test_what_was_called_wrongly_is_told_with_whatever_worked_in_each_session() -> None:
    """Two ways that each mended one session, but not for a program that carries other commands."""

    def tried(number: int, failed: str, error: str, mend: str) -> Trace:
        return session(number, ["go", ran(failed, error, failed=True), ran(mend)])

    denied = "git@github.com: Permission denied (publickey)."
    ways = ("git push https://host/a.git main", "git push https://host/a.git dev")
    denials = [tried(n, "git push origin main", denied, way) for n, way in enumerate(ways)]
    (found,) = [one for one in count_findings(denials) if isinstance(one, TroubleFinding)]
    assert {form for form, _ in found.troubles[0].instead} == set(ways)
    lost = 'ERROR: relation "a" does not exist'
    asks = [tried(n, f"ssh host q{n}", lost, f"ssh host r{n}") for n in range(2)]
    assert not [one for one in count_findings(asks) if isinstance(one, TroubleFinding)]


def test_a_program_that_is_nowhere_there_is_told() -> None:
    """By the name that the shell did not find; one that worked elsewhere is there."""
    gone = "(eval):1: command not found: timeout"
    traces = [session(n, ["go", ran("timeout 9 app serve", gone, failed=True)]) for n in range(2)]
    (found,) = [one for one in count_findings(traces) if isinstance(one, TroubleFinding)]
    assert found.program == "timeout"
    assert "timeout is not installed" in draft(found).text
    there = session(5, ["go", ran("timeout 9 app serve")])
    assert not [f for f in count_findings([*traces, there]) if isinstance(f, TroubleFinding)]


def test_type_errors_are_rules_too() -> None:
    """What a type checker names in two sessions is among what the checks object to."""
    said = "a.ts(1,2): error TS2322: Type 'a' is not assignable to type 'b'."
    steps = [ran("npm run typecheck", said, failed=True), ran("npm run typecheck")]
    (found,) = [
        one
        for one in count_findings(session(n, ["go", *steps]) for n in range(2))
        if isinstance(one, ChecksFinding)
    ]
    assert [rule.rule for rule in found.rules] == ["TS2322"]


def test_programs_of_its_own_are_told() -> None:
    """One with words of its own in three sessions, such as for tickets; not what everybody has."""
    prose = "cat a\nSo this explains\nSo the\nif we\nif the"
    work = ["Go", ran("tick open 12"), ran("tick close 12"), ran("docker up"), ran("docker down"),
            ran(prose)]  # fmt: skip
    own = [made(work, session=f"s{n}", project="/p/app") for n in range(3)]
    (found,) = (f for f in count_findings(own) if isinstance(f, ChecksFinding))
    assert [(rate.form, len(rate.sessions)) for rate in found.others] == [("tick close|open", 3)]
    assert draft(found).name == "app-commands"
    assert "tick close|open" in draft(found).text
    assert not any(isinstance(f, ChecksFinding) for f in count_findings(own[:2]))


def test_files_are_seen_from_the_project_on_every_system() -> None:
    """By whole paths or as an agent in the folder names them; not what lies outside."""

    def changed(project: str, *paths: str) -> tuple[str, ...]:
        calls = [called("Edit", {"file_path": path}) for path in paths]
        return habits.changes_of(made(["Go", *calls], project=project)).edited

    assert changed("/p/app", "/p/app/src/a.py", "src/b.py", "/p/x.py", "../c") == (
        "src/a.py", "src/b.py",
    )  # fmt: skip
    assert changed("C:\\p\\app", "C:\\p\\app\\src\\a.py", "C:\\x.py") == ("src/a.py",)
