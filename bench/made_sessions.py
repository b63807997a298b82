"""Sessions as Claude Code writes them, made up: any number, the same for the same seed.

Words are drawn from a vocabulary in which few are frequent and most are rare, as in real texts, and
stand in prompts, answers, commands, files and what programs print. One call in twelve fails.

Those have short results, so that calls and records count for most. Sessions with `listed` lines a
result are more like real ones, of which most is code that was read and searched.
"""

import json
import os
import random
from collections.abc import Iterator

PROJECTS = 20
_TURNS = 6
_FRAMES = (
    ("Bash", "command", "{a} --{b} src/{c}/{d}.py && echo {a}"),
    ("Read", "file_path", "/home/me/work/src/{a}/{b}.py"),
    ("Grep", "pattern", "def {a}_{b}"),
)


class Words:
    """A vocabulary of 20,000 made-up words; the n-th is drawn with a weight of 1/n."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        vowels, rest = "aeiou", "bcdfghklmnprstvz"
        made: dict[str, None] = {}
        while len(made) < 20_000:
            parts = self._random.randint(2, 4)
            pairs = (self._random.choice(rest) + self._random.choice(vowels) for _ in range(parts))
            made["".join(pairs)] = None
        self.all = list(made)
        total, self._sums = 0.0, []
        for place in range(len(self.all)):
            total += 1.0 / (place + 1)
            self._sums.append(total)

    def some(self, count: int) -> list[str]:
        return self._random.choices(self.all, cum_weights=self._sums, k=count)

    def text(self, count: int) -> str:
        words = self.some(count)
        for place in range(9, count, 10):
            words[place] += ".\n" if self._random.random() < 0.4 else ","
        return " ".join(words)

    def listing(self, lines: int) -> str:
        """What a search over code prints."""
        drawn = [self.some(5) for _ in range(lines)]
        return "\n".join(
            f'src/{a}/{b}.py:{at * 7}:    {c}_{d} = self.{e}["{c}"].get({d}_key, f"{b}://{a}/{{{e}}}")'
            for at, (a, b, c, d, e) in enumerate(drawn, 1)
        )

    def chance(self, share: float) -> bool:
        return self._random.random() < share


def write_sessions(
    home: str, count: int, seed: int = 7, turns: int = _TURNS, listed: int = 0
) -> int:
    """Write `count` sessions into `home`, as Claude Code would have; how many bytes they take."""
    words, size = Words(seed), 0
    for number in range(count):
        project = f"-home-me-work-{number % PROJECTS}"
        folder = os.path.join(home, ".claude", "projects", project)
        os.makedirs(folder, exist_ok=True)
        name = f"{number * 2654435761 % 2**32:08x}-0000-4000-8000-{number:012x}"
        lines = [json.dumps(record) for record in _records(name, number, words, turns, listed)]
        text = "\n".join(lines) + "\n"
        size += len(text)
        with open(os.path.join(folder, f"{name}.jsonl"), "w", encoding="utf-8") as file:
            file.write(text)
    return size


def _records(
    session: str, number: int, words: Words, turns: int, listed: int
) -> Iterator[dict[str, object]]:
    said = 0

    def record(kind: str, content: object, **more: object) -> dict[str, object]:
        nonlocal said
        said += 1
        day, minute = number % 28 + 1, said
        return {
            "parentUuid": None, "isSidechain": False, "userType": "external", "type": kind,
            "cwd": f"/home/me/work-{number % PROJECTS}", "sessionId": session, "version": "2.1.0",
            "gitBranch": "main", "uuid": f"{session[:8]}-{said:04d}",
            "timestamp": f"2026-10-{day:02d}T{number % 24:02d}:{minute:02d}:00.000Z",
            "message": {"role": kind, "content": content, **more},
        }  # fmt: skip

    def answer(*content: object) -> dict[str, object]:
        usage = {"input_tokens": 900, "output_tokens": 80, "cache_read_input_tokens": 0}
        more = {"id": f"msg_{session[:8]}{said}", "model": "claude-opus-4", "usage": usage}
        return record("assistant", list(content), type="message", **more)

    for _ in range(turns):
        yield record("user", words.text(25))
        yield answer({"type": "text", "text": words.text(40)})
        for tool, name, frame in _FRAMES:
            call = f"toolu_{session[:8]}{said:04d}"
            given = frame.format(**dict(zip("abcd", words.some(4), strict=True)))
            asked = {name: given, "description": words.text(6)}
            yield answer({"type": "tool_use", "id": call, "name": tool, "input": asked})
            failed = words.chance(1 / 12)
            shown = words.listing(listed) if listed else words.text(120)
            printed = f"Exit code 2\nerror: {words.text(12)}" if failed else shown
            result = {"type": "tool_result", "tool_use_id": call, "content": printed}
            yield record("user", [{**result, "is_error": failed}])
        yield answer({"type": "text", "text": words.text(30)})
