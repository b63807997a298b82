"""What a change would do: how its skills stand, what the files would be, which actions it takes.

Reads, computes and writes nothing; the gate works out an effect once to judge it and, when a
person had to be asked in between, a second time to make sure. `Unfit` says why a change has none.
"""

import msgspec

from tacit.changes.change import (
    BACKGROUND,
    Archive,
    Change,
    Create,
    Delete,
    File,
    FileOperation,
    MergeInto,
    Pin,
    Refusal,
    RemoveFile,
    Rename,
    Restore,
    Rewrite,
    Unfit,
    Unpin,
    WriteFile,
    unfit,
)
from tacit.changes.containment import Folder, check_name
from tacit.changes.file_edits import Merged, apply_operations, merge_files, rename_in_head
from tacit.changes.history import History, VersionKind
from tacit.changes.place import Place
from tacit.changes.policy import SKILL_RULES, Act, Rules, rules_of
from tacit.changes.skill_state import (
    Action,
    SkillState,
    find_archived,
    parse_skill_files,
    read_state,
    rename_actions,
    skill_of,
)
from tacit.skills.skill import Origin, Skill
from tacit.skills.skill_file import parse_skill

FREE_ARCHIVE = "archived:?"
"""Stands for a free folder in the archive, which is chosen when the change is made."""


class Touch(msgspec.Struct, frozen=True):
    """One skill that a change touches: what is done to it, whose it is, whether it is pinned."""

    act: Act
    origin: Origin
    skill: str
    pinned: bool


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """A change, worked out against what stands on the disk."""

    change: Change
    rules: Rules = SKILL_RULES
    touches: tuple[Touch, ...]
    actions: tuple[Action, ...]
    before: Skill | None = None
    after: Skill | None = None
    """The skill whose files change, as it was and as it would be; None when none do."""
    old: dict[str, File] = {}
    new: dict[str, File] = {}
    merged: Merged | None = None
    """Set when later edits had to be merged in; with conflicts the change cannot land."""
    shared: tuple[str, ...] = ()
    """Files that have a hard link elsewhere."""
    absorbs: tuple[str, ...] = ()
    """The skills that a new umbrella takes in."""
    unversioned: tuple[str, ...] = ()
    """Paths that would go and of which no version is kept."""
    restored: Skill | None = None
    """The skill that comes back from the archive as it lies there: it is scanned again."""


def work_out(place: Place, root: Folder, history: History, change: Change) -> Effect:
    """Work out `change`. Raises `Unfit`.

    Policy comes first: what the actor may not do is refused before it is looked at any closer.
    """
    return _Builder(place, root, history, change).build()


class _Builder:
    def __init__(self, place: Place, root: Folder, history: History, change: Change) -> None:
        self.place = place
        self.rules = rules_of(place)
        self.root = root
        self.history = history
        self.change = change

    def build(self) -> Effect:
        operations = self.change.operations
        if not operations:
            raise unfit("no-operations", "the change holds no operation", "say what to do")
        _check_folder(self.change.skill)
        if found := next(filter(None, map(self.rules.check_operation, operations)), None):
            raise Unfit(found)
        files = [op for op in operations if isinstance(op, FileOperation)]
        if len(files) == len(operations):
            return self._edit(files)
        if len(operations) > 1:
            raise unfit(
                "mixed-operations",
                "only edits of files can be put together in one change",
                "make the others changes of their own",
            )
        match operations[0]:
            case Create() as create:
                return self._create(create)
            case Rename() as renaming:
                return self._rename(renaming)
            case Archive():
                return self._archive()
            case Restore():
                return self._restore()
            case MergeInto() as merging:
                return self._merge_into(merging)
            case Delete():
                return self._delete()
            case Pin():
                return self._pin("pin")
            case Unpin():
                return self._pin("unpin")
        raise AssertionError(operations)

    def _create(self, create: Create) -> Effect:
        name = self.change.skill
        if found := check_name(name):
            raise Unfit(found)
        now = self._state(name)
        if now.is_live:
            raise unfit(
                "exists",
                f"there is already something called '{name}' in {self.place.root}",
                f"edit '{name}' instead, or choose another name",
                (name,),
            )
        after = parse_skill(create.files.get(self.rules.file, b""), name)
        touch = self._permit("create", now, after)
        if self.change.actor in BACKGROUND:
            self._check_archived(now)
        files = apply_operations({}, [create], file=self.rules.file)
        action = Action(now=now, kind="create", state="live", files=files)
        return Effect(
            change=self.change,
            rules=self.rules,
            touches=(touch,),
            actions=(action,),
            after=after,
            new=files,
            absorbs=create.absorbs,
        )

    def _check_archived(self, now: SkillState) -> None:
        """What was archived, or deleted by the user, is not made again by a machine."""
        head, name = now.head, now.skill
        if find_archived(self.root, self.history, name):
            raise unfit(
                "archived",
                f"a skill '{name}' is in the archive",
                f"leave it there; the user can bring it back: tacit restore {name}",
            )
        deleted = head is not None and head.record.kind in ("delete", "hand")
        if head is not None and deleted and head.record.actor == "user":
            raise unfit(
                "deleted-by-user",
                f"the user deleted '{name}' on {head.at:%Y-%m-%d}",
                "do not make it again",
            )

    def _edit(self, operations: list[FileOperation]) -> Effect:
        now = self._live(self.change.skill)
        touch = self._permit("edit", now)
        merged = self._result(now, operations, self.change.base)
        return self._edited(now, merged, (touch,))

    def _edited(self, now: SkillState, merged: Merged, touches: tuple[Touch, ...]) -> Effect:
        new = merged.files
        if new == now.contents.files:
            raise unfit("no-change", f"'{now.skill}' already says that", "nothing to do")
        after = parse_skill_files(new, now.skill, self.rules.names)
        return Effect(
            change=self.change,
            rules=self.rules,
            touches=touches,
            actions=(Action(now=now, kind="edit", state="live", files=new),),
            before=skill_of(now, self.rules.names),
            after=after,
            old=now.contents.files,
            new=new,
            merged=merged,
            shared=now.contents.shared,
        )

    def _rename(self, renaming: Rename) -> Effect:
        now = self._live(self.change.skill)
        touch = self._permit("rename", now)
        parent = self.change.skill.rpartition("/")[0]
        if found := check_name(renaming.to):
            raise Unfit(found)
        to = f"{parent}/{renaming.to}" if parent else renaming.to
        target = self._state(to)
        if target.is_live:
            raise unfit("exists", f"there is already a skill '{to}'", "choose another name", (to,))
        new = rename_in_head(now.contents.files, renaming.to)
        return Effect(
            change=self.change,
            touches=(touch,),
            actions=rename_actions(now, target, new),
            before=skill_of(now),
            after=parse_skill_files(new, to),
            old=now.contents.files,
            new=new,
            shared=now.contents.shared,
        )

    def _archive(self) -> Effect:
        now = self._live(self.change.skill)
        return self._moved(now, "archive", "archive", FREE_ARCHIVE)

    def _restore(self) -> Effect:
        now = self._archived(self.change.skill)
        self._permit("restore", now)
        if self._state(now.skill).is_live:
            raise unfit(
                "exists",
                f"a skill '{now.skill}' is there again",
                f"rename or archive that one first: tacit archive {now.skill}",
                (now.skill,),
            )
        # The archive is a folder like any other, and the rules may have grown since.
        moved = self._moved(now, "restore", "restore", "live")
        return msgspec.structs.replace(moved, restored=skill_of(now, self.rules.names))

    def _delete(self) -> Effect:
        skill, archived = self.change.skill, None
        if not self._state(skill).is_live:
            archived = find_archived(self.root, self.history, skill)
        return self._moved(archived or self._live(skill), "delete", "delete", "gone")

    def _moved(self, now: SkillState, act: Act, kind: VersionKind, state: str) -> Effect:
        files = {} if state == "gone" else now.contents.files
        touch = self._permit(act, now)
        return Effect(
            change=self.change,
            rules=self.rules,
            touches=(touch,),
            actions=(Action(now=now, kind=kind, state=state, files=files),),
            unversioned=now.contents.unversioned if state == "gone" else (),
        )

    def _merge_into(self, merging: MergeInto) -> Effect:
        _check_folder(merging.into)
        if merging.into == self.change.skill:
            raise unfit("itself", "a skill cannot be merged into itself", "name another skill")
        source = self._live(self.change.skill)
        target = self._live(merging.into)
        touch = self._permit("merge", source)
        away = Action(
            now=source,
            kind="archive",
            state=FREE_ARCHIVE,
            files=source.contents.files,
            partner=target.skill,
        )
        if not merging.operations:
            return Effect(change=self.change, touches=(touch,), actions=(away,))
        into = self._permit("edit", target)
        if self.rules.decide(self.change.actor, "edit", into.origin) == "copy":
            raise Unfit(
                Refusal(
                    "policy",
                    "not-yours",
                    f"'{target.skill}' is not the user's own, so nothing is merged into it",
                    f"make a copy first, by editing it: tacit edit {target.skill}",
                )
            )
        merged = self._result(target, list(merging.operations), "")
        effect = self._edited(target, merged, (touch, into))
        edit = msgspec.structs.replace(effect.actions[0], partner=source.skill)
        return msgspec.structs.replace(effect, actions=(edit, away))

    def _pin(self, kind: VersionKind) -> Effect:
        now = self._live(self.change.skill)
        self._permit("pin", now)
        if now.pinned == (kind == "pin"):
            raise unfit(
                "no-change",
                f"'{now.skill}' is {'already' if now.pinned else 'not'} pinned",
                "nothing to do",
            )
        return self._moved(now, "pin", kind, "live")

    def _permit(self, act: Act, now: SkillState, skill: Skill | None = None) -> Touch:
        """What is done to whom. Raises `Unfit` where the table says no."""
        origin = self.place.origin(skill or skill_of(now, self.rules.names))
        actor, pinned = self.change.actor, now.pinned
        if self.rules.decide(actor, act, origin, pinned=pinned) == "refuse":
            raise Unfit(self.rules.refusal(actor, act, origin, now.skill, pinned=pinned))
        return Touch(act, origin, now.skill, pinned)

    def _result(self, now: SkillState, operations: list[FileOperation], base: str) -> Merged:
        """The files after `operations`, merged with what happened since `base`."""
        files = now.contents.files
        if not base:
            self._check_blind(files, operations)
            return Merged(apply_operations(files, operations, file=self.rules.file))
        seen = self._version_files(now, base)
        wanted = apply_operations(seen, operations, file=self.rules.file)
        if seen == files:
            return Merged(wanted)
        return merge_files(
            seen, files, wanted, labels=("as it is now", f"the {self.change.actor}'s edit")
        )

    def _version_files(self, now: SkillState, base: str) -> dict[str, File]:
        for version in self.history.log(now.skill):
            if version.id == base:
                return self.history.files(version)
        raise unfit(
            "unknown-version",
            f"'{now.skill}' has no version {base[:12]}",
            "read the skill again and make the change on that",
        )

    def _check_blind(self, files: dict[str, File], operations: list[FileOperation]) -> None:
        """A machine that overwrites must say what it looked at, else it could undo a person."""
        if self.change.actor == "user":
            return
        blind = [
            op
            for op in operations
            if isinstance(op, Rewrite)
            or (isinstance(op, WriteFile | RemoveFile) and op.path in files)
        ]
        if blind:
            raise unfit(
                "no-base",
                "a whole file is replaced without saying which version was read",
                "give the version as 'base', or edit the lines that change",
            )

    def _live(self, skill: str) -> SkillState:
        now = self._state(skill)
        if not now.is_live:
            if archived := find_archived(self.root, self.history, skill):
                key = archived.state.partition(":")[2]
                raise unfit(
                    "archived", f"'{skill}' is archived", f"restore it first: tacit restore {key}"
                )
            raise unfit(
                f"no-such-{self.rules.noun}",
                f"there is no {self.rules.noun} '{skill}' in {self.place.root}",
                f"see what there is: {self.rules.list_command}",
            )
        if not any(name in now.contents.files for name in self.rules.names):
            noun, file = self.rules.noun, self.rules.file
            raise unfit(
                f"not-a-{noun}", f"the folder '{skill}' has no {file}", f"name a {noun} in it"
            )
        return now

    def _archived(self, skill: str) -> SkillState:
        if found := find_archived(self.root, self.history, skill):
            return found
        raise unfit(
            "not-archived", f"no archived skill is called '{skill}'", "see them: tacit restore"
        )

    def _state(self, skill: str) -> SkillState:
        return read_state(self.root, self.history, skill)


def _check_folder(skill: str) -> None:
    """The folder that is named must lie in the skills folder and not be one of Tacit's own."""
    for part in skill.split("/"):
        if part in ("", ".", "..") or part.startswith(".") or "\0" in part or "\\" in part:
            raise Unfit(
                Refusal(
                    "containment",
                    "dots",
                    f"{skill!r} does not name a skill's folder",
                    "name it as 'tacit list' does",
                )
            )
