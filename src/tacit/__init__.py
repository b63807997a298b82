"""Tacit turns what agents work out in their sessions into skills they keep.

Importing this package only defines names; each is loaded when it is first used.
"""

__version__ = "0.1.0"

# Public name -> the module that defines it.
_PUBLIC = {
    "Change": "tacit.changes.change",
    "Entry": "tacit.skills.library",
    "Gate": "tacit.changes.gate",
    "Library": "tacit.skills.library",
    "Place": "tacit.changes.place",
    "Problem": "tacit.skills.skill",
    "Settings": "tacit.base.settings",
    "Skill": "tacit.skills.skill",
    "TacitError": "tacit.base.errors",
    "Verdict": "tacit.changes.change",
    "acting_as": "tacit.changes.change",
    "lint": "tacit.skills.skill_lint",
    "make_change": "tacit.changes.change",
    "parse_skill": "tacit.skills.skill_file",
    "read_skill": "tacit.skills.skill_file",
}

__all__ = [
    "Change",
    "Entry",
    "Gate",
    "Library",
    "Place",
    "Problem",
    "Settings",
    "Skill",
    "TacitError",
    "Verdict",
    "acting_as",
    "lint",
    "make_change",
    "parse_skill",
    "read_skill",
]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tacit.base.errors import TacitError
    from tacit.base.settings import Settings
    from tacit.changes.change import Change, Verdict, acting_as, make_change
    from tacit.changes.gate import Gate
    from tacit.changes.place import Place
    from tacit.skills.library import Entry, Library
    from tacit.skills.skill import Problem, Skill
    from tacit.skills.skill_file import parse_skill, read_skill
    from tacit.skills.skill_lint import lint


def __getattr__(name: str) -> object:
    if name in _PUBLIC:
        from importlib import import_module

        value: object = getattr(import_module(_PUBLIC[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'tacit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
