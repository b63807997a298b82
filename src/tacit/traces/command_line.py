"""A command line as simple commands: words without quotes, redirections and here-documents.

With each stands what joins it to the next. It reads what agents type, not all that a shell accepts,
and never raises. What a command is for is `command_purposes.py`'s.
"""

import re
from functools import lru_cache

import msgspec

from tacit.base.patterns import late_pattern

_MOST = 20_000
_HERE = late_pattern(r"<<(-?)[ \t]*(['\"]?)([A-Za-z_][\w.-]*)\2")
_REDIRECT = late_pattern(r"&>>?|<<<|>>|>\||[<>]&|<>|[<>]")
_PLAIN = late_pattern(r"[A-Za-z0-9_./:=,+@%~^-]+")
"""What stands for itself wherever it stands."""
_STOPS = {"'": late_pattern("'"), '"': late_pattern(r'["\\]'), "`": late_pattern(r"[`\\]")}
"""What ends a string, or stands before a character that does not."""
_ENDS = late_pattern(r"&&|\|\||\|&|;;|[;&|()\n]")
# Words that only build a larger command: the rest of the line is what is done.
_OPENS = {"if", "elif", "then", "else", "do", "while", "until", "!", "{", "time"}
_NO_COMMAND = {"for", "select", "case", "function", "done", "fi", "esac", "}", "[[", "in"}


class SimpleCommand(msgspec.Struct, frozen=True):
    """One command of a line: its words, and what joins it to the next (`&&`, `|`, `;`, …)."""

    words: tuple[str, ...]
    joined: str = ""


def joined_commands(text: str) -> list[SimpleCommand]:
    """The commands in `text`, in order."""
    return list(_joined_commands(text))


@lru_cache(maxsize=1024)
def _joined_commands(text: str) -> tuple[SimpleCommand, ...]:
    """The same; what is asked about one call is asked in a row."""
    reader = _Reader(text[:_MOST].replace("\\\n", " "))
    reader.read()
    found: list[SimpleCommand] = []
    for command, end in zip(reader.commands, [*reader.ends, ""], strict=True):
        if words := _meant(command):
            found.append(SimpleCommand(tuple(words), end))
        elif found and not found[-1].joined.strip("()"):  # `(a) && b`
            found[-1] = SimpleCommand(found[-1].words, end)
    return tuple(found)


def simple_commands(text: str) -> list[list[str]]:
    """The commands in `text`, each as its words, in order."""
    return [list(command.words) for command in joined_commands(text)]


def _meant(words: list[str]) -> list[str]:
    while words and words[0] in _OPENS:
        words = words[1:]
    return [] if words and words[0] in _NO_COMMAND else words


class _Reader:
    """One pass over the text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.commands: list[list[str]] = [[]]
        self.ends: list[str] = []
        self.word: list[str] | None = None
        self.skip = False
        """The next word is where a redirection leads."""
        self.here: list[str] = []
        """Here-documents that begin after this line."""

    def read(self) -> None:
        while self.at < len(self.text):
            self._step()
        self._end_word()

    def _step(self) -> None:
        if plain := _PLAIN.match(self.text, self.at):
            self._add(plain[0])
            self.at = plain.end()
            return
        c = self.text[self.at]
        if c in " \t\r":
            self._end_word()
            self.at += 1
        elif c == "\\":
            self._add(self.text[self.at + 1 : self.at + 2])
            self.at += 2
        elif c in "'\"`" or self.text.startswith(("$(", "${"), self.at):
            self._quoted(c)
        elif c == "#" and self.word is None:
            end = self.text.find("\n", self.at)
            self.at = len(self.text) if end < 0 else end
        elif self.text.startswith(("<(", ">("), self.at):
            self._add("<>")
            self.at = self._close(self.at + 1)
        elif not self._redirection() and not self._end():
            self._add(c)
            self.at += 1

    def _add(self, text: str) -> None:
        self.word = self.word or []
        self.word.append(text)

    def _end_word(self) -> None:
        if self.word is not None and not self.skip:
            self.commands[-1].append("".join(self.word))
        self.skip = self.skip and self.word is None
        self.word = None

    def _quoted(self, c: str) -> None:
        if c == "$":
            end = self._close(self.at + 1)
            self._add(self.text[self.at : end])
        else:
            end = self._string(self.at)
            inside = self.text[self.at + 1 : end - 1]
            if c == '"':
                inside = re.sub(r'\\(["\\$`])', r"\1", inside)
            self._add(f"`{inside}`" if c == "`" else inside)
        self.at = end

    def _string(self, at: int) -> int:
        """Where the string that begins at `at` is over."""
        quote = self.text[at]
        at += 1
        while found := _STOPS[quote].search(self.text, at):
            if found[0] == quote:
                return found.end()
            at = found.end() + 1
        return max(at, len(self.text))

    def _close(self, at: int) -> int:
        """Behind the bracket that closes the one at `at`."""
        opening, closing = self.text[at], ")" if self.text[at] == "(" else "}"
        depth = 0
        while at < len(self.text):
            c = self.text[at]
            if c in "'\"":
                at = self._string(at)
                continue
            depth += (c == opening) - (c == closing)
            at += 1
            if depth == 0:
                return at
        return at

    def _redirection(self) -> bool:
        if here := _HERE.match(self.text, self.at):
            self.here.append(here[3])
            self.at = here.end()
            return True
        found = _REDIRECT.match(self.text, self.at)
        if found is None:
            return False
        if self.word is not None and "".join(self.word).isdigit():
            self.word = None  # 2>
        self._end_word()
        self.skip = True
        self.at = found.end()
        return True

    def _end(self) -> bool:
        found = _ENDS.match(self.text, self.at)
        if found is None:
            return False
        self._end_word()
        self.skip = False
        self.commands.append([])
        self.ends.append(found[0])
        self.at = found.end()
        if found[0] == "\n":
            for name in self.here:
                self._past(name)
            self.here = []
        return True

    def _past(self, name: str) -> None:
        """Behind the here-document that ends with the line `name`."""
        while self.at < len(self.text):
            line, newline, _ = self.text[self.at :].partition("\n")
            self.at += len(line) + len(newline)
            if line.strip() == name:
                return
