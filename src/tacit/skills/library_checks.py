"""The library's checks for `tacit doctor`: its two indexes, and links that lead nowhere."""

import os
from functools import partial

from tacit.base import paths, settings
from tacit.base.doctor import Check, Finding, remove_path
from tacit.base.errors import BadConfig
from tacit.skills import index
from tacit.skills.index_builder import walk
from tacit.skills.scopes import skill_roots


def check_index() -> list[Finding]:
    """Every index file can be used."""
    folder = os.path.join(paths.folders().cache, "index")
    findings = []
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        path = os.path.join(folder, name)
        if name.endswith(".idx") and not index.is_sound(path):
            what = f"the index file {path} is damaged or of another version"
            findings.append(
                Finding(
                    "index",
                    what,
                    "delete it; it is built again when needed",
                    partial(remove_path, path),
                )
            )
    return findings


def check_search() -> list[Finding]:
    """The search index can be opened and holds what its manifest says."""
    from tacit.skills.search_index import SearchIndex

    search = SearchIndex(paths.folders().cache)
    if search.is_sound():
        return []
    what = f"the search index in {search.folder} is damaged"
    return [Finding("search", what, "delete it; it is built again when needed", search.discard)]


def check_links() -> list[Finding]:
    """No link in a skills folder leads nowhere."""
    try:
        chosen = settings.load_settings().settings.skills
    except BadConfig:
        return []  # said by its own check
    findings = []
    for root in skill_roots(os.getcwd(), hosts=chosen.hosts, extra=chosen.paths):
        # What came with somebody else's project is theirs, and no command is made of its names.
        for link in walk(root.path).broken if root.trusted else ():
            above, name = os.path.split(os.path.join(root.path, link))
            path = os.path.join(os.path.realpath(above), name)
            findings.append(
                Finding("link", f"{path} is a link to nothing", "remove it, or mend where it leads")
            )
    for path in chosen.paths:
        if not os.path.isdir(os.path.expanduser(path)):
            what = f"skills.paths names {path}, which is not a folder"
            findings.append(Finding("paths", what, "mend the setting: tacit config --path"))
    return findings


LIBRARY_CHECKS: tuple[Check, ...] = (check_index, check_search, check_links)
