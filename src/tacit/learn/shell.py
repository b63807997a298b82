"""A shell text as the simple commands in it: words without quotes, redirections and here-documents.

Reads what agents type, not all that a shell may accept: what it cannot make sense of comes out as
words that nobody takes for a program. Never raises.
"""

import re

_MOST = 20_000
_HERE = re.compile(r"<<(-?)[ \t]*(['\"]?)([A-Za-z_][\w.-]*)\2")
_REDIRECT = re.compile(r"&>>?|<<<|>>|>\||[<>]&|<>|[<>]")
_ENDS = re.compile(r"&&|\|\||\|&|;;|[;&|()\n]")
# Words that only build a larger command: the rest of the line is what is done.
_OPENS = {"if", "elif", "then", "else", "do", "while", "until", "!", "{", "time"}
_NO_COMMAND = {"for", "select", "case", "function", "done", "fi", "esac", "}", "[[", "in"}


def simple_commands(text: str) -> list[list[str]]:
    """The commands in `text`, each as its words, in order."""
    reader = _Reader(text[:_MOST].replace("\\\n", " "))
    reader.read()
    return [words for command in reader.commands if (words := _meant(command))]


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
        while at < len(self.text):
            if self.text[at] == "\\" and quote != "'":
                at += 1
            elif self.text[at] == quote:
                return at + 1
            at += 1
        return at

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
