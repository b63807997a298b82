"""What a command is for: the program and what it is told to do, without values and order.

Two commands with the same purpose are tries at the same thing; that is what learning counts.
"""

import re
import shlex

# Parts of a command line that only prepare the ground for the rest.
_PREPARES = {
    "cd", "export", "set", "source", ".", "read", "echo", "printf", "true", "test", "[", "mkdir",
    "pwd", "sleep", "unset", "alias", "trap", "umask", "wait",
}  # fmt: skip
_LOOKS = {
    "ls", "cat", "head", "tail", "less", "wc", "which", "type", "file", "stat", "find", "rg",
    "grep", "sed", "awk", "sort", "uniq", "tree", "env", "date", "whoami", "id", "du", "df",
}  # fmt: skip
_WRAPPERS = {
    "sudo", "env", "time", "nice", "nohup", "command", "exec", "timeout", "uv", "poetry", "pipenv",
    "bundle", "npx", "pnpx", "bunx",
}  # fmt: skip
_INTERPRETERS = re.compile(
    r"(?:python|python3(?:\.\d+)?|node|bash|sh|zsh|ruby|perl|deno|bun|php|Rscript)$"
)
_SPLIT = re.compile(r"\s*(?:&&|\|\||[;\n|])\s*")
_ASSIGN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_:.-]*$")


def purpose(command: str) -> str:
    """E.g. `build.py`, `npm run build`, `git push`; empty where a command only looks around."""
    found = ""
    for part in _SPLIT.split(command):
        words = _words(part)
        if words and words[0] not in _PREPARES and words[0] not in _LOOKS:
            found = _name(words) or found
    return found


def _words(part: str) -> list[str]:
    try:
        words = shlex.split(part, comments=True)
    except ValueError:
        words = part.split()
    while words and (_ASSIGN.match(words[0]) or words[0] in _WRAPPERS or words[0] == "run"):
        words = words[1:]
        while words and words[0].startswith("-"):
            words = words[1:]
        if words and re.fullmatch(r"[\d.]+[smh]?", words[0]):
            words = words[1:]  # timeout 30
    return words


def _name(words: list[str]) -> str:
    program = words[0].rsplit("/", 1)[-1]
    rest = words[1:]
    if _INTERPRETERS.match(program):
        if "-c" in rest[:1] or "-e" in rest[:1]:
            return ""
        if rest[:1] == ["-m"] and len(rest) > 1:
            return rest[1]
        script = next((word for word in rest if not word.startswith("-")), "")
        return script.rsplit("/", 1)[-1]
    if "." in program or words[0].startswith("./"):
        return program
    told = []
    for word in rest:
        if word.startswith("-") or not _WORD.match(word) or "/" in word:
            break
        told.append(word)
        if len(told) == (2 if told[0] in ("run", "exec", "compose") else 1):
            break
    return " ".join([program, *told])


def slug(name: str) -> str:
    """A purpose as part of a skill's name."""
    text = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return text[:40].strip("-")


def abstracted(commands: list[str]) -> str:
    """One command for several with the same purpose: words in which they differ become `<…>`."""
    split = [command.split() for command in commands]
    longest = max(split, key=len)
    if any(len(words) != len(longest) for words in split):
        return commands[-1]
    out = []
    for at, word in enumerate(longest):
        same = {words[at] for words in split}
        out.append(word if len(same) == 1 else _blank(word))
    return " ".join(out)


def _blank(word: str) -> str:
    name, equals, _ = word.partition("=")
    return f"{name}=<value>" if equals else "<value>"
