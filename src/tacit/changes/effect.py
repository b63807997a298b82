"""What a change would do: how its skills stand, what the files would be, which actions it takes.

Reads, computes and writes nothing; the gate works out an effect once to judge it and, when a
person had to be asked in between, a second time to make sure. `Unfit` and `Escape` say why a change
has none.
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
    Unpin,
    WriteFile,
)
from tacit.changes.containment import Folder, check_name
from tacit.changes.file_edits import Merged, Unfit, apply_operations, merge_files, rename_in_head
from tacit.changes.history import History, VersionKind
from tacit.changes.place import Place
from tacit.changes.policy import SKILL_RULES, Act, Rules, rules_of
from tacit.changes.skill_state import (
    Action,
    SkillState,
    find_archived,
    parse_skill_files,
    read_state,
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
    form: Rules = SKILL_RULES
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
    absorbs: tuple[str, ...] = ()
    carried: tuple[str, ...] = ()


def work_out(place: Place, root: Folder, history: History, change: Change) -> Effect:
    """Work out `change`. Raises `Unfit` or `Escape`.

    Policy comes first: what the actor may not do is refused before it is looked at any closer.
    """
    return _Builder(place, root, history, change).build()


class _Builder:
    def __init__(self, place: Place, root: Folder, history: History, change: Change) -> None:
        self.place = place
        self.form = rules_of(place)
        self.root = root
        self.history = history
        self.change = change

    def build(self) -> Effect:
        operations = self.change.operations
        if not operations:
            raise _unfit("no-operations", "the change holds no operation", "say what to do")
        _check_folder(self.change.skill)
        if unfit := next(filter(None, map(self.form.fits, operations)), None):
            raise Unfit(unfit)
        files = [op for op in operations if isinstance(op, FileOperation)]
        if len(files) == len(operations):
            return self._edit(files)
        if len(operations) > 1:
            raise _unfit(
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
        standing = self._look(name)
        if standing.is_live:
            raise _unfit(
                "exists",
                f"there is already something called '{name}' in {self.place.root}",
                f"edit '{name}' instead, or choose another name",
                (name,),
            )
        after = parse_skill(create.files.get(self.form.file, b""), name)
        touch = self._permit("create", standing, after)
        if self.change.actor in BACKGROUND:
            self._check_put_away(standing)
        files = apply_operations({}, [create], file=self.form.file)
        action = Action(standing=standing, kind="create", state="live", files=files)
        return Effect(
            change=self.change,
            form=self.form,
            touches=(touch,),
            actions=(action,),
            after=after,
            new=files,
            absorbs=create.absorbs,
        )

    def _check_put_away(self, standing: SkillState) -> None:
        """What was archived, or deleted by the user, is not made again by a machine."""
        head, name = standing.head, standing.skill
        if find_archived(self.root, self.history, name):
            raise _unfit(
                "archived",
                f"a skill '{name}' is in the archive",
                f"leave it there; the user can bring it back: tacit restore {name}",
            )
        deleted = head is not None and head.record.kind in ("delete", "hand")
        if head is not None and deleted and head.record.actor == "user":
            raise _unfit(
                "deleted-by-user",
                f"the user deleted '{name}' on {head.at:%Y-%m-%d}",
                "do not make it again",
            )

    def _edit(self, operations: list[FileOperation]) -> Effect:
        standing = self._live(self.change.skill)
        touch = self._permit("edit", standing)
        merged = self._result(standing, operations, self.change.base)
        return self._edited(standing, merged, (touch,))

    def _edited(self, standing: SkillState, merged: Merged, touches: tuple[Touch, ...]) -> Effect:
        new = merged.files
        if new == standing.contents.files:
            raise _unfit("no-change", f"'{standing.skill}' already says that", "nothing to do")
        after = parse_skill_files(new, standing.skill, self.form.names)
        return Effect(
            change=self.change,
            form=self.form,
            touches=touches,
            actions=(Action(standing=standing, kind="edit", state="live", files=new),),
            before=skill_of(standing, self.form.names),
            after=after,
            old=standing.contents.files,
            new=new,
            merged=merged,
            shared=standing.contents.shared,
        )

    def _rename(self, renaming: Rename) -> Effect:
        standing = self._live(self.change.skill)
        touch = self._permit("rename", standing)
        parent = self.change.skill.rpartition("/")[0]
        if found := check_name(renaming.to):
            raise Unfit(found)
        to = f"{parent}/{renaming.to}" if parent else renaming.to
        target = self._look(to)
        if target.is_live:
            raise _unfit("exists", f"there is already a skill '{to}'", "choose another name", (to,))
        new = rename_in_head(standing.contents.files, renaming.to)
        away = Action(standing=standing, kind="renamed", state="gone", partner=to)
        arrive = Action(
            standing=target,
            kind="rename",
            state="live",
            files=new,
            partner=standing.skill,
            like=standing.skill,
            also_after=(standing.skill,),
        )
        return Effect(
            change=self.change,
            touches=(touch,),
            actions=(away, arrive),
            before=skill_of(standing),
            after=parse_skill_files(new, to),
            old=standing.contents.files,
            new=new,
            shared=standing.contents.shared,
        )

    def _archive(self) -> Effect:
        standing = self._live(self.change.skill)
        return self._moved(standing, "archive", "archive", FREE_ARCHIVE)

    def _restore(self) -> Effect:
        standing = self._archived(self.change.skill)
        self._permit("restore", standing)
        if self._look(standing.skill).is_live:
            raise _unfit(
                "exists",
                f"a skill '{standing.skill}' is there again",
                f"rename or archive that one first: tacit archive {standing.skill}",
                (standing.skill,),
            )
        return self._moved(standing, "restore", "restore", "live")

    def _delete(self) -> Effect:
        skill, archived = self.change.skill, None
        if not self._look(skill).is_live:
            archived = find_archived(self.root, self.history, skill)
        return self._moved(archived or self._live(skill), "delete", "delete", "gone")

    def _moved(self, standing: SkillState, act: Act, kind: VersionKind, state: str) -> Effect:
        files = {} if state == "gone" else standing.contents.files
        touch = self._permit(act, standing)
        return Effect(
            change=self.change,
            form=self.form,
            touches=(touch,),
            actions=(Action(standing=standing, kind=kind, state=state, files=files),),
            carried=standing.contents.carried if state == "gone" else (),
        )

    def _merge_into(self, merging: MergeInto) -> Effect:
        _check_folder(merging.into)
        if merging.into == self.change.skill:
            raise _unfit("itself", "a skill cannot be merged into itself", "name another skill")
        source = self._live(self.change.skill)
        target = self._live(merging.into)
        touch = self._permit("merge", source)
        away = Action(
            standing=source,
            kind="archive",
            state=FREE_ARCHIVE,
            files=source.contents.files,
            partner=target.skill,
        )
        if not merging.operations:
            return Effect(change=self.change, touches=(touch,), actions=(away,))
        into = self._permit("edit", target)
        if self.form.decide(self.change.actor, "edit", into.origin) == "copy":
            raise Unfit(
                Refusal(
                    "policy",
                    "not-yours",
                    f"'{target.skill}' is not the user's own, so nothing is merged into it",
                    f"make a copy first, by editing it: tacit edit {target.skill}",
                )
            )
        merged = self._result(target, list(merging.operations), "")
        case = self._edited(target, merged, (touch, into))
        edit = msgspec.structs.replace(case.actions[0], partner=source.skill)
        return msgspec.structs.replace(case, actions=(edit, away))

    def _pin(self, kind: VersionKind) -> Effect:
        standing = self._live(self.change.skill)
        self._permit("pin", standing)
        if standing.pinned == (kind == "pin"):
            raise _unfit(
                "no-change",
                f"'{standing.skill}' is {'already' if standing.pinned else 'not'} pinned",
                "nothing to do",
            )
        return self._moved(standing, "pin", kind, "live")

    def _permit(self, act: Act, standing: SkillState, skill: Skill | None = None) -> Touch:
        """What is done to whom. Raises `Unfit` where the table says no."""
        origin = self.place.origin(skill or skill_of(standing, self.form.names))
        actor, pinned = self.change.actor, standing.pinned
        if self.form.decide(actor, act, origin, pinned=pinned) == "refuse":
            raise Unfit(self.form.refusal(actor, act, origin, standing.skill, pinned=pinned))
        return Touch(act, origin, standing.skill, pinned)

    def _result(self, standing: SkillState, operations: list[FileOperation], base: str) -> Merged:
        """The files after `operations`, merged with what happened since `base`."""
        now = standing.contents.files
        if not base:
            self._check_blind(now, operations)
            return Merged(apply_operations(now, operations, file=self.form.file))
        seen = self._version_files(standing, base)
        wanted = apply_operations(seen, operations, file=self.form.file)
        if seen == now:
            return Merged(wanted)
        return merge_files(
            seen, now, wanted, labels=("as it is now", f"the {self.change.actor}'s edit")
        )

    def _version_files(self, standing: SkillState, base: str) -> dict[str, File]:
        for version in self.history.log(standing.skill):
            if version.id == base:
                return self.history.files(version)
        raise _unfit(
            "unknown-version",
            f"'{standing.skill}' has no version {base[:12]}",
            "read the skill again and make the change on that",
        )

    def _check_blind(self, now: dict[str, File], operations: list[FileOperation]) -> None:
        """A machine that overwrites must say what it looked at, else it could undo a person."""
        if self.change.actor == "user":
            return
        blind = [
            op
            for op in operations
            if isinstance(op, Rewrite)
            or (isinstance(op, WriteFile | RemoveFile) and op.path in now)
        ]
        if blind:
            raise _unfit(
                "no-base",
                "a whole file is replaced without saying which version was read",
                "give the version as 'base', or edit the lines that change",
            )

    def _live(self, skill: str) -> SkillState:
        standing = self._look(skill)
        if not standing.is_live:
            if archived := find_archived(self.root, self.history, skill):
                key = archived.state.partition(":")[2]
                raise _unfit(
                    "archived", f"'{skill}' is archived", f"restore it first: tacit restore {key}"
                )
            raise _unfit(
                f"no-such-{self.form.noun}",
                f"there is no {self.form.noun} '{skill}' in {self.place.root}",
                f"see what there is: {self.form.see}",
            )
        if not any(name in standing.contents.files for name in self.form.names):
            noun, file = self.form.noun, self.form.file
            raise _unfit(
                f"not-a-{noun}", f"the folder '{skill}' has no {file}", f"name a {noun} in it"
            )
        return standing

    def _archived(self, skill: str) -> SkillState:
        if found := find_archived(self.root, self.history, skill):
            return found
        raise _unfit(
            "not-archived", f"no archived skill is called '{skill}'", "see them: tacit restore"
        )

    def _look(self, skill: str) -> SkillState:
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


def _unfit(rule: str, reason: str, hint: str, alternatives: tuple[str, ...] = ()) -> Unfit:
    return Unfit(Refusal("apply", rule, reason, hint, alternatives))
