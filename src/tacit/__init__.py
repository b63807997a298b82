"""Tacit turns what agents work out in their sessions into skills they keep.

This is the public face, in four groups: the library of skills, changes through the gate, sessions
and what is learned from them, and what is common to all. docs/python.md shows it whole. Importing
the package only defines names; each is loaded when it is first used.
"""

__version__ = "0.1.0"

# Public name -> the module that defines it.
_PUBLIC = {
    "Applied": "tacit.changes.change",
    "Archive": "tacit.changes.change",
    "Assembler": "tacit.traces.assembler",
    "Change": "tacit.changes.change",
    "Create": "tacit.changes.change",
    "Delete": "tacit.changes.change",
    "Draft": "tacit.learn.drafts",
    "Edit": "tacit.changes.change",
    "Effect": "tacit.changes.effect",
    "Entry": "tacit.skills.library",
    "Gate": "tacit.changes.gate",
    "Hooks": "tacit.traces.host",
    "Host": "tacit.traces.host",
    "JsonHooks": "tacit.traces.connector",
    "JsonlHost": "tacit.traces.host",
    "Library": "tacit.skills.library",
    "MergeInto": "tacit.changes.change",
    "NoNeighbours": "tacit.changes.neighbours",
    "Pin": "tacit.changes.change",
    "Place": "tacit.changes.place",
    "Preview": "tacit.changes.change",
    "Problem": "tacit.skills.skill",
    "Refusal": "tacit.changes.change",
    "RemoveFile": "tacit.changes.change",
    "Rename": "tacit.changes.change",
    "Restore": "tacit.changes.change",
    "ReviewResult": "tacit.learn.review.review_batch",
    "Rewrite": "tacit.changes.change",
    "Settings": "tacit.base.setting_sections",
    "Signs": "tacit.traces.host",
    "Skill": "tacit.skills.skill",
    "SkillFolders": "tacit.traces.host",
    "SkillSettings": "tacit.base.setting_sections",
    "Store": "tacit.traces.store",
    "TacitError": "tacit.base.errors",
    "ToolCall": "tacit.traces.trace",
    "Trace": "tacit.traces.trace",
    "Turn": "tacit.traces.trace",
    "Unpin": "tacit.changes.change",
    "Usage": "tacit.traces.trace",
    "UserPath": "tacit.traces.host_folders",
    "Verdict": "tacit.changes.change",
    "WriteFile": "tacit.changes.change",
    "acting_as": "tacit.changes.change",
    "bus": "tacit.base.event_bus",
    "check_changes": "tacit.changes.change_checks",
    "digest": "tacit.learn.digest",
    "draft_skills": "tacit.learn.drafts",
    "lint": "tacit.skills.skill_lint",
    "lint_text": "tacit.skills.skill_lint",
    "load_settings": "tacit.base.settings",
    "make_change": "tacit.changes.change",
    "parse_skill": "tacit.skills.skill_file",
    "propose_draft": "tacit.learn.drafts",
    "read_sessions": "tacit.work.intake",
    "read_skill": "tacit.skills.skill_file",
    "register_check": "tacit.changes.gate_steps",
    "register_host": "tacit.traces.host_registry",
    "review_session": "tacit.learn.review.review_batch",
    "scan": "tacit.changes.scan",
}

__all__ = [
    "Applied",
    "Archive",
    "Assembler",
    "Change",
    "Create",
    "Delete",
    "Draft",
    "Edit",
    "Effect",
    "Entry",
    "Gate",
    "Hooks",
    "Host",
    "JsonHooks",
    "JsonlHost",
    "Library",
    "MergeInto",
    "NoNeighbours",
    "Pin",
    "Place",
    "Preview",
    "Problem",
    "Refusal",
    "RemoveFile",
    "Rename",
    "Restore",
    "ReviewResult",
    "Rewrite",
    "Settings",
    "Signs",
    "Skill",
    "SkillFolders",
    "SkillSettings",
    "Store",
    "TacitError",
    "ToolCall",
    "Trace",
    "Turn",
    "Unpin",
    "Usage",
    "UserPath",
    "Verdict",
    "WriteFile",
    "acting_as",
    "bus",
    "check_changes",
    "digest",
    "draft_skills",
    "lint",
    "lint_text",
    "load_settings",
    "make_change",
    "parse_skill",
    "propose_draft",
    "read_sessions",
    "read_skill",
    "register_check",
    "register_host",
    "review_session",
    "scan",
]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tacit.base.errors import TacitError
    from tacit.base.event_bus import bus
    from tacit.base.setting_sections import Settings, SkillSettings
    from tacit.base.settings import load_settings
    from tacit.changes.change import (
        Applied,
        Archive,
        Change,
        Create,
        Delete,
        Edit,
        MergeInto,
        Pin,
        Preview,
        Refusal,
        RemoveFile,
        Rename,
        Restore,
        Rewrite,
        Unpin,
        Verdict,
        WriteFile,
        acting_as,
        make_change,
    )
    from tacit.changes.change_checks import check_changes
    from tacit.changes.effect import Effect
    from tacit.changes.gate import Gate
    from tacit.changes.gate_steps import register_check
    from tacit.changes.neighbours import NoNeighbours
    from tacit.changes.place import Place
    from tacit.changes.scan import scan
    from tacit.learn.digest import digest
    from tacit.learn.drafts import Draft, draft_skills, propose_draft
    from tacit.learn.review.review_batch import ReviewResult, review_session
    from tacit.skills.library import Entry, Library
    from tacit.skills.skill import Problem, Skill
    from tacit.skills.skill_file import parse_skill, read_skill
    from tacit.skills.skill_lint import lint, lint_text
    from tacit.traces.assembler import Assembler
    from tacit.traces.connector import JsonHooks
    from tacit.traces.host import Hooks, Host, JsonlHost, Signs, SkillFolders
    from tacit.traces.host_folders import UserPath
    from tacit.traces.host_registry import register_host
    from tacit.traces.store import Store
    from tacit.traces.trace import ToolCall, Trace, Turn, Usage
    from tacit.work.intake import read_sessions


def __getattr__(name: str) -> object:
    if name in _PUBLIC:
        from importlib import import_module

        value: object = getattr(import_module(_PUBLIC[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'tacit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
