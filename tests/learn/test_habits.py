"""How changes are made in a project, counted from its sessions."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from tacit.learn import habits
from tacit.learn.counted_session import count_session, one_project_each
from tacit.learn.demands import Finding
from tacit.learn.drafts import draft
from tacit.learn.findings import ChecksFinding, HabitsFinding, TroubleFinding, count_findings
from tacit.learn.rates import usual_form
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


def session(number: int, *turns: list, day: int | None = None) -> Trace:
    """A session of its own day, unless one is given."""
    trace = made(*turns, session=f"s{number}", project="/p/app")
    ended = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number if day is None else day)
    return Trace(msgspec.structs.replace(trace.head, ended=ended), trace.turns)


def both(*names: str, times: int = 2, day: int | None = None) -> list[Trace]:
    return [session(n, ["go", *edited(*names)], day=day) for n in range(times)]


def test_counterparts_go_together() -> None:
    """Files whose names differ in one word, after three sessions; others after five."""
    assert pairs(both("src/mail_smtp_send.py", "src/mail_http_send.py")) == ()
    found = pairs(both("src/mail_smtp_send.py", "src/mail_http_send.py", times=3))
    assert [(p.one, p.other, p.counterparts) for p in found] == [
        ("src/mail_http_send.py", "src/mail_smtp_send.py", True)
    ]
    assert pairs(both("api/schema.py", "web/types.py", times=4)) == ()
    (far,) = pairs(both("api/schema.py", "web/types.py", times=5))
    assert (len(far.sessions), far.of, far.counterparts) == (5, 5, False)


def test_what_one_piece_of_work_changed_is_no_pair() -> None:
    """The sessions of one day, or a family of files that all change together."""
    assert pairs(both("src/mail_smtp_send.py", "src/mail_http_send.py", times=5, day=1)) == ()
    assert pairs(both("a/x_agent.py", "a/y_agent.py", "a/z_agent.py", times=5)) == ()


def test_what_nobody_needs_to_be_told_is_no_pair() -> None:
    """A file and its test, files of one folder, and names that share only that they are tests."""
    assert pairs(both("src/a.py", "src/test_a.py", times=5)) == ()
    assert pairs(both("src/config.py", "src/setup.py", times=5)) == ()
    assert pairs(both("src/config_test.go", "src/setup_test.go")) == ()
    assert pairs(both("db/0001_users.sql", "db/0002_users.sql")) == ()
    assert pairs(both("api/user_x.service.ts", "api/user_x.controller.ts")) == ()
    assert pairs(both("api/schema.py", "web/types.py", "app/share.py", times=5)) == ()


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


def committed(number: int, add: str, status: str = STATUS, day: int | None = None) -> Trace:
    commit = ran(f"git add {add} && git commit -m 'fix: sums'", "[main 1] fix: sums")
    return session(number, ["commit", ran("git status", status), commit], day=day)


def test_what_is_never_committed_is_left_out() -> None:
    """Changed files that git named at several commits and that went into none."""
    often = [committed(n, "src/a.py") for n in (1, 2, 3)]
    assert [one.path for one in left_out(often)] == ["local/run.lock", "local/state.json"]
    assert left_out(often[:2]) == ()
    once = committed(4, "src/a.py local/state.json")
    assert [one.path for one in left_out([*often, once])] == ["local/run.lock"]
    assert left_out([*often, committed(4, "-A")]) == ()
    many = "".join(f"?? notes/day-{day}.md\n" for day in range(3))
    (notes,) = left_out(committed(n, "src/a.py", f" M src/a.py\n{many}") for n in (1, 2, 3))
    assert (notes.path, len(notes.sessions)) == ("notes/day-….md", 3)
    short = " M src/a.py\n M local/state.json\n?? local/run.lock\n"
    assert len(left_out(committed(n, "src/a.py", short) for n in (1, 2, 3))) == 2
    own = " M src/a.py\n?? .claude/projects/-p/a.jsonl\n M lib (modified content)\n"
    (nested,) = left_out(committed(n, "src/a.py", own) for n in (1, 2, 3))
    assert nested.path == "lib"


def test_what_waits_for_a_while_is_not_left_out() -> None:
    """Deletions that are pending, files of a date, and what only one day's sessions left."""
    for status in (" D docs/a.md\n M src/a.py\n", "?? notes/2026-04-25-plan.md\n M src/a.py\n"):
        assert left_out(committed(n, "src/a.py", status) for n in (1, 2, 3)) == ()
    assert left_out(committed(n, "src/a.py", day=1) for n in (1, 2, 3)) == ()


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


def test_messages_have_the_scope_that_most_have() -> None:
    """A type or a scope that only one session used is not named."""

    def commits(*subjects: str) -> list[ToolCall]:
        return [ran(f"git commit -m '{subject}'") for subject in subjects]

    first = commits("docs(cli): a", "fix(cli): b", "restore(x): c", "restore(y): d", "feat: e")
    second = commits("docs(cli): f", "fix(api): g")
    said = messages([session(1, ["go", *first]), session(2, ["go", *second])])
    assert said is not None
    assert (said.kinds, said.scopes) == (("docs", "fix"), ("cli",))
    assert said.shape == "type(scope): subject"
    many = session(3, ["go", *commits(*(f"fix: {n}" for n in range(9)))])
    said = messages([session(1, ["go", *first]), session(2, ["go", *second]), many])
    assert said is not None
    assert said.shape == "type: subject"


def test_habits_become_one_draft() -> None:
    """Pairs, what is left out and messages are one skill, which says when to use it."""
    traces = [committed(n, "src/a.py") for n in (1, 2, 3)]
    (found,) = [one for one in count_findings(traces) if isinstance(one, HabitsFinding)]
    made_of = draft(found)
    assert made_of.name == "app-changes"
    assert "before staging or committing there" in made_of.text
    assert "`local/state.json`, left out in 3 sessions" in made_of.text


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


def test_a_missing_program_is_told_once_with_what_runs_it() -> None:
    """That a program is not there is no accident; what else does such work is not named for it."""
    missing = ran("golangci-lint run", "sh: command not found: golangci-lint", failed=True)
    other = [session(n, ["go", ran("mise run lint"), ran("mise run lint")]) for n in range(2)]
    (found,) = [
        one
        for one in count_findings(
            [*other, session(3, ["go", missing]), session(4, ["go", missing])]
        )
        if isinstance(one, ChecksFinding)
    ]
    assert [(t.form, t.instead) for t in found.troubles] == [("golangci-lint", ())]
    run_by = "mise exec -- golangci-lint run"
    traces = [
        *other,
        *(session(n, ["go", ran(run_by)]) for n in (4, 5)),
        session(6, ["go", missing]),
    ]
    told = [t for one in count_findings(traces) for t in getattr(one, "troubles", ())]
    assert [t.instead for t in told] == [((run_by, 2),)]


def test_what_takes_the_place_of_a_missing_program_serves_its_purpose() -> None:
    """It is the program itself run by another, not whatever else is called a check."""
    missing = ran("goreleaser check", "sh: command not found: goreleaser", failed=True)
    other = session(1, ["go", missing, ran("gh pr checks 4"), ran("npm run lint")])
    same = session(2, ["go", ran("gh pr checks 4"), ran("npm run lint")])
    assert not [t for f in count_findings([other, same]) for t in getattr(f, "troubles", ())]
    asked = ran('psql -c "select 1"', "sh: command not found: psql", failed=True)
    inside = ran('docker exec db psql -U app -c "select 1 from a where b"')
    traces = [session(1, ["go", asked]), session(2, ["go", asked, inside])]
    (found,) = [one for one in count_findings(traces) if isinstance(one, TroubleFinding)]
    assert [t.form for t in found.troubles] == ["psql"]
    assert [form for form, _ in found.troubles[0].instead] == [
        'docker exec db psql -U app -c "select 1 from a where b"'
    ]


def tried_to_commit(number: int, *after: str) -> Trace:
    """A session whose commit a broken hook stops; `after` is what was then done, and worked."""
    said = (
        "lint.......................................Passed\nbug: pre-commit's script is broken\n"
        "run `pre-commit install -f` to fix this\ntypes......................Passed"
    )
    chain = f"git add a{number}.py && git commit -m 'feat: number {number}'"
    fix = ran("pre-commit install -f", "[ERROR] refusing\nhint: unset it", failed=True)
    steps = [ran(chain, said, failed=True), fix, *map(ran, after)]
    return session(number, ["go", *steps])


def test_a_hook_that_stops_commits_is_told_with_its_complaint() -> None:
    """Counted over chains and messages, by what the hook complains of; going around it is no mend,
    and what was tried against it in vain stands beside it."""
    around = "git commit --no-verify -m x"
    traces = [tried_to_commit(n, around) for n in range(3)]
    (found,) = [one for one in count_findings(traces) if isinstance(one, TroubleFinding)]
    commit, tried = found.troubles
    assert (commit.form, commit.failed, commit.runs) == ("git commit -m <message>", 3, 6)
    assert commit.error == "bug: pre-commit's script is broken"
    assert (tried.form, tried.failed) == ("pre-commit install -f", 3)
    text = draft(found).text
    assert "no-verify" not in text
    assert "name: app-git-commit\n" in text


def test_what_git_itself_refuses_is_no_hook() -> None:
    """A push that is behind says nothing about checks, nor does a commit of nothing."""
    behind = "! [rejected] main -> main (fetch first)\nerror: failed to push some refs to 'x'"
    nothing = "lint......Skipped\nOn branch main\nnothing to commit, working tree clean"
    steps = [ran("git push", behind, failed=True), ran("git commit -m x", nothing, failed=True)]
    steps += [ran("npm run lint")]
    found = count_findings(session(n, ["go", *steps]) for n in range(3))
    assert [one.hooked for one in found if isinstance(one, ChecksFinding)] == [None]
    assert not [one for one in found if isinstance(one, TroubleFinding)]
    unsigned = "error: Signing file /tmp/a\nCouldn't sign message: agent refused operation?\n"
    steps = [ran("git commit -m y", unsigned, failed=True), ran("npm run lint")]
    found = count_findings(session(n, ["go", *steps]) for n in range(3))
    assert [one.hooked for one in found if isinstance(one, ChecksFinding)] == [None]


def test_ignored_files_are_left_out_and_not_forced() -> None:
    """Staging that fails is told with the folder that is ignored; `-f` is no mend."""
    said = "The following paths are ignored by one of your .gitignore files:\nplans\nhint: Use -f"
    traces = [
        session(n, ["go", ran(f"git add plans/{n}.md && git commit -m x", said, failed=True),
                    ran(f"git add -f plans/{n}.md && git commit -m x")])
        for n in range(2)
    ]  # fmt: skip
    (found,) = [one for one in count_findings(traces) if isinstance(one, TroubleFinding)]
    assert found.troubles[0].error.endswith(".gitignore files: plans")
    assert not found.troubles[0].instead
    assert "leave them out" in draft(found).text


def test_a_command_is_told_as_it_is_run_for_the_whole() -> None:
    """One form that several sessions share rather than a beginning; a build of nobody knows what
    is not told."""
    steps = [["go test ./a", "go test ./..."], ["go test ./b", "go test ./..."], ["go test ./c"]]
    builds = ["nix build .#a", "nix build .#b", "nix build .#c"]
    traces = [
        session(n, ["go", *map(ran, own), ran(built), ran("golangci-lint run")])
        for n, (own, built) in enumerate(zip(steps, builds, strict=True))
    ]
    (found,) = [one for one in count_findings(traces) if isinstance(one, ChecksFinding)]
    assert [rate.form for rate in found.rates] == ["golangci-lint run", "go test ./..."]


def test_what_was_called_wrongly_is_told_with_whatever_worked_in_each_session() -> None:
    """Two ways that each mended one session, but not for a program that carries other commands."""

    def tried(number: int, failed: str, error: str, mend: str) -> Trace:
        return session(number, ["go", ran(failed, error, failed=True), ran(mend)])

    denied = "git@github.com: Permission denied (publickey)."
    ways = ("git push https://host/a.git main", "git push https://host/a.git dev")
    denials = [tried(n, "git push origin main", denied, way) for n, way in enumerate(ways)]
    (found,) = [one for one in count_findings(denials) if isinstance(one, TroubleFinding)]
    told = {ways[0], "git push https://host/a.git <branch>"}
    assert {form for form, _ in found.troubles[0].instead} == told
    lost = 'ERROR: relation "a" does not exist'
    asks = [tried(n, f"ssh host q{n}", lost, f"ssh host r{n}") for n in range(2)]
    assert not [one for one in count_findings(asks) if isinstance(one, TroubleFinding)]


def test_a_program_that_is_nowhere_there_is_told() -> None:
    """By the name that the shell did not find; one that worked elsewhere is there."""
    gone = "(eval):1: command not found: timeout"
    traces = [session(n, ["go", ran("timeout 9 app serve", gone, failed=True)]) for n in range(2)]
    (found,) = [one for one in count_findings(traces) if isinstance(one, TroubleFinding)]
    assert (
        "lacks, does not take or stops, and in brackets what works: timeout. Use"
        in draft(found).text
    )
    assert "`(eval):1: command not found: timeout`. Nothing was seen" in draft(found).text
    there = session(5, ["go", ran("timeout 9 app serve")])
    assert not [f for f in count_findings([*traces, there]) if isinstance(f, TroubleFinding)]
    built = session(6, ["go", ran("target/debug/timeout 9 app serve")])
    assert not [f for f in count_findings([*traces, built]) if isinstance(f, TroubleFinding)]


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


def checks_of(found: Iterable[Finding]) -> list[ChecksFinding]:
    return [one for one in found if isinstance(one, ChecksFinding)]


LINT_STAGED = """[STARTED] markdownlint --fix
[FAILED] markdownlint --fix [FAILED]
/p/app/a.md:26 error MD040/fenced-code-language Fenced code blocks should have a language [Context]
husky - pre-commit script failed (code 1)"""
PRE_COMMIT = """trim trailing whitespace........Passed
ruff check..............Failed
a.py:1:1: F401 `os` imported but unused"""
COMMITLINT = """⧗ input: x
✖   subject may not be empty [subject-empty]
✖ commitlint:
husky - commit-msg script failed (code 1)"""


@pytest.mark.parametrize(
    ("printed", "step", "rule"),
    [
        (LINT_STAGED, "markdownlint --fix", "MD040"),
        (PRE_COMMIT, "ruff check", "F401"),
        (COMMITLINT, "commitlint", "subject-empty"),
    ],
)
def test_what_a_hook_runs_and_wants(printed: str, step: str, rule: str) -> None:
    """And a commit that could not be written is none of its failures."""
    unwritten = f"{printed}\nfatal: failed to write commit object"
    steps = [ran("git commit -m x", printed, failed=True), ran("git commit -m x"),
             ran("git commit -m y", unwritten, failed=True), ran("npm run lint")]  # fmt: skip
    (found,) = checks_of(count_findings(session(n, ["go", *steps]) for n in range(2)))
    assert found.hooked is not None
    assert (found.hooked.rate.failed, found.hooked.rate.runs) == (2, 6)
    assert found.hooked.steps == (step,)
    assert [one.rule for one in found.hooked.rules] == [rule]
    assert (
        f"at `git commit`: it failed 2 of 6 times, in 2 sessions, at `{step}`" in draft(found).text
    )


SED = "sed: The term 'sed' is not recognized as a name of a cmdlet, function, script file"


def test_what_only_looks_is_missing_too_and_told_with_what_was_given_the_same() -> None:
    """But not where most sessions had it: then another shell lacked it."""
    gone = [ran("sed -n 1,9p src/a.ts", SED, failed=True), ran("Get-Content src/a.ts", "text")]
    traces = [session(n, ["go", *gone]) for n in range(2)]
    (found,) = [one for one in count_findings(traces) if isinstance(one, TroubleFinding)]
    (trouble,) = found.troubles
    assert (trouble.program, trouble.instead, trouble.there) == ("sed", (("Get-Content …", 2),), 0)
    there = [session(n, ["go", ran("sed -n 1,9p src/a.ts", "text")]) for n in range(5, 12)]
    (found,) = count_findings([*traces, *there[:2]])
    assert "In 2 other sessions it was there." in draft(found).text
    assert count_findings([*traces, *there]) == []


def test_when_a_command_is_run_and_on_what() -> None:
    """Of the services that it names each is told, and the files whose change it follows."""

    def work(n: int, service: str) -> Trace:
        change = called("Edit", {"file_path": f"/p/app/server/lib/{n}.js"})
        return session(n, ["go", change, ran(f"pm2 restart {service}"), ran("pm2 status")])

    (found,) = checks_of(
        count_findings(work(n, s) for n, s in enumerate(["web", "bot", "api"] * 2))
    )
    assert (
        "- `pm2 restart api|bot|web`: worked in all 6 runs, in 6 sessions, mostly after a change in"
        " `server/lib/*.js`"
    ) in draft(found).text


def test_syntax_checks_of_scripts_are_one_check() -> None:
    """Running a script is something else."""

    def work(n: int) -> Trace:
        change = called("Edit", {"file_path": f"/p/app/etc/{n}.sh"})
        return session(n, ["go", change, ran(f"bash -n etc/{n}.sh"), ran(f"bash etc/{n}.sh", "no",
                       failed=True)])  # fmt: skip

    (found,) = checks_of(count_findings(map(work, range(4))))
    (rate,) = found.rates
    assert (rate.purpose, rate.form, rate.failed, rate.after) == (
        "bash -n", "bash -n …", 0, "etc/*.sh",
    )  # fmt: skip


def test_kits_and_what_was_given_up_are_no_checks() -> None:
    """Scripts that come with an agent's kit, and what no session of the last ones ran."""
    kit = [ran(".specify/scripts/bash/check-prerequisites.sh --json") for _ in range(2)]
    assert checks_of(count_findings(session(n, ["go", *kit]) for n in range(3))) == []
    early = [session(n, ["go", ran("tests/red_test.sh")]) for n in range(2)]
    late = [session(n, ["go", ran("npm run lint")]) for n in range(2, 9)]
    (found,) = checks_of(count_findings([*early, *late]))
    assert [rate.purpose for rate in found.rates] == ["npm run lint"]
    (found,) = checks_of(count_findings([*early, *late[:4]]))
    assert len(found.rates) == 2


def test_messages_by_part_are_not_told_as_types() -> None:
    """Nor is a kind said to be in most that is in few."""
    said = ["gui: add a", "gui: add b", "PDL: add c", "cli: add d", "docs: add e", "slicer: f"]
    steps = [ran(f'git commit -m "{one}"', "[main 1234567] x") for one in said]
    habits = count_findings(session(n, ["go", *steps]) for n in range(2))
    (found,) = [one for one in habits if isinstance(one, HabitsFinding)]
    assert found.messages is not None
    assert found.messages.shape == "part: subject"
    assert found.messages.kinds == ("gui",)
    assert "(some with `gui`), e.g. `slicer: f`" in draft(found).text


def test_what_follows_a_push() -> None:
    """In most sessions that push; looking at the pull request is nothing that others need."""
    steps = [ran("git push -u origin x", "* [new branch] x"), ran("gh pr view 3"),
             ran('gh pr create --title "a" --body "b"')]  # fmt: skip
    pushing = [session(n, ["go", *steps]) for n in range(3)]
    (found,) = [one for one in count_findings(pushing) if isinstance(one, HabitsFinding)]
    assert found.pushed is not None
    assert found.pushed.then == (("gh pr create --title <title> --body <text>", 3),)
    more = [session(n, ["go", steps[0]]) for n in range(3, 7)]
    assert [
        one for one in count_findings([*pushing, *more]) if isinstance(one, HabitsFinding)
    ] == []


def test_logs_that_are_looked_into() -> None:
    """Where several sessions do; alone they make a draft where many do."""
    looks = ["go", ran("tail -n 50 logs/app.log", "x"), ran("docker logs web-1 --tail 5", "x")]
    looks += [ran("cat ~/Downloads/KL8MB6SA/app_20260321.log", "x")]  # of one fault
    traces = [session(n, looks) for n in range(5)]
    (found,) = checks_of(count_findings(traces))
    assert found.logs == (("logs/app.log", 5), ("docker logs web-1", 5))
    assert "- `logs/app.log`, in 5 sessions" in draft(found).text
    assert checks_of(count_findings(traces[:4])) == []


def test_a_word_that_differs_is_a_variable() -> None:
    """As it stands in a command that works."""
    forms = [f"docker exec web-1 odoo -d db -u {name} --stop" for name in ("a1", "b2", "c3", "a1")]
    assert (
        usual_form("docker exec web-1", forms) == "docker exec web-1 odoo -d db -u <value> --stop"
    )


def test_a_new_name_on_the_same_day_and_files_of_its_own_are_one_project() -> None:
    """But not files that every project has."""

    def work(folder: str, hour: int, top: str) -> Trace:
        changes = [called("Edit", {"file_path": f"/p/{folder}/{top}/{n}.sh"}) for n in range(3)]
        trace = made(["go", *changes], session=f"{folder}{hour}", project=f"/p/{folder}")
        at = datetime(2026, 1, 1, hour, tzinfo=UTC)
        head = msgspec.structs.replace(trace.head, started=at, ended=at)
        return Trace(head, trace.turns)

    for top, folders in ((".mine", 1), ("src", 2)):
        both = [count_session(work("old_one", 1, top)), count_session(work("fresh", 2, top))]
        assert len({one.project for one in one_project_each(both)}) == folders


def test_what_the_shell_does_not_take() -> None:
    """Told once for all commands, where two sessions tried it and not only once each, or one did in
    three turns."""
    globbed = ran("ls a-*/", "x\n(eval):1: no matches found: a-*/\ny", failed=True)
    parsed = "ParserError:\nLine |\n 1 | python - <<'EOF'\n | Missing file specification"
    typed = ran("python - <<'EOF'\nprint(1)\nEOF", parsed, failed=True)
    traces = [session(n, ["go", globbed, typed]) for n in range(3)]
    (found,) = count_findings(traces)
    text = draft(found).text
    assert "Here-documents (<<): 3 calls in 3 sessions failed with" in text
    assert "failed with `(eval):1: no matches found: a-*/`. What works: the same in quotes" in text
    assert count_findings(traces[:2]) == []
    (found,) = count_findings([session(0, *[["go", typed]] * 3)])
    assert "Here-documents (<<): 3 calls in 1 session failed" in draft(found).text


def test_commands_that_only_ask_or_lack_what_they_are_given_are_not_told() -> None:
    """Nor those that start a server, which everybody knows."""
    asks = [ran("tool auth list", "ok"), ran("tool models", "a"), ran("npm run dev", "ready")]
    given = [ran(f"./install.sh --dry-run {n}", "done") for n in range(3)]
    edit = called("Edit", {"file_path": "/p/app/a.sh"})
    traces = [session(n, ["go", edit, *asks, edit, given[n]]) for n in range(3)]
    assert count_findings(traces) == []


_TERM = "The term '{}' is not recognized as a name of a cmdlet"


@pytest.mark.parametrize(
    ("command", "said", "tells"),
    [
        (
            r"Get-Content src\app\(shop)\cart\page.tsx",
            f"shop: {_TERM.format('shop')}",
            "Unquoted ( or ) in a path: 3 calls in 3 sessions failed with `shop: The term",
        ),
        (
            "cat app/(shop)/page.tsx",
            "bash: syntax error near unexpected token `('",
            "Unquoted ( or ) in a path: 3 calls",
        ),
        (
            r"Get-Content C:\p\app\src\api\[id]\route.ts",
            (
                r"An object at the specified path C:\p\app\src\api\[id]\route.ts does not"
                " exist, or has been filtered"
            ),
            "specified path src/api/…/route.ts does not exist",
        ),
        (
            'powershell.exe -Command "Get-Process | Where-Object {$_.Id -eq 1}"',
            "extglob.Id : The term 'extglob.Id' is not recognized as the name of a cmdlet",
            "$_ in double quotes behind powershell -Command: 3 calls",
        ),
        (
            'cd src && grep -rn "name" --include="*.{m,h}" . | head -5',
            "(Bash completed with no output)",
            '--include="*.{a,b}" of grep: 3 calls in 3 sessions failed with `no output`',
        ),
    ],
)
def test_what_has_to_be_quoted_otherwise(command: str, said: str, tells: str) -> None:
    failed = not said.startswith("(")
    project = "C:\\p\\app" if "C:" in command else "/p/app"
    traces = [
        made(["go", ran(command, said, failed=failed)], session=f"s{n}", project=project)
        for n in range(3)
    ]
    (found,) = count_findings(traces)
    assert tells in draft(found).text


def test_what_worked_or_is_not_there_was_not_quoted_wrongly() -> None:
    found = ran('grep -rn "name" --include="*.{m,h}" .', "a.m:1:name")
    missing = ran("shop list", f"shop: {_TERM.format('shop')}", failed=True)
    traces = [session(n, ["go", found, missing]) for n in range(3)]
    assert "quote" not in "".join(draft(one).text for one in count_findings(traces))


@pytest.mark.parametrize(
    "command",
    [
        "ssh box 'git add a.py && git commit -m x'",
        "pwsh -Command \"git add a.py; git commit -m 'x'\"",
        "docker exec app sh -c 'cd /srv && git commit -am x'",
        "bash -lc \"git 'add' a.py\"",
        "git -C /srv add a.py",
    ],
)
def test_commits_by_way_of_another_program_are_read_without_a_fault(command: str) -> None:
    """What stands within another's quotes is one word there."""
    assert habits.changes_of(made(["Commit it.", ran(command, "[main 1] x")])).session
