"""Everyday calls answered at once: no command-line library, a handful of imports.

Only what needs no arguments and no settings is done here, with the same code that the full
commands use; for everything else `answer` steps aside.
"""

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def answer(arguments: list[str]) -> int | None:
    """Do what `arguments` ask for and return the exit code, or None if that is not for here."""
    if arguments in (["--version"], ["-V"]):
        from tacit import __version__

        sys.stdout.write(f"tacit {__version__}\n")
        return 0
    if arguments == ["prompt-status"] and not _completing():
        from tacit.base.paths import folders
        from tacit.base.prompt_line import take

        if text := take(folders().data):
            # A terminal that cannot show a character must not turn a prompt into an error.
            coding = getattr(sys.stdout, "encoding", None) or "utf-8"
            sys.stdout.write(f"{text}\n".encode(coding, "replace").decode(coding, "replace"))
        return 0
    if arguments in (["list"], ["ls"], ["catalogue"]) and not _completing():
        from tacit.base import paths

        try:
            cwd = os.getcwd()
        except OSError:
            return None
        if paths.config_variables() or paths.config_files(cwd):
            return None
        gc.disable()  # what is printed once leaves no garbage worth looking for
        try:
            code = _catalogue(cwd) if arguments == ["catalogue"] else _list(cwd)
        except OSError as error:
            from tacit.ui.cli.app import report_system

            code = report_system(error, arguments)
        # Nothing is left to do, so leave without taking a large heap apart first.
        os._exit(code)
    return None


def _completing() -> bool:
    return "_TACIT_COMPLETE" in os.environ


def _list(cwd: str) -> int:
    from itertools import chain, repeat

    from tacit.base import paths
    from tacit.skills import index
    from tacit.skills.precedence import AGAIN, states
    from tacit.skills.scopes import roots
    from tacit.ui.cli import listing

    cache = paths.folders().cache
    snapshots = [(root, index.load(root.path, cache)) for root in roots(cwd)]
    lines: list[Iterable[listing.Line]] = []
    for (root, snapshot), marks in zip(snapshots, states(snapshots), strict=True):
        known, scopes = snapshot.columns, repeat(root.scope)
        some = zip(known.names, scopes, known.descriptions, marks, known.worst, strict=False)
        lines.append([line for line in some if line[3] != AGAIN] if AGAIN in marks else some)
    return listing.write(chain.from_iterable(lines))


def _catalogue(cwd: str) -> int:
    from tacit.changes.pins import pinned_skills
    from tacit.skills.library import Library
    from tacit.ui.cli.listing import put

    return put([Library(cwd).catalogue(pinned=pinned_skills(cwd)).text])
