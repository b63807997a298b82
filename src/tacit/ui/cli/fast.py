"""Everyday calls answered at once, with a handful of imports and no command-line library.

Owns the table of skills that `tacit list` prints. Only calls without options and without
settings are answered here; `answer` returns None for all others, and `app` takes over.
"""

import gc
import os
import sys
from itertools import islice

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable


SkillLine = tuple[str, str, str, str, str]
"""Name, scope, description, state, gravest problem."""

_ROWS_AT_ONCE = 200
_DIM, _BOLD, _RED, _YELLOW, _END = "\x1b[2m", "\x1b[1m", "\x1b[31m", "\x1b[33m", "\x1b[0m"
_GREEN = "\x1b[32m"


def write_skills(rows: "Iterable[SkillLine]", standings: "dict[str, str] | None" = None) -> int:
    """Print `rows`; the exit code is 0 also when there are none. A terminal has `standings` too."""
    if sys.stdout.isatty():
        from tacit.base.display import can_colour, columns

        text = skill_table(list(rows), columns(), can_colour(), standings or {})
        if text.count("\n") > 24 and sys.stdin.isatty():
            from tacit.ui.cli.output import page

            page(text)
            return 0
        return write_parts([text])
    # In parts: one text of all lines is as wide as its widest character, and slow to fill.
    rows = iter(rows)
    return write_parts(iter(lambda: tab_separated(islice(rows, _ROWS_AT_ONCE)), ""))


def write_parts(parts: "Iterable[str]") -> int:
    """Write to standard output. A reader that goes away early, as `head` does, is no error."""
    try:
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
        for part in parts:
            sys.stdout.write(part)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def tab_separated(rows: "Iterable[SkillLine]") -> str:
    """A line a skill: name, scope, state, description, with tabs between."""
    return "".join([f"{name}\t{scope}\t{state}\t{text}\n" for name, scope, text, state, _ in rows])


def skill_table(
    rows: list[SkillLine], space: int, colour: bool, standings: dict[str, str] | None = None
) -> str:
    """The same for people, with what trials say and a line at the end that counts them."""
    from tacit.base.display import fit, pad, width

    if not rows:
        return "No skills yet. Put a folder with a SKILL.md into ~/.agents/skills\n"
    names = min(max(width(row[0]) for row in rows), max(space // 3, 16), 44)
    scopes = max(len(row[1]) for row in rows)
    left = max(space - names - scopes - 4, 10)
    out = []
    for name, scope, text, state, worst in rows:
        mark = _mark(state, worst, (standings or {}).get(name, ""))
        shown = f"{mark} {text}" if mark else text
        line = f"{pad(name, names)}  {pad(scope, scopes)}  "
        if colour:
            tone = _DIM if state != "active" else ""
            accent = _RED if worst == "error" or mark.endswith("harms]") else _YELLOW
            accent = _GREEN if mark == "[helps]" else accent
            cut = fit(shown, left)
            if mark:
                cut = f"{accent}{cut[: len(mark)]}{_END}{tone}{cut[len(mark) :]}"
            out.append(f"{tone}{_BOLD if not tone else ''}{pad(name, names)}{_END}{tone}  ")
            out.append(f"{_DIM}{pad(scope, scopes)}{_END}{tone}  {cut}{_END}\n")
        else:
            out.append(f"{line}{fit(shown, left)}\n")
    out.append(f"\n{count_line(rows)}\n")
    return "".join(out)


def count_line(rows: list[SkillLine]) -> str:
    """How many there are, by scope and state."""
    scopes: dict[str, int] = {}
    states: dict[str, int] = {}
    broken = 0
    for _, scope, _, state, worst in rows:
        scopes[scope] = scopes.get(scope, 0) + 1
        states[state] = states.get(state, 0) + 1
        broken += worst == "error"
    parts = [f"{count:,} {scope}" for scope, count in scopes.items()]
    text = f"{len(rows):,} {'skill' if len(rows) == 1 else 'skills'}: {', '.join(parts)}"
    if states.get("shadowed"):
        text += f" · {states['shadowed']:,} shadowed"
    if states.get("untrusted"):
        text += f" · {states['untrusted']:,} not trusted (tacit trust)"
    if broken:
        text += f" · {broken:,} with errors (tacit lint)"
    return text


def _mark(state: str, worst: str, standing: str) -> str:
    if state != "active":
        return f"[{state}, {standing}]" if standing and state == "archived" else f"[{state}]"
    return "[error]" if worst == "error" else f"[{standing}]" if standing else ""


def answer(arguments: list[str]) -> int | None:
    """Do what `arguments` ask for and return the exit code, or None if that is not for here."""
    if arguments in (["--version"], ["-V"]):
        from tacit import __version__

        sys.stdout.write(f"tacit {__version__}\n")
        return 0
    if arguments == ["prompt-status"] and not _is_completing():
        from tacit.base.paths import folders
        from tacit.base.prompt_line import take

        if text := take(folders().data):
            # A terminal that cannot show a character must not turn a prompt into an error.
            coding = getattr(sys.stdout, "encoding", None) or "utf-8"
            sys.stdout.write(f"{text}\n".encode(coding, "replace").decode(coding, "replace"))
        return 0
    if arguments in (["list"], ["ls"], ["catalogue"]) and not _is_completing():
        from tacit.base import paths

        try:
            cwd = os.getcwd()
        except OSError:
            return None
        if paths.config_variables() or paths.config_files(cwd):
            return None
        gc.disable()  # what is printed once leaves no garbage worth looking for
        try:
            code = _print_catalogue(cwd) if arguments == ["catalogue"] else _list_skills(cwd)
        except OSError as error:
            from tacit.ui.cli.app import report_system

            code = report_system(error, arguments)
        # Nothing is left to do, so leave without taking a large heap apart first.
        os._exit(code)
    return None


def _is_completing() -> bool:
    return "_TACIT_COMPLETE" in os.environ


def _list_skills(cwd: str) -> int:
    from itertools import chain, repeat

    from tacit.base import paths
    from tacit.skills import index
    from tacit.skills.scopes import REPEATED, skill_roots, skill_states
    from tacit.skills.standing import standings_in

    cache = paths.folders().cache
    snapshots = [(root, index.load(root.path, cache)) for root in skill_roots(cwd)]
    lines: list[Iterable[SkillLine]] = []
    for (root, snapshot), marks in zip(snapshots, skill_states(snapshots), strict=True):
        known, scopes = snapshot.columns, repeat(root.scope)
        some = zip(known.names, scopes, known.descriptions, marks, known.worst, strict=False)
        lines.append([line for line in some if line[3] != REPEATED] if REPEATED in marks else some)
    return write_skills(chain.from_iterable(lines), standings_in(snapshots))


def _print_catalogue(cwd: str) -> int:
    from tacit.base import paths
    from tacit.changes.pins import pinned_skills
    from tacit.skills import index
    from tacit.skills.catalogue import BUDGET, CatalogueOrder, make_catalogue, offered_rows
    from tacit.skills.project_terms import project_terms
    from tacit.skills.scopes import skill_roots, skill_states
    from tacit.skills.standing import standings_in

    recent: tuple[str, ...] = ()
    if os.path.exists(os.path.join(paths.folders().data, "tacit.db")):
        from tacit.traces.skill_uses import recently_used

        recent = recently_used()
    cache = paths.folders().cache
    snapshots = [(root, index.load(root.path, cache)) for root in skill_roots(cwd)]
    offers = offered_rows(snapshots, skill_states(snapshots))
    tried = standings_in(snapshots)
    order = CatalogueOrder(pinned_skills(cwd), recent, terms=project_terms(cwd), standings=tried)
    return write_parts([make_catalogue(offers, BUDGET, order).text])
