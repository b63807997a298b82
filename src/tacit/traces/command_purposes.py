"""What a command is for: the program and what it is told to do, without values and order.

Two commands with the same purpose are attempts at the same thing; that is what learning counts.
Purposes that serve the same end under different programs (`pytest`, `bin/test`) are of one class.
How a command line is read is `command_line.py`'s.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from tacit.base.patterns import late_pattern
from tacit.traces.command_line import SimpleCommand, simple_commands

# Parts of a command line that only prepare the ground for the rest.
_PREPARES = {
    "cd", "export", "set", "source", ".", "read", "echo", "printf", "true", "false", "test", "[",
    "mkdir", "pwd", "pushd", "popd", "sleep", "unset", "alias", "trap", "umask", "wait", "exit",
    "return", "local", "declare", "eval", "shift", "break", "continue", ":",
}  # fmt: skip
_LOOKS = {
    "ls", "cat", "nl", "head", "tail", "less", "more", "wc", "which", "type", "file", "stat",
    "find", "rg", "grep", "egrep", "fgrep", "sed", "awk", "sort", "uniq", "cut", "tr", "jq", "tree",
    "date", "whoami", "id", "du", "df", "ps", "top", "diff", "xxd", "strings", "man", "history",
    "hostname", "uname", "basename", "dirname", "realpath", "readlink",
}  # fmt: skip
# Done to files and processes everywhere, and no skill is needed for it.
_CHORES = {
    "cp", "mv", "rm", "rmdir", "touch", "ln", "chmod", "chown", "kill", "pkill", "tee", "xargs",
    "clear",
}  # fmt: skip
_ONLY_LOOK = {
    "git": {
        "status", "diff", "log", "show", "branch", "blame", "rev-parse", "ls-files", "remote",
        "cat-file", "merge-base", "show-ref", "rev-list", "ls-remote", "ls-tree", "describe",
        "for-each-ref", "check-ignore", "name-rev", "reflog", "grep",
    },
    "docker": {"ps", "logs", "images", "inspect", "version"},
    "go": {"version", "env", "doc", "list"}, "kubectl": {"get", "describe", "logs", "version"},
    "pip": {"list", "show", "freeze"}, "npm": {"ls", "list", "view", "outdated"},
    "nvm": {"use"}, "fnm": {"use"}, "conda": {"activate"},  # they prepare the ground
}  # fmt: skip
# PowerShell's own verbs: they look, move and filter, as the programs above do.
_CMDLET = late_pattern(r"(?!Invoke|Install|Publish|Update)[A-Z][A-Za-z]+-[A-Z][A-Za-z]+")
# Wrappers, and their options that take a word.
_WRAPPERS = {
    "sudo": {"-u", "-g", "-p", "-h", "-C"}, "env": {"-u", "-C"}, "nice": {"-n"}, "nohup": set(),
    "command": set(), "exec": {"-a"}, "timeout": {"-k", "-s"}, "time": {"-f", "-o"}, "npx": {"-p"},
    "pnpx": set(), "bunx": set(), "corepack": set(), "stdbuf": {"-i", "-o", "-e"},
    "xvfb-run": set(),
}  # fmt: skip
# Wrappers by their first word: `uv run pytest`.
_RUNNERS = {
    "uv": ("run",), "poetry": ("run",), "pipenv": ("run",), "pdm": ("run",), "rye": ("run",),
    "hatch": ("run",), "bundle": ("exec",), "mise": ("exec", "x"), "fnm": ("exec",),
}  # fmt: skip
_RUNNER_VALUES = {
    "--with",
    "--python",
    "-p",
    "--env-file",
    "--extra",
    "--group",
    "--directory",
    "--using",
}
_SHELLS = {"bash", "sh", "zsh", "dash", "ksh"}
_INTERPRETERS = late_pattern(r"(?:pythonw?|python[23](?:\.\d+)?|node|ruby|perl|deno|php|Rscript)")
# Programs with subcommands, and their options that take a word before those.
_WITH_SUBCOMMANDS = {
    "git": {"-C", "-c", "--git-dir", "--work-tree"}, "make": {"-C", "-f"}, "go": {"-C"},
    "docker": {"-H", "--context", "-f", "-p", "--file", "--profile", "--env-file"},
    "podman": set(), "kubectl": {"-n", "--namespace", "--context"}, "helm": {"-n"}, "cargo": set(),
    "npm": {"--prefix", "-w", "--workspace", "-C"}, "pnpm": {"-C", "--filter", "-F", "--dir"},
    "yarn": {"--cwd"}, "bun": {"--cwd"}, "pip": set(), "terraform": set(), "just": {"-f"},
    "gh": {"-R", "--repo"}, "aws": {"--profile", "--region"}, "gcloud": {"--project"}, "az": set(),
    "mise": {"-C", "--cd"}, "mvn": {"-f", "-pl"}, "mvnw": {"-f", "-pl"}, "gradle": {"-p"},
    "gradlew": {"-p"},
    "dotnet": set(), "manage.py": set(), "artisan": set(), "systemctl": set(), "apt-get": set(),
}  # fmt: skip
_SAME = {"pip3": "pip", "docker-compose": "docker compose", "apt": "apt-get"}
_TWO = {"run", "exec", "compose", "pr", "issue", "release", "workflow", "repo"}
_TWO_WORDS = {"aws", "gcloud", "az"}
_ASSIGN = late_pattern(r"\$?[A-Za-z_][A-Za-z0-9_]*\+?=")
_WORD = late_pattern(r"[A-Za-z][A-Za-z0-9_:-]{0,39}")
_PROGRAM = late_pattern(r"[A-Za-z0-9_][A-Za-z0-9_.+@-]{0,59}")
_DEPTH = 3


WorkClass = Literal["test", "lint", "format", "types", "build", "check"]
"""What is done to be sure of one's work, under whatever program."""

_CLASS_WORDS: dict[WorkClass, tuple[str, ...]] = {
    "types": (
        "type-?checks?", "types", "tsc", "tsgo", "vue-tsc", "svelte-check", "mypy", "pyright",
        "pyre", "sorbet",
    ),
    "lint": (
        "lint", "linter", "linting", "eslint", "flake8", "pylint", "ruff check", "clippy", "vet",
        "shellcheck", "rubocop", "golangci-lint", "biome", "stylelint", "ktlint", "oxlint",
        "hadolint", "swiftlint", "analy[sz]e", "credo", "ultracite", "markdownlint", "yamllint",
        "actionlint", "djlint", "sqlfluff", "statix", "knip",
    ),
    "format": (
        "fmt", "format", "prettier", "black", "gofmt", "ruff format", "rustfmt", "isort",
        "clang-format", "oxfmt", "dprint", "shfmt", "stylua", "taplo", "gofumpt", "goimports",
        "nixfmt", "alejandra", "treefmt",
    ),
    "test": (
        "tests?", "pytest", "jest", "vitest", "rspec", "mocha", "tox", "nox", "ctest", "phpunit",
        "unittest", "e2e", "playwright", "cypress", "spec", "nextest", "testing", "runtests",
        "bats", "gotestsum",
    ),
    "build": (
        "build", "(?<!py_)compile", "bundle", "webpack", "make", "vite", "assemble", "cmake",
        "ninja",
    ),
    "check": (
        "checks?", "verify", "validate", r"(?:ba|z|da|k)?sh -n", "php -l", "(?:ruby|perl) -c",
        "py_compile", "compileall", r"(?<!npm )ci", r"pre-commit(?! (?:un)?install)",
    ),
}  # fmt: skip
_SYNTAX = late_pattern(r"sh -n$|^(?:node --check|php -l|ruby -c|perl -c|py_compile|compileall)$")
_CLASSES = {
    name: late_pattern(rf"(?:^|[\s/:_.-])(?:{'|'.join(words)})(?:$|[\s/:_.-])", re.IGNORECASE)
    for name, words in _CLASS_WORDS.items()
}


@lru_cache(maxsize=1024)
def work_class(name: str) -> WorkClass | None:
    """The class of the purpose `name`; None where it is of no class.

    Of a server's tool its own name counts: what a server is called says nothing of one tool.
    """
    own = name.rpartition("__")[2] if name.startswith("mcp__") else name
    own = re.sub(r" --filter \S+", "", own)  # nor does what a package is called
    return next((found for found, words in _CLASSES.items() if words.search(own)), None)


def is_syntax_check(name: str) -> bool:
    """Whether the purpose `name` is only to see whether scripts could run."""
    return bool(_SYNTAX.search(name))


def purpose(command: str, depth: int = 0) -> str:
    """E.g. `build.py`, `npm run build`, `git push`; empty where a command only looks around."""
    return next(reversed(purposes(command, depth)), "")


def purposes(command: str, depth: int = 0) -> list[str]:
    """All that a command line is for, in order, each once."""
    named = (purpose_of(words, depth) for words in simple_commands(command))
    return list(dict.fromkeys(name for name in named if name))


def purpose_of(words: Iterable[str], depth: int = 0) -> str:
    """The purpose of one simple command."""
    return _purpose_of(tuple(words), depth)


@lru_cache(maxsize=1024)
def _purpose_of(words: tuple[str, ...], depth: int) -> str:
    """The same; agents type the same commands again, and each is asked about in several places."""
    return _name(_unwrapped(list(words)), depth)


def program_of(words: Iterable[str]) -> str:
    """The program that a simple command runs, without its folder; empty where none is named."""
    meant = _unwrapped(list(words))
    return meant[0].rsplit("/", 1)[-1] if meant else ""


def _unwrapped(words: list[str]) -> list[str]:
    """Without assignments and without what only runs another program."""
    while words:
        first = words[0]
        if _ASSIGN.match(first):
            words = words[1:]
        elif first in _WRAPPERS:
            words = _options(words[1:], _WRAPPERS[first])
            if first == "timeout":
                words = words[1:]  # how long
        elif first in _RUNNERS and words[1:2] and words[1] in _RUNNERS[first]:
            own = first in ("mise", "fnm") and "--" in words
            words = words[words.index("--") :] if own else words[2:]
            words = _options(words, _RUNNER_VALUES)
        else:
            return words
    return []


_NO_MATTER = {"timeout", "nice", "nohup", "time", "env", "command", "exec", "stdbuf"}
_SETS = {"source", ".", "export"}


def manner(parts: Sequence[SimpleCommand], at: int, project: str = "") -> tuple[str, ...]:
    """How part `at` of a command line is called, beside what it is for: what is set before it, what
    runs it, where its program lies, a here-document, its options, each with a word behind it."""
    words = list(parts[at].words)
    meant = _unwrapped(words)
    found = [_prepares(part.words, project) for part in parts[:at] if _sets(part.words)]
    runs = words[: len(words) - len(meant)]
    found += [f"{word.partition('=')[0]}=" for word in runs if _ASSIGN.match(word)]
    by = [
        word for before, word in pairwise(["", *runs])
        if word in {*_WRAPPERS, *_RUNNERS} - _NO_MATTER or word in _RUNNERS.get(before, ())
    ]  # fmt: skip
    found += [" ".join(by).replace("mise x", "mise exec")] if by else []
    folder, _, _ = meant[0].rpartition("/") if meant else ("", "", "")
    found += [f"{folder.removeprefix('./')}/"] if folder and folder[0] not in "/~$" else []
    if meant[1:2] == ["-m"] and _INTERPRETERS.fullmatch(meant[0]):
        found.append(f"{meant[0]} -m")
    found += ["<<"] if any("<<" in word for word in meant) else []
    for flag, value in pairwise([*meant[1:], "-"]):
        if re.fullmatch(r"--?[A-Za-z][\w-]*(?:=.*)?", flag):
            found.append(flag.partition("=")[0])
            found += [f"{flag} {value}"] if _WORD.fullmatch(value) else []
    return tuple(dict.fromkeys(found))


def _sets(words: tuple[str, ...]) -> bool:
    return words[0] in _SETS or words[1:2] in (("use",), ("activate",))


def _prepares(words: tuple[str, ...], project: str) -> str:
    """What stands before a command so that it works: `source .env`, `export NAME=`."""
    given = _plain_word(words[1], project) if len(words) > 1 else ""
    if words[0] not in _SETS:
        return " ".join(words[:2]) if words[0] in _ONLY_LOOK else ""
    if given.endswith("nvm.sh"):
        return "source ~/.nvm/nvm.sh"
    if words[0] == "export":
        return f"export {given.partition('=')[0]}="
    return f"source {given}" if given[:1] not in "/~$" else ""


def _options(words: list[str], with_value: set[str]) -> list[str]:
    """Behind the options at the start of `words`."""
    while words and words[0].startswith("-"):
        words = words[2:] if words[0] in with_value else words[1:]
    return words


def _name(words: list[str], depth: int) -> str:
    if not words or {"--version", "--help", "-V"} & set(words[1:3]):
        return ""
    folder, _, program = words[0].removesuffix(".exe").rpartition("/")
    rest = words[1:]
    if program in _PREPARES or program in _LOOKS or program in _CHORES:
        # `bin/test` is a script of the project, `/usr/bin/test` and `test` are not.
        own = re.fullmatch(r"[\w.@+-][\w./@+-]*", folder) and _PROGRAM.fullmatch(program)
        return f"{folder.removeprefix('./')}/{program}" if own else ""
    if program in _SHELLS or _INTERPRETERS.fullmatch(program):
        return _interpreted(program, rest, depth)
    if not _PROGRAM.fullmatch(program) or _CMDLET.fullmatch(program):
        return ""
    name = _SAME.get(program, program)
    if depth < _DEPTH and (handed := _handed_on(name, rest, depth)):
        return handed
    if name not in _WITH_SUBCOMMANDS and rest and rest[0] in _WITH_SUBCOMMANDS and depth < _DEPTH:
        # A program that runs another: `rtk bun run test`.
        return " ".join(filter(None, (name, _name(rest, depth + 1) or rest[0])))
    if "." in name and name not in _WITH_SUBCOMMANDS:
        return name  # a script: what it is given are values
    if name in _PACKAGES and rest[:1] == ["node"]:
        return _name(rest, depth + 1)
    if name == "bun" and rest and _SCRIPT.fullmatch(rest[0]):
        return _interpreted(name, rest, depth)
    return _told(name, rest)


def _told(name: str, rest: list[str]) -> str:
    """A program with what it is told to do; empty where it only looks around."""
    subcommands = _subcommands(name, rest)
    if name == "pnpm" and work_class(subcommands[0] if subcommands else "") in _ALSO_RUN:
        subcommands = ["run", subcommands[0]]  # `pnpm lint` is short for it
    if name in _PACKAGES and subcommands and (package := _package(rest)):
        subcommands = ["--filter", package, *subcommands]
    asks = subcommands == ["api"] and "graphql" in rest
    if asks and (changes := _MUTATION.search(" ".join(rest))):
        return f"{name} api {changes[1]}"
    if subcommands and subcommands[0] in _ONLY_LOOK.get(name, ()):
        return ""
    return " ".join([name, *subcommands])


_WINDOWS_SHELLS = {"pwsh", "powershell", "cmd"}
_GIVEN = late_pattern(r"-c(?:ommand)?|/c", re.IGNORECASE)
_CONTAINER_VALUES = {
    "-e", "--env", "--env-file", "-u", "--user", "-w", "--workdir", "-v", "--volume", "--name",
    "-p", "--publish", "--network", "--entrypoint", "--mount", "--platform",
}  # fmt: skip
_HAND_ON = {
    "ssh": {"-p", "-i", "-o", "-l", "-F", "-J"}, "wsl": {"-d", "-u", "--cd"},
    "nix": {"-c", "--command"}, "nix-shell": {"--run"}, "devbox": {"--"}, "vagrant": {"-c"},
    "kubectl": {"--"}, "oc": {"--"},
}  # fmt: skip


def _handed_on(name: str, rest: list[str], depth: int) -> str:
    """The purpose of a command that another shell is given, or, where it checks something, another
    place."""
    if name.casefold() in _WINDOWS_SHELLS:
        given = next((at for at, word in enumerate(rest) if _GIVEN.fullmatch(word)), len(rest))
        return purpose(" ".join(rest[given + 1 :]), depth + 1)
    carried = _carried([*name.split(), *rest])
    text = len(carried) == 1
    inside = purpose(carried[0], depth + 1) if text else purpose_of(carried, depth + 1)
    return " ".join([name, *_subcommands(name, rest), inside]) if work_class(inside) else ""


def _carried(words: list[str]) -> list[str]:
    """The command that is handed on to another place: a container, a machine, an environment."""
    program, rest = words[0], words[1:]
    if program in ("docker", "podman"):
        rest = _options(rest, _WITH_SUBCOMMANDS["docker"])
        rest = _options(rest[1:], _WITH_SUBCOMMANDS["docker"]) if rest[:1] == ["compose"] else rest
        runs = rest[:1] in (["exec"], ["run"])
        return _options(rest[1:], _CONTAINER_VALUES)[1:] if runs else []
    if program not in _HAND_ON:
        return []
    if program in ("ssh", "wsl"):
        return _options(rest, _HAND_ON[program])[program == "ssh" :]
    return rest[at + 1 :] if (at := _first(rest, _HAND_ON[program])) is not None else []


def _first(words: list[str], wanted: set[str]) -> int | None:
    return next((at for at, word in enumerate(words) if word in wanted), None)


_MUTATION = late_pattern(r"\bmutation\b[^{]{0,400}\{\s*(?:\w+\s*:\s*)?([a-z]+[A-Z]\w{2,50})\s*\(")
"""What a call of an API by a query changes: `addComment`."""


_ALSO_RUN = ("types", "lint", "format", "check")
_PACKAGES = {"npm", "pnpm", "yarn"}
_SCRIPT = late_pattern(r"[\w@./-]+\.[cm]?[jt]sx?")
_OF_PACKAGE = r"(?:-\S+ )*?(?:--filter|-F|-w|--workspace)[ =](@?[\w.-]+(?:/[\w.-]+)?) "


def _package(rest: list[str]) -> str:
    """The one package of several that a command is for."""
    found = re.match(_OF_PACKAGE, " ".join(rest))
    return found[1] if found else ""


_READS_ONLY = {"node": ("--check",), "php": ("-l",), "ruby": ("-c",), "perl": ("-c",)}
"""Options by which an interpreter only looks whether it could run a script."""


def _interpreted(program: str, rest: list[str], depth: int) -> str:
    """The script or the module that an interpreter runs; a shell's text is read in its turn."""
    while rest and rest[0].startswith("-"):
        flag = rest[0]
        if program in _SHELLS and re.fullmatch(r"-[a-z]*c", flag):
            return purpose(rest[1], depth + 1) if len(rest) > 1 and depth < _DEPTH else ""
        if flag in _READS_ONLY.get(program, ()) or (program in _SHELLS and flag == "-n"):
            return f"{program} {flag}"
        if flag in ("-c", "-e", "-p", "-"):
            return ""
        if flag == "--run" and program == "node":
            return " ".join(["node", *rest[:2]])
        if flag == "-m" and program.startswith("python"):
            return _name(rest[1:], depth)
        rest = rest[2:] if flag in ("-W", "-X", "-r", "--require") else rest[1:]
    if program == "deno" and rest[:1] and rest[0] in ("run", "test", "task"):
        return " ".join(["deno", *_subcommands("deno", rest)])
    script = rest[0].rsplit("/", 1)[-1] if rest else ""
    if script in _WITH_SUBCOMMANDS:
        return " ".join([script, *_subcommands(script, rest[1:])])
    return script if _PROGRAM.fullmatch(script) else ""


def _subcommands(program: str, rest: list[str]) -> list[str]:
    """The first words that say what is to be done."""
    words: list[str] = []
    most = 2 if program in _TWO_WORDS else 1
    if program in _WITH_SUBCOMMANDS:
        rest = _options(rest, _WITH_SUBCOMMANDS[program])
    while rest and _WORD.fullmatch(rest[0]) and len(words) < most:
        words.append(rest[0])
        if words[0] in _TWO:
            most = 2
        rest = rest[1:]
        if program in _WITH_SUBCOMMANDS and words[-1] == "compose":
            rest = _options(rest, _WITH_SUBCOMMANDS[program])
        elif program in ("docker", "podman") and words[-1] == "exec":
            rest = _options(rest, {"-e", "--env", "-u", "--user", "-w", "--workdir"})
    return words


def bare_interpreter(words: Sequence[str]) -> str:
    """The interpreter that a simple command only gives a program to, typed in with it."""
    meant = _unwrapped(list(words))
    name = meant[0] if meant and _INTERPRETERS.fullmatch(meant[0]) else ""
    return name if not purpose_of(words) and len(meant) > 1 else ""


def is_everybodys(program: str) -> bool:
    """Whether a program is one that most developers have, by whatever it is told to do."""
    return program in {*_WITH_SUBCOMMANDS, *_SAME, *_RUNNERS, "tmux", "brew"}


_TAKES_TEXT = {
    "-m": "<message>", "--message": "<message>", "-b": "<text>", "--body": "<text>",
    "-t": "<title>", "--title": "<title>", "--notes": "<text>", "--subject": "<text>",
    "-F": "<file>",
}  # fmt: skip
_WITH_MESSAGES = {"git", "gh", "glab", "hub", "hg", "jj", "svn"}
_TAKES_BRANCH = {
    "git": {"-b", "-B", "-c", "-C", "--branch", "--head", "--base"}, "gh": {"-H", "--head"},
    "glab": {"-s", "--source-branch"},
}  # fmt: skip
_REMOTE = late_pattern(r"origin$|https?://|git@")
_MAIN = {"main", "master", "HEAD"}
_ALL_FILES = {".", ":/", "*"}
_VALUES = (
    (late_pattern(r"\bv?\d+\.\d+\.\d+(?:[-+][\w.]+)?\b"), "<version>"),
    (late_pattern(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b"), "<id>"),
    (late_pattern(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b"), "<id>"),
)
_PRIVATE = late_pattern(r"\w*(?:KEY|TOKEN|SECRET|PASS|PWD|URL|DSN|CREDENTIALS?)\w*=")
"""An assignment of what nobody else should see, or of where something lies."""
_LONG_WORD = 60


def plain_form(words: Iterable[str], project: str = "") -> str:
    """A simple command as one would type it, with what is different each time as a variable:
    messages, branches, versions, ids; files of the project as seen from it."""
    given = list(words)
    start = next((at for at, word in enumerate(given) if not _ASSIGN.match(word)), 0)
    if given[start : start + 2] == ["git", "-C"] and "".join(given[start + 2 :])[:1] in "/~$":
        del given[start + 1 : start + 3]  # where a checkout lies
    program, task = (*given[start : start + 2], "", "")[:2]
    found: list[str] = []
    for at, word in enumerate(given):
        before = given[at - 1] if at else ""
        if at > start + 2 and task != "commit" and before in _TAKES_BRANCH.get(program, ()):
            found.append("<branch>" if not word.startswith("/") else word)
        elif program in _WITH_MESSAGES and before in _TAKES_TEXT:
            found.append(_TAKES_TEXT[before])
        elif (program, task) == ("git", "push") and _REMOTE.match(before) and word not in _MAIN:
            found.append(word if re.search(r"^v?\d|[-:$]", word[:1]) else "<branch>")
        elif program in ("gh", "glab") and word.isdigit():
            found.append("<number>")
        elif (program, task) == ("git", "add") and at > start + 1 and _is_file(word):
            found += ["<files>"] if found[-1] != "<files>" else []
        else:
            found.append(_plain_word(word, project))
    return " ".join(found)


def _is_file(word: str) -> bool:
    return not word.startswith("-") and word not in _ALL_FILES


def _plain_word(word: str, project: str) -> str:
    if "=" in word and _PRIVATE.match(word):
        return f"{word.partition('=')[0]}=<value>"
    for pattern, name in _VALUES:
        word = pattern.sub(name, word)
    if project and word.startswith(project.rstrip("/") + "/"):
        word = word[len(project.rstrip("/")) + 1 :]
    if changes := _MUTATION.search(word) if "mutation" in word else None:
        return f"{word.partition('=')[0]}='mutation {{ {changes[1]} … }}'"
    if len(word) > _LONG_WORD and re.search(r"\s", word):
        return "<text>"
    return f'"{word}"' if re.search(r"\s|^$", word) else word
