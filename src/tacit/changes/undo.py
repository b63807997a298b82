"""What takes a change back: for each of its commits, the action that does the opposite.

Works out actions and touches nothing. What happened since is kept: contents are merged three
ways, and where that cannot be done the refusal says so and carries the merged text. An undo is a
change like any other, so undoing it brings the change back.
"""

from tacit.changes.change import Change, File, Refusal, Unfit, bytes_of, unfit
from tacit.changes.containment import Folder
from tacit.changes.effect import FREE_ARCHIVE
from tacit.changes.file_edits import merge_files
from tacit.changes.history import History, Version
from tacit.changes.left_out import lines_id
from tacit.changes.place import Place
from tacit.changes.policy import SKILL_RULES, Act, Rules, rules_of
from tacit.changes.skill_state import (
    Action,
    SkillState,
    parse_skill_files,
    read_archived,
    read_state,
    rename_actions,
)


def undo_actions(
    root: Folder, history: History, versions: list[Version], rules: Rules = SKILL_RULES
) -> list[Action]:
    """The actions that take back a change, given its commits. Raises `Unfit`."""
    return _Undo(root, history, versions, rules).actions()


def rollback_action(root: Folder, history: History, skill: str, version: Version) -> Action:
    """The action that makes `skill` what it was in `version`. Raises `Unfit`."""
    if version.record.state == "gone":
        raise unfit("gone-then", f"'{skill}' was not there in {version.id[:12]}", "choose another")
    now = read_state(root, history, skill)
    files = history.files(version)
    if now.is_live and files == now.contents.files:
        raise unfit("no-change", f"'{skill}' is what it was in {version.id[:12]}", "nothing to do")
    kind = "edit" if now.is_live else "create"
    return Action(now=now, kind=kind, state="live", files=files)  # type: ignore[arg-type]


def check_undo(place: Place, change: Change, actions: list[Action]) -> None:
    """Taking back is changing: a machine may do it where it may edit. Raises `Unfit`."""
    rules = rules_of(place)
    for action in actions:
        now = action.now
        act: Act = "delete" if action.kind == "delete" else "edit"
        files = now.contents.files or action.files
        origin = place.origin(parse_skill_files(files, now.skill, rules.names))
        if rules.decide(change.actor, act, origin, pinned=now.pinned) in ("refuse", "propose"):
            words = rules.refusal(change.actor, act, origin, now.skill, pinned=now.pinned)
            raise Unfit(words)


def already_undone(history: History, versions: list[Version]) -> str:
    """The change that undid these commits and still holds, or an empty string."""
    change = versions[0].record.change
    taken_back: set[str] = set()
    for version in history.log(versions[-1].record.skill):
        if version.record.change == change:
            break
        if version.record.undoes:
            if version.record.undoes == change and version.record.change not in taken_back:
                return version.record.change
            taken_back.add(version.record.undoes)
    return ""


def taken_back(history: History, change: Change) -> Refusal | None:
    """Refuses lines that were left out of a change where that was taken back meanwhile: there is
    nothing to put them into."""
    versions = history.log(change.skill) if change.base else ()
    version = next((one for one in versions if one.id == change.base), None)
    if version is None or lines_id(version.record.change) != change.id:
        return None
    if not already_undone(history, [version]):
        return None
    short, lines = version.record.change[-8:], change.id[-8:]
    return Refusal(
        "apply",
        "taken-back",
        f"the change {short}, which these lines were left out of, was taken back",
        f"bring that back first: tacit undo {short}, or drop the lines: tacit reject {lines}",
    )


class _Undo:
    def __init__(
        self, root: Folder, history: History, versions: list[Version], rules: Rules
    ) -> None:
        self.rules = rules
        self.root = root
        self.history = history
        self.versions = versions

    def actions(self) -> list[Action]:
        arriving = [v for v in self.versions if v.record.kind == "rename"]
        if arriving:
            return self._rename_back(arriving[0])
        # What comes back from the archive comes last, as a merge put it there last.
        return [self._opposite(version) for version in self.versions]

    def _opposite(self, version: Version) -> Action:
        record = version.record
        now = read_state(self.root, self.history, record.skill)
        match record.kind:
            case "baseline":
                raise unfit(
                    "baseline",
                    f"this is what '{record.skill}' was before Tacit's first change",
                    "there is nothing to go back to",
                )
            case "pin" | "unpin":
                return self._unpin(version, now)
            case "archive":
                return self._unarchive(version)
            case "restore":
                return self._leave(version, now, "archive", FREE_ARCHIVE)
        if record.state == "gone":
            return self._bring_back(version, now)
        if not self._was_live(version):
            return self._leave(version, now, "delete", "gone")
        return self._edit_back(version, now)

    def _was_live(self, version: Version) -> bool:
        return bool(version.parent) and version.record.was == "live"

    def _edit_back(self, version: Version, now: SkillState) -> Action:
        self._check_live(version, now)
        files = self._merged(version, self._before(version), now)
        if files == now.contents.files:
            raise unfit(
                "no-change",
                f"what {version.record.change} did to '{now.skill}' is no longer there",
                "nothing to do",
            )
        return Action(now=now, kind="edit", state="live", files=files)

    def _bring_back(self, version: Version, now: SkillState) -> Action:
        if now.is_live:
            raise unfit(
                "exists",
                f"a {self.rules.noun} '{now.skill}' is there again",
                f"remove it first: {self.rules.remove_command} {now.skill}"
                if self.rules.noun == "fact"
                else f"rename or archive it first: tacit archive {now.skill}",
            )
        files = self._before(version)
        return Action(now=now, kind="create", state="live", files=files)

    def _leave(self, version: Version, now: SkillState, kind: str, state: str) -> Action:
        self._check_live(version, now)
        if state == "gone" and now.tree != version.tree:
            raise unfit(
                "changed-since",
                f"'{now.skill}' was changed after {version.record.change} made it",
                f"undo those changes first (tacit log {now.skill}),"
                f" or delete it: {self.rules.remove_command} {now.skill}",
            )
        files = {} if state == "gone" else now.contents.files
        return Action(now=now, kind=kind, state=state, files=files)  # type: ignore[arg-type]

    def _unarchive(self, version: Version) -> Action:
        key = version.record.state.partition(":")[2]
        archived = read_archived(self.root, self.history, key)
        if archived is None:
            raise unfit(
                "not-archived",
                f"'{key}' is no longer in the archive",
                f"go back to a version of it: tacit rollback {version.record.skill}",
            )
        if read_state(self.root, self.history, archived.skill).is_live:
            raise unfit(
                "exists",
                f"a skill '{archived.skill}' is there again",
                f"rename or archive it first: tacit archive {archived.skill}",
            )
        return Action(now=archived, kind="restore", state="live", files=archived.contents.files)

    def _unpin(self, version: Version, now: SkillState) -> Action:
        self._check_live(version, now)
        pin = version.record.kind == "pin"
        if now.pinned != pin:
            raise unfit("no-change", f"'{now.skill}' was changed back already", "")
        return Action(
            now=now,
            kind="unpin" if pin else "pin",
            state="live",
            files=now.contents.files,
        )

    def _rename_back(self, version: Version) -> list[Action]:
        now = read_state(self.root, self.history, version.record.skill)
        self._check_live(version, now)
        old = version.record.partner
        target = read_state(self.root, self.history, old)
        if target.is_live:
            raise unfit("exists", f"a skill '{old}' is there again", "rename that one first")
        leaving = next(v for v in self.versions if v.record.kind == "renamed")
        files = self._merged(version, self._before(leaving), now)
        return list(rename_actions(now, target, files))

    def _merged(
        self, version: Version, before: dict[str, File], now: SkillState
    ) -> dict[str, File]:
        labels = ("as it is now", f"without {version.record.change}")
        merged = merge_files(self.history.files(version), now.contents.files, before, labels=labels)
        if not merged.conflicts:
            return merged.files
        found = Refusal(
            "apply",
            "conflict",
            f"later changes to '{now.skill}' touch the same lines,"
            f" in {', '.join(merged.conflicts)}",
            "undo those first, or take the merged text that comes with this and mend it",
        )
        raise Unfit(found, bytes_of(merged.files))

    def _before(self, version: Version) -> dict[str, File]:
        return self.history.files(self.history.version(version.parent)) if version.parent else {}

    def _check_live(self, version: Version, now: SkillState) -> None:
        if not now.is_live:
            raise unfit(
                "not-there",
                f"'{now.skill}' is no longer there",
                f"undo what took it away first: tacit log {version.record.skill}",
            )
