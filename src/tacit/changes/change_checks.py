"""What `tacit doctor` looks at in this layer: journal, stage, history, inbox, exclude file.

A check changes nothing. What it finds says what is wrong and how it is repaired, with the repair
where that can be done without asking.
"""

import os
import stat
from collections.abc import Callable, Iterator
from functools import partial

from tacit.base.doctor import Check, Finding, clear_folder, run_checks
from tacit.base.errors import Damaged, Refused, TacitError, Unwritable
from tacit.changes import git_exclude
from tacit.changes.change import SKILL_FILE, File, acting_as
from tacit.changes.containment import Escape, Folder, open_root
from tacit.changes.gate import Gate
from tacit.changes.git_store import unquote_name
from tacit.changes.history import History
from tacit.changes.inbox import Inbox
from tacit.changes.journal import KEPT, OpenPlace
from tacit.changes.salvage import lost_skills, salvage
from tacit.changes.skill_state import read_archived, read_state
from tacit.changes.stage import ARCHIVE, STAGE
from tacit.skills.fact import FACT_FILE
from tacit.skills.library import SCHEDULE_FILE


def check_changes(gate: Gate) -> list[Finding]:
    """Every check over every place of `gate`."""
    places = list(gate.open_places.values())
    checks: list[Check] = [partial(check_open_place, opened) for opened in places]
    checks += [partial(check_files, gate, opened) for opened in places]
    return run_checks([*checks, partial(check_inbox, gate.inbox, places)])


def check_open_place(opened: OpenPlace) -> list[Finding]:
    """The checks of one place, with its lock held, so that nothing is under way meanwhile."""
    try:
        with opened.lock():
            return _look_at(opened)
    except Unwritable:  # a home that is read-only: nobody changes anything there
        return _look_at(opened)


def _look_at(opened: OpenPlace) -> list[Finding]:
    looks = (_journal, _leftovers, _history, _hidden)
    return run_checks([partial(_all, look, opened) for look in looks])


def _all(look: Callable[[OpenPlace], Iterator[Finding]], opened: OpenPlace) -> list[Finding]:
    return list(look(opened))


def _journal(opened: OpenPlace) -> Iterator[Finding]:
    try:
        entries = opened.journal.entries()
    except Damaged as damaged:
        yield Finding(
            "broken-journal",
            damaged.message,
            "it is put aside; the folders are left as they are",
            opened.recover,
        )
        return
    for entry in entries:
        yield Finding(
            "interrupted-change",
            f"the change {entry.change} to '{entry.skill}' in {opened.place.root} was interrupted",
            "it is finished, or taken back",
            opened.recover,
        )


def _leftovers(opened: OpenPlace) -> Iterator[Finding]:
    """Only counts when no entry in the journal explains it."""
    for name in _kept(opened):
        yield Finding(
            "kept-stage",
            f"{os.path.join(opened.real, name)} holds what a change with a broken journal left",
            "look whether something in it is missing elsewhere, then delete it",
        )
    if _entries(opened):
        return
    stage = os.path.join(opened.real, STAGE)
    if os.path.lexists(stage):
        yield Finding(
            "left-on-stage",
            f"{stage} holds what an interrupted change left behind",
            "it is removed",
            opened.recover,
        )
    for folder in (os.path.join(opened.history.folder, "tmp"), opened.journal.folder):
        names = os.listdir(folder) if os.path.isdir(folder) else []
        if any(not name.endswith((".json", ".broken")) for name in names):
            yield Finding(
                "left-temporary",
                f"{folder} holds temporary files that nobody uses",
                "they are removed",
                opened.recover,
            )


def _kept(opened: OpenPlace) -> list[str]:
    try:
        return sorted(name for name in os.listdir(opened.real) if name.startswith(f"{KEPT}-"))
    except OSError:
        return []


def _history(opened: OpenPlace) -> Iterator[Finding]:
    history = opened.history
    if not history.is_begun():
        return
    if not history.objects.is_laid_out():
        yield Finding(
            "history-files",
            f"the history in {history.folder} lacks its HEAD or config, or they are broken",
            "they are written again",
            partial(_lay_out, opened),
        )
        return
    if damage := _damage(opened):
        yield Finding(
            "broken-history",
            f"the history in {history.folder} is damaged: {damage}",
            "it is put aside, and a new one is made of all versions that can be read",
            partial(salvage, opened),
        )


def _damage(opened: OpenPlace) -> str:
    """What is wrong with a history, or an empty string."""
    history = opened.history
    try:
        refs = history.refs.list("refs")
    except Damaged as damaged:
        return damaged.message
    heads = {name: oid for name, oid in refs if name.startswith("refs/skills/")}
    named = {name: oid for name, oid in refs if name.startswith("refs/changes/")}
    if named and not heads:
        return "no skill can be found in it"
    parts = {name.rsplit("/", 1)[1] for name in heads}
    if lost := {name.rsplit("/", 1)[1] for name in named} - parts:
        return f"the last version of '{unquote_name(min(lost))}' cannot be found"
    try:
        text, dangling = _git_check(history) or _own_check(history)
        if text:
            return text
        known = set(named.values())
        for name, oid in heads.items():
            if oid not in known:
                skill = history.version(oid).record.skill
                return f"the last change to '{skill}' cannot be found by its id ({name})"
    except Damaged as damaged:
        return damaged.message
    if found := lost_skills(opened, dangling):
        return f"the versions of '{found[0]}' cannot be found"
    return ""


def _git_check(history: History) -> tuple[str, list[str]] | None:
    """What git says is wrong, and the commits that nothing points to; None where there is no git.

    A change that failed, or was taken back, leaves such a commit: it is none of the damage.
    """
    try:
        done = history.objects.git("fsck", "--strict")
    except TacitError:
        return None
    lines = (done.stdout + done.stderr).decode(errors="replace").strip().splitlines()
    dangling = [line.split()[-1] for line in lines if line.startswith("dangling commit")]
    wrong = [line for line in lines if not line.startswith(("dangling", "Checking", "notice"))]
    return (wrong[0] if wrong else str(done.returncode)) if done.returncode else "", dangling


def _own_check(history: History) -> tuple[str, list[str]]:
    """The same without git: every version is read, and the files of the last ones."""
    try:
        for skill in history.skills():
            for number, version in enumerate(history.log(skill)):
                if number == 0:
                    history.files(version)
    except Damaged as damaged:
        return damaged.message, []
    return "", []


def _lay_out(opened: OpenPlace) -> None:
    with opened.lock():
        for name in ("HEAD", "config"):
            clear_folder(os.path.join(opened.history.folder, name))
        opened.history.objects.lay_out()


_MAIN_FILES = (SKILL_FILE, FACT_FILE, SCHEDULE_FILE)


def check_files(gate: Gate, opened: OpenPlace) -> list[Finding]:
    """No skill, fact or schedule has lost the file that makes it one, or what stood in it."""
    if not os.path.isdir(opened.real):
        return []
    with open_root(opened.place) as root:
        names = [name for name in root.names() if not name.startswith(".")]
        return [
            _lost_file(gate, opened, name, file, why)
            for name in names
            for file, why in _lost_files(root, opened, name)
        ]


def _lost_files(root: Folder, opened: OpenPlace, name: str) -> list[tuple[str, str]]:
    """Main files that are not as they should be, and what happened to each."""
    try:
        with root.open(name) as folder:
            found = {file: at for file in _MAIN_FILES if (at := folder.status(file)) is not None}
            if found:
                whys = ((file, _fault(folder, file, at)) for file, at in found.items())
                return [(file, why) for file, why in whys if why]
        head = opened.history.head(name)
        known = opened.history.files(head) if head and head.record.state == "live" else {}
    except (Escape, OSError, Damaged):
        return []  # not for this check to say
    return [(file, "is gone") for file in _MAIN_FILES if file in known]


def _fault(folder: Folder, file: str, found: os.stat_result) -> str:
    if stat.S_ISDIR(found.st_mode):
        return "is a folder"
    return "" if _says_something(folder.read(file)[0]) else "is empty"


def _says_something(data: bytes) -> bool:
    return bool(data.strip(b"\0 \t\r\n"))


def _lost_file(gate: Gate, opened: OpenPlace, name: str, file: str, why: str) -> Finding:
    what = f"{file} of '{name}' in {opened.place.root} {why}"

    def whole(files: dict[str, File]) -> bool:
        return file in files and _says_something(files[file].data)

    repair = bring_back(gate, opened, name, whole)
    if repair is None:
        fix = "write it again, or remove the folder: no version of it is known"
        return Finding("empty-file", what, fix)
    return Finding("empty-file", what, "bring back the last version that is known", repair)


def bring_back(
    gate: Gate, opened: OpenPlace, name: str, whole: Callable[[dict[str, File]], bool]
) -> Callable[[], str] | None:
    """What makes a skill again what it was in its last version that is `whole`, if there is one."""
    try:
        versions = (v for v in opened.history.log(name) if v.record.state == "live")
        found = next((v for v in versions if whole(opened.history.files(v))), None)
    except Damaged:
        return None
    if found is None:
        return None

    def repair() -> str:
        beside = opened.history.folder
        paths = (os.path.join(opened.real, name, file) for file in _MAIN_FILES)
        aside = [place for path in paths if (place := clear_folder(path, beside))]
        with acting_as("user"):
            verdict = gate.rollback(name, found.id, root=opened.place.root)
        if not verdict.applied:
            raise Refused(verdict.explain())
        said = f"'{name}' is again what it was in {found.id[:12]}, of {found.at:%Y-%m-%d %H:%M}"
        return "; ".join([said, *(f"the folder lies in {place}" for place in aside)])

    return repair


def _hidden(opened: OpenPlace) -> Iterator[Finding]:
    if opened.place.scope != "project" or not os.path.isdir(opened.real):
        return
    for skill in git_exclude.hidden(opened.place):
        if not _is_somewhere(opened, skill):
            yield Finding(
                "hidden-nothing",
                f"git's exclude file hides the skill '{skill}', which is not in"
                f" {opened.place.root} any more",
                "that line is removed",
                partial(git_exclude.show, opened.place, skill, opened.data),
            )


def _is_somewhere(opened: OpenPlace, skill: str) -> bool:
    try:
        with open_root(opened.place) as root:
            if read_state(root, opened.history, skill).is_live:
                return True
            return root.status(ARCHIVE) is not None and (
                read_archived(root, opened.history, skill.replace("/", "%2f")) is not None
            )
    except (Escape, OSError):
        return True  # not for this check to say


def check_inbox(inbox: Inbox, open_places: list[OpenPlace]) -> list[Finding]:
    """Rows that cannot be read, and answers that a kill kept from being written down."""
    found = [
        Finding(
            "broken-proposal",
            f"the proposal {row} in the inbox cannot be read",
            "it is removed",
            partial(inbox.remove, row),
        )
        for row in inbox.broken()
    ]
    histories = {opened.place.root: opened.history for opened in open_places}
    for proposal in inbox.begun():
        history = histories.get(proposal.change.root)
        if history is not None and history.knows(proposal.applied_as, proposal.change.skill):
            found.append(
                Finding(
                    "answered-proposal",
                    f"the proposal {proposal.id} was accepted and applied, but still waits",
                    "it is closed",
                    partial(inbox.close, proposal, "accepted"),
                )
            )
    return found


def _entries(opened: OpenPlace) -> bool:
    try:
        return bool(opened.journal.entries())
    except Damaged:
        return True
