"""What shells and systems do not take, by what they print and what was typed."""

import pytest

from tacit.learn.shells import not_taken
from tacit.testing.sample_sessions import ran

SUDO = "sudo: a terminal is required to read the password; either use the -S option"


@pytest.mark.parametrize(
    ("command", "said", "name"),
    [
        (
            "rg -n name || echo none",
            "The token '||' is not a valid statement separator in this version.",
            "&& or || between commands",
        ),
        (
            "apply_patch << 'EOF'\nx\nEOF",
            "+ FullyQualifiedErrorId : MissingFileSpecification",
            "here-documents (<<)",
        ),
        (
            "npm ci && npm test",
            "+ FullyQualifiedErrorId : InvalidEndOfLine",
            "&& or || between commands",
        ),
        (
            '$html = "<a class=\\"x\\">"',
            "+ FullyQualifiedErrorId : UnexpectedToken",
            '\\" between double quotes',
        ),
        (
            "Get-Content a.py -TotalCount 20 -Tail 5",
            "The parameters TotalCount and Tail cannot be used together.",
            "Get-Content with -TotalCount and -Tail together",
        ),
        (
            'ls "D:\\work\\notes\\" | head',
            "bash: eval: line 1: unexpected EOF while looking for matching `\"'",
            "a quoted path that ends with \\",
        ),
        (
            "cd d:\\work\\notes && ls",
            "bash: line 1: cd: d:worknotes: No such file or directory",
            "unquoted paths with \\",
        ),
        ("dir /b src", "dir: cannot access '/b': No such file", "options that begin with /"),
        (
            "ipconfig /all",
            "Error: unrecognized or incomplete command line.",
            "options that begin with /",
        ),
        (
            "where node 2>$null; if ($?) { echo yes }",
            "bash: eval: line 1: syntax error near unexpected token `{'",
            "what is written for PowerShell (if ($…) { … }, 2>$null)",
        ),
        (
            "python make.py",
            "UnicodeEncodeError: 'charmap' codec can't encode character '\\u2713'",
            "letters that the console's code page lacks, printed by Python",
        ),
        ("sudo apt install jq", SUDO, "sudo, which asks for a password"),
        (
            'pkill -f "serve.*80"; npm start',
            "Exit code 144",
            "pkill -f beside other commands, whose line it matches",
        ),
        (
            "git status -s",
            "fatal: detected dubious ownership in repository at '/srv/app'",
            "git in a folder that belongs to another user",
        ),
        (
            "git commit -m x",
            "*** Please tell me who you are.",
            "commits while git knows no name and address",
        ),
        (
            "git commit -m x",
            "error: 1Password: failed to fill whole buffer",
            "signed commits while what signs them does not answer",
        ),
        (
            "ssh box 'psql -U app -c x'",
            'psql: error: FATAL:  Peer authentication failed for user "app"',
            "psql -U of another user through the socket",
        ),
        (
            "ipconfig",
            "0 [main] bash 1398 dofork: child -1 - forked process 31320 died unexpectedly",
            "Git Bash itself, which cannot start programs",
        ),
        (
            "ls",
            "EACCES: permission denied, mkdir '/tmp/agent-1'",
            "any command while its own folder below /tmp cannot be made",
        ),
    ],
)
def test_what_is_not_taken_is_known_by_what_was_printed(command: str, said: str, name: str) -> None:
    ((found, line),) = not_taken(ran(command, f"{said}\n", failed=True))
    assert (found, line) == (name, said)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ('node -e "print(1"', "bash: unexpected EOF while looking for matching `\"'"),
        ("npm start", "Exit code 144"),
        ("cd notes && ls", "bash: line 1: cd: notes: No such file or directory"),
        ("grep -n sudo log", f"log:1:{SUDO}"),
    ],
)
def test_what_has_another_cause_is_left_alone(command: str, said: str) -> None:
    assert list(not_taken(ran(command, said, failed=True))) == []


def test_a_pipe_hides_no_complaint_that_is_all_that_was_printed() -> None:
    assert [name for name, _ in not_taken(ran("sudo id 2>&1 | tail -3", SUDO))] == [
        "sudo, which asks for a password"
    ]
    read = ran("cat log", "ok\n" * 20 + SUDO)
    assert list(not_taken(read)) == []


@pytest.mark.parametrize(
    "said",
    [
        "warning: could not open directory 'go/go/': No such file or directory",
        "bash: line 1: cd: go: No such file or directory",
        "fatal: pathspec 'go/a.go' did not match any files",
        "ls: cannot access 'go/cmd': No such file or directory",
        "grep: go/cmd/a.go: No such file or directory",
    ],
)
def test_a_shell_stays_where_the_last_command_went(said: str) -> None:
    """So a path that begins with the folder it is in leads nowhere; elsewhere it may be missing."""
    lost = ran("x go/a.go", said, failed=True)
    ((name, line),) = not_taken(lost, "go/cmd")
    assert (name, line) == ("paths from the project's root, in a folder below it", said)
    assert [*not_taken(lost), *not_taken(lost, None), *not_taken(lost, "web")] == []
