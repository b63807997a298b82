"""What was typed before, kept in the data folder: one JSON string a line, private to the user."""

import json
import os

from tacit.base import paths

_MOST = 1000
_MOST_BYTES = 2_000_000


class History:
    """Earlier inputs, oldest first, and a place in them. A file that cannot be used is not missed:
    history is a comfort, and a full disk must not stop a conversation."""

    def __init__(self, path: str = "") -> None:
        self.path = path or os.path.join(paths.folders().data, "chat-history.jsonl")
        self.entries: list[str] = self._read()
        self._at = len(self.entries)
        self._draft = ""

    def add(self, text: str) -> None:
        """Keep `text`, unless it is what was typed last."""
        if text and (not self.entries or self.entries[-1] != text):
            self.entries.append(text)
            self._append(text)
        self._at = len(self.entries)
        self._draft = ""

    def back(self, now: str) -> str | None:
        """The entry before the place; None at the beginning. `now` is what stands there."""
        if self._at == 0:
            return None
        if self._at == len(self.entries):
            self._draft = now
        self._at -= 1
        return self.entries[self._at]

    def forward(self) -> str | None:
        """The entry after the place, and at last what was being typed; None at the end."""
        if self._at >= len(self.entries):
            return None
        self._at += 1
        return self._draft if self._at == len(self.entries) else self.entries[self._at]

    @property
    def browsing(self) -> bool:
        return self._at < len(self.entries)

    def _read(self) -> list[str]:
        try:
            with open(self.path, "rb") as file:
                lines = file.read(_MOST_BYTES + 1).splitlines()
        except OSError:
            return []
        found = [text for text in map(_decoded, lines[-2 * _MOST :]) if text]
        if len(found) > _MOST or len(lines) > 2 * _MOST:
            found = found[-_MOST:]
            self._rewrite(found)
        return found

    def _append(self, text: str) -> None:
        line = json.dumps(text).encode() + b"\n"
        try:
            os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
            file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(file, line)
            finally:
                os.close(file)
        except OSError:
            pass

    def _rewrite(self, entries: list[str]) -> None:
        from tacit.base.errors import Unwritable
        from tacit.base.files import write_atomic

        data = b"".join(json.dumps(text).encode() + b"\n" for text in entries)
        try:
            write_atomic(self.path, data, durable=False)
        except Unwritable:
            pass


def _decoded(line: bytes) -> str:
    try:
        text = json.loads(line)
    except ValueError:
        return ""  # cut off, or not ours
    return text if isinstance(text, str) else ""
