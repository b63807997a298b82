"""What an agent of the user's is told as a session begins, prepared so that telling costs a read.

One file of text a project in `briefing/` of the data folder, and one for everywhere else; its first
line names the project. Likewise in `lots/` what a session of an agent needs that draws lots for
learned skills, as JSON. What stands in them is made in `work/host_briefings.py`. Here they are read
and written, and put into the form in which an agent takes an answer. The hook imports this, so it
imports os alone.
"""

import os
from binascii import crc32

from tacit.base import paths

EVERYWHERE = "everywhere"
"""In place of a project: for sessions outside any that is known."""
FACTS, LOTS = "briefing", "lots"
"""The folders: what the model is told, and what a session draws lots for."""


def read(data: str, cwd: str, kind: str = FACTS) -> str:
    """The text for a session in `cwd`; empty where there is none. Never raises."""
    for project in (os.path.realpath(paths.project_root(cwd)) if cwd else "", EVERYWHERE):
        try:
            with open(_file(data, project, kind), encoding="utf-8", errors="replace") as file:
                if file.readline().rstrip("\n") == project:
                    return file.read().strip()
        except OSError:
            continue
    return ""


def put(data: str, project: str, text: str, kind: str = FACTS) -> None:
    """Have `text` told in `project` from now on. Raises `Unwritable`."""
    from tacit.base.atomic_files import write_atomic

    if "\n" not in project:
        whole = f"{project}\n{text}\n".encode("utf-8", "backslashreplace")
        write_atomic(_file(data, project, kind), whole, durable=False)


def projects(data: str) -> list[str]:
    """The projects that have a text, also those that are gone by now."""
    folder = os.path.join(data, FACTS)
    found = []
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
            found.append(file.readline().rstrip("\n"))
    return [project for project in found if os.path.isabs(project)]


def answer(form: str, event: str, facts: str, news: str, lots: str = "") -> str:
    """What a hook prints, as JSON; empty where there is nothing to tell.

    `hook` is the form of Claude Code, with a message for the user apart. `pair` is for programs of
    ours, which can draw lots too. Any other form is the one key that an agent knows: it shows its
    user nothing, so the model is asked to.
    """
    if not facts and not news and not lots:
        return ""
    if form == "pair":
        return f'{{"context":{_quoted(facts)},"news":{_quoted(news)},"lots":{lots or "{}"}}}'
    if form == "hook":
        context = f'{{"hookEventName":{_quoted(event)},"additionalContext":{_quoted(facts)}}}'
        parts = [f'"hookSpecificOutput":{context}'] if facts else []
        parts += [f'"systemMessage":{_quoted(news)}'] if news else []
        return f"{{{','.join(parts)}}}"
    told = f"Tell the user this once, as it stands: {news}" if news else ""
    return f"{{{_quoted(form)}:{_quoted(chr(10).join(part for part in (facts, told) if part))}}}"


def _quoted(text: str) -> str:
    """`text` as a JSON string; the module json would cost more than all the rest."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return '"' + "".join(c if c >= " " else " " for c in escaped) + '"'


def _file(data: str, project: str, kind: str) -> str:
    name = project if project == EVERYWHERE else f"{crc32(os.fsencode(project)):08x}"
    return os.path.join(data, kind, name)
