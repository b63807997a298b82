"""Everyday calls answered at once: no command-line library, no structs, a handful of imports.

Only what needs no arguments and no settings is done here, with the same code that the full
commands use; for everything else `answer` steps aside.
"""

import gc
import os
import sys


def answer(arguments: list[str]) -> int | None:
    """Do what `arguments` ask for and return the exit code, or None if that is not for here."""
    if arguments in (["--version"], ["-V"]):
        from tacit import __version__

        sys.stdout.write(f"tacit {__version__}\n")
        return 0
    if arguments in (["list"], ["ls"]) and not _completing():
        from tacit.base import paths

        try:
            cwd = os.getcwd()
        except OSError:
            return None
        if paths.config_variables() or paths.config_files(cwd):
            return None
        try:
            return _list(cwd)
        except OSError:
            return None  # the full command says what is wrong
    return None


def _completing() -> bool:
    return "_TACIT_COMPLETE" in os.environ


def _list(cwd: str) -> int:
    gc.disable()  # a list that is printed once leaves no garbage worth looking for
    from tacit.base import paths
    from tacit.skills import index
    from tacit.skills.precedence import rank
    from tacit.skills.scopes import roots
    from tacit.ui.cli import listing

    cache = paths.folders().cache
    ranked, _ = rank([(root, index.load(root.path, cache)) for root in roots(cwd)])
    name, description, worst = index.NAME, index.DESCRIPTION, index.WORST
    code = listing.write(
        [
            (row[name], root.scope, row[description], state, row[worst])
            for root, row, state, _ in ranked
        ]
    )
    # Nothing is left to do, so leave without taking a large heap apart first.
    os._exit(code)
