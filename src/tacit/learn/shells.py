"""What the shells and the tools of a system do not take, how they say so, and what they take.

Known by what was printed and the command together, whatever the command was for: such a call says
something about the machine and nothing about the program. How often it happened is `troubles.py`'s.
"""

import re
from collections.abc import Iterator

from tacit.traces.outcomes import says_nothing, uncoloured
from tacit.traces.tool_calls import command_of
from tacit.traces.trace import ToolCall

_MOST_LETTERS = 2000
"""Characters of an output and of a command that are looked at."""
_FEW_LINES = 8
"""Lines up to which what begins with a complaint may be nothing else."""
SHELL_TAKES = {
    "here-documents (<<)": (
        re.compile(r"Missing ?file ?specification|'<' operator is reserved"
                   r"|ParserError[^§]{0,200}<<", re.IGNORECASE),
        "a here-string of PowerShell, or a file",
    ),
    "&& or || between commands": (
        re.compile(r"'(?:&&|\|\|)' is not a valid statement separator"
                   r"|: InvalidEndOfLine(?=[^§]*\n§ [^§]*(?:&&|\|\|))"), "; or if ($?) { … }",
    ),
    "\\\" between double quotes": (
        re.compile(r"(?:in expression or statement|: UnexpectedToken|: TerminatorExpectedAt\w+)"
                   r"(?=[^§]*\n§ [^§]*\\\")"),
        "a backtick before it, or single quotes around the whole: it is PowerShell",
    ),
    "unquoted *, ? or […] that match no file": (
        re.compile(r"^(?:zsh|\(eval\)):\S*:? no matches found: ", re.MULTILINE),
        "the same in quotes, as zsh runs nothing else",
    ),
    "unquoted words that begin with =": (
        re.compile(r"^(?:zsh|\(eval\)):\S*:? =\S* not found$", re.MULTILINE),
        "the same in quotes, as zsh looks for a program of that name",
    ),
    "sed -i without a suffix": (
        re.compile(r"^sed: 1: \S+: (?:invalid command|extra characters|undefined label)"
                   r"|sed: -I or -i may not", re.MULTILINE), "sed -i ''",
    ),
    "grep -P": (re.compile(r"^grep: invalid option -- P", re.MULTILINE), "grep -E"),
    "unquoted ( or ) in a path": (
        re.compile(r"^.*The term '([\w.+-]+)' is not recognized(?=[^§]*\n§ [^§]*[\\/]\(\1\))"
                   r"|syntax error near unexpected token [`']\('(?=[^§]*\n§ [^§]*/\([\w.-]+\))"
                   r"|^(?:zsh|\(eval\)):\S*:? (?:unknown file attribute|number expected)",
                   re.MULTILINE), "the path in quotes",
    ),
    "a path with [ and ] given to Get-Content or another cmdlet": (
        re.compile(r"object at the specified path .*\[.*\].* does not exist"),
        "the path behind -LiteralPath, in quotes",
    ),
    "$_ in double quotes behind powershell -Command": (
        re.compile(r"(?:is not recognized as|ParserError|expression was expected)"
                   r"(?=[^§]*\n§ [^§]*\b(?:powershell|pwsh)(?:\.exe)? [^\"]*\"[^\"]*\$_\b)"),
        "the command in single quotes, as the shell around it puts its own $_ there",
    ),
    "--include=\"*.{a,b}\" of grep": (
        re.compile(r"\A(?:Exit code 1)?\n§ [^§]*\bgrep\b[^|;&]*"
                   r"--(?:in|ex)clude[ =][\"'][^\"'\s]*\{[^\"'\s]*,"),
        "one --include for each kind, as nothing expands { } in quotes",
    ),
    "Get-Content with -TotalCount and -Tail together": (
        re.compile(r"TotalCount and Tail cannot be used together|TailAndHeadCannotCoexist"),
        "Get-Content FILE | Select-Object -Skip N -First M",
    ),
    "a quoted path that ends with \\": (
        re.compile(r"unexpected EOF while looking for matching [`']\"'"
                   r"(?=[^§]*\n§ [^§]*\b[A-Za-z]:\\[^\"\n]*\\\"(?:[\s;&|)]|\Z))"),
        "the path without the last \\, or with /",
    ),
    "unquoted paths with \\": (
        re.compile(r"\bcd: (?:\$')?[A-Za-z]:[^\\/].*: No such file(?=[^§]*\n§ [^§]*\b[A-Za-z]:\\)"),
        "the path in quotes, or with /",
    ),
    "options that begin with /": (
        re.compile(r"^\S+: cannot access '/[A-Za-z]{1,2}'|unrecognized or incomplete command line"
                   r"(?=[^§]*\n§ [^§]* /[a-z]+\b)|Invalid argument/option - '[A-Z]:/",
                   re.MULTILINE),
        "the same in PowerShell or behind cmd //c, as this shell takes them for paths",
    ),
    "what is written for PowerShell (if ($…) { … }, 2>$null)": (
        re.compile(r"syntax error near unexpected token [`']\{'"
                   r"(?=[^§]*\n§ [^§]*(?:2>\$null|\(\$[\w?]))"),
        "if …; then …; fi and 2>/dev/null, as it is bash",
    ),
    "letters that the console's code page lacks, printed by Python": (
        re.compile(r"UnicodeEncodeError: '(?:charmap|gbk|cp\d+)' codec can't encode"),
        "PYTHONIOENCODING=utf-8 before the command",
    ),
    "sudo, which asks for a password": (
        re.compile(r"^sudo: (?:a terminal is required|a password is required|no tty present)",
                   re.MULTILINE),
        "what needs root collected in one script, for the user to run in a terminal",
    ),
    "pkill -f beside other commands, whose line it matches": (
        re.compile(r"\AExit code 14[34]\s*\n§ [^§]*\bpkill -f "),
        "pkill -f in a call of its own, with a pattern that does not match itself ([n]ame)",
    ),
    "git in a folder that belongs to another user": (
        re.compile(r"^fatal: detected dubious ownership", re.MULTILINE),
        "git config --global --add safe.directory FOLDER, once",
    ),
    "commits while git knows no name and address": (
        re.compile(r"\*\*\* Please tell me who you are|^fatal ?: empty ident name"
                   r"|^fatal ?: (?:unable to auto-detect email|impossible de d\S+tecter automat)",
                   re.MULTILINE),
        "git config user.name and user.email first, as the user says",
    ),
    "signed commits while what signs them does not answer": (
        re.compile(r"^error: (?:1Password: .*|gpg failed to sign the data.*)"
                   r"|agent refused operation", re.MULTILINE),
        "the same once the user has unlocked or mended it; not a commit without its signature",
    ),
    "paths from the project's root, in a folder below it": (
        re.compile(r"\b(?:cd: |cannot access '|can't read |pathspec '|open directory '"
                   r"|(?:ls|cat|sed|grep|rg|head|wc|find): '?)(?P<within>[\w.@+-]+)(?=[/':])"
                   r".*(?:No such file|did not match any)"),
        "the whole path, or cd to the root first: the shell stays where the last cd went",
    ),
    "psql -U of another user through the socket": (
        re.compile(r"FATAL: +Peer authentication failed for user"),
        "sudo -u USER psql, or -h localhost with the password",
    ),
    "Git Bash itself, which cannot start programs": (
        re.compile(r"^Command failed: cygpath|\bdofork: child -1|cygheap read copy failed",
                   re.MULTILINE),
        "PowerShell or cmd, as this Bash breaks at random",
    ),
    "any command while its own folder below /tmp cannot be made": (
        re.compile(r"^EACCES: permission denied, mkdir '/tmp/", re.MULTILINE),
        "the agent started with TMPDIR in a folder that it may write to; a command is too late",
    ),
}  # fmt: skip
"""By what is not taken: how it shows, and what works. Behind what was printed stands `§` with the
command; what is `within` a sign has to begin with the folder that the shell was in."""
ASKS_AT_TIMES = {"sudo, which asks for a password": "sudo"}
"""What is taken where its program runs, as elsewhere no password is asked for."""
STUB = re.compile(r"Python was not found|\AExit code:? (?:49|9009)\b")
"""How the program ends that Windows has in the place of Python."""


def not_taken(call: ToolCall, folder: str | None = "") -> Iterator[tuple[str, str]]:
    """What a shell did not take of a call that failed, found nothing or printed little else, each
    with the line that says so; `folder` is where in the project the shell was."""
    said = uncoloured(call.result[:_MOST_LETTERS]).strip()
    if not call.failed:  # it may have been hidden by a pipe
        silent, first = says_nothing(said), said.partition("\n")[0]
        if not silent and (said.count("\n") >= _FEW_LINES or ": " not in first):
            return  # mostly, and soon
        said = "" if silent else first
    text = f"{said}\n§ {command_of(call)[:_MOST_LETTERS]}"
    for name, (sign, _) in SHELL_TAKES.items():
        found = sign.search(text)
        within = found.groupdict().get("within") if found else None
        if found and within in (None, (folder or "").partition("/")[0]):
            begins = text.rfind("\n", 0, found.start() + 1) + 1
            line = text[begins : text.find("\n", found.end()) % (len(text) + 1)]
            line = line.partition("§ ")[0].strip(" |\n")
            yield name, "no output" if line in ("", "Exit code 1") else line
