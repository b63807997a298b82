"""What the parent does for the reviewer: the library, the session's pages, and opening the desk.

The child is not believed: a skill gets onto the desk only from here, and only a learned one. What
comes off the desk is judged again by the gate, whatever was asked of this.
"""

import os
from collections.abc import Callable
from typing import Any

from tacit.agent.tools.tool import Failed, Result
from tacit.base.errors import NotFound, TacitError
from tacit.changes.change import SKILL_FILE
from tacit.changes.contain import Escape, open_root, open_skill, read_contents
from tacit.changes.files import File
from tacit.changes.gate import Gate
from tacit.changes.place import Place
from tacit.changes.standing import skill_of
from tacit.learn.background.staging import Staging
from tacit.learn.pages import Pages
from tacit.learn.review.names import unfit_name
from tacit.learn.telling import clean, cut
from tacit.skills.library import Entry, Library

_FOUND = 6
_SHOWN = 12_000


class Serving:
    """Answers what the child asks. Every refusal is a `Failed` that the model reads."""

    def __init__(
        self, gate: Gate, staging: Staging, library: Library, pages: Pages, root: str
    ) -> None:
        self._gate = gate
        self._staging = staging
        self._library = library
        self._pages = pages
        self._root = root
        self._known: dict[str, Callable[..., str]] = {
            "read_trace": self.read_trace,
            "search_skills": self.search_skills,
            "view_skill": self.view_skill,
            "begin_skill": self.begin_skill,
            "open_skill": self.open_skill,
        }

    def add(self, name: str, function: Callable[..., str]) -> None:
        """Serve one thing more."""
        self._known[name] = function

    def serve(self, name: str, arguments: dict[str, Any]) -> Result:
        function = self._known.get(name)
        if function is None:
            raise Failed(f"nothing here is called '{name}'")
        try:
            return Result(function(**arguments))
        except TypeError as error:  # the arguments do not fit
            raise Failed(f"{name}: {error}") from None
        except TacitError as error:
            raise Failed(
                f"{error.message}; {error.hint}" if error.hint else error.message
            ) from None
        except Escape as escape:
            raise Failed(f"{escape.refusal.reason}; {escape.refusal.hint}") from None

    def read_trace(self, page: int) -> str:
        if not 1 <= page <= len(self._pages):
            raise Failed(f"there are {len(self._pages)} pages, from 1")
        return f"Page {page} of {len(self._pages)}\n{self._pages.texts[page - 1]}"

    def search_skills(self, query: str) -> str:
        hits = self._library.search(query[:2000], _FOUND)
        rows = [
            f"- {hit.entry.name} ({_whose(hit.entry)}): {cut(hit.entry.description, 300)}"
            for hit in hits
            if hit.entry.state == "active"
        ]
        return clean("\n".join(rows)) or "(no skill fits)"

    def view_skill(self, name: str, path: str = SKILL_FILE) -> str:
        entry = self._find(name)
        files = _files(entry)
        file = files.get(path) or (files.get(entry.file) if path == SKILL_FILE else None)
        others = ", ".join(sorted(p for p in files if p != path)[:40])
        if file is None:
            raise Failed(f"'{name}' has no file '{path}'; it has: {', '.join(sorted(files)[:40])}")
        text = cut(clean(file.data.decode("utf-8", "replace")), _SHOWN)
        more = f"\n(other files: {others})" if others else ""
        return f"({_whose(entry)})\n{text}{more}"

    def begin_skill(self, name: str) -> str:
        """Whether a new skill of this name may be begun."""
        if why := unfit_name(name):
            raise Failed(f"{why}; name it for the class of work that it is about")
        entry = self._library.find(name)
        if entry is not None:
            instead = "edit it" if entry.origin == "learned" else "leave it as it is"
            raise Failed(f"there is a skill '{entry.name}' already ({_whose(entry)}); {instead}")
        if self._gate.look(name, self._root).is_live:
            raise Failed(f"there is a folder '{name}' already; choose another name")
        return "free"

    def open_skill(self, name: str) -> str:
        """Put a copy of a learned skill on the desk."""
        entry = self._find(name)
        if os.path.realpath(entry.root) not in self._gate.sites:
            raise Failed(f"'{entry.name}' lies in {entry.root}, where nothing is changed from here")
        folder = os.path.relpath(entry.folder, entry.root)
        standing = self._gate.look(folder, entry.root)
        if not standing.is_live or not skill_of(standing).learned:
            raise Failed(
                f"'{entry.name}' does not say 'source: auto-skill': it is the user's, and stays as "
                "it is"
            )
        if standing.pinned:
            raise Failed(f"'{entry.name}' is pinned: nobody but the user changes it")
        if os.path.basename(folder) != name:
            raise Failed(f"write its path with the folder's name: {os.path.basename(folder)}/…")
        self._staging.copy_in(self._gate, folder, entry.root)
        return "open"

    def _find(self, name: str) -> Entry:
        entry = self._library.find(name) if "/" not in name else None
        if entry is None:
            near = ", ".join(self._library.suggest(name))
            raise NotFound(f"there is no skill '{name}'", f"near: {near}" if near else "search")
        if entry.state == "untrusted":
            raise Failed(f"'{name}' belongs to a project that the user does not trust")
        return entry


def _whose(entry: Entry) -> str:
    return "learned, may be changed" if entry.origin == "learned" else "the user's, read only"


def _files(entry: Entry) -> dict[str, File]:
    """A skill's files, read by handles; links are left out."""
    project = "" if entry.scope != "project" else _above(entry.root)
    with open_root(Place(entry.root, entry.scope, project)) as root:
        folder = os.path.relpath(os.path.realpath(entry.folder), os.path.realpath(entry.root))
        with open_skill(root, folder) as opened:
            found = read_contents(opened).files
    return {path: file for path, file in found.items() if file.kind != "link"}


def _above(root: str) -> str:
    """The project of a project's skills folder: two levels up, for every host."""
    return os.path.dirname(os.path.dirname(root))
