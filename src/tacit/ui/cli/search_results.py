"""`tacit search`: the skills, or the sessions, that fit a few words or a whole task.

Making and asking the index is `skills/`'s and `traces/`'s; owned here is what is printed, and
the bar that is shown while many skills are indexed for the first time.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from tacit.base.display import columns, fit, plain
from tacit.base.errors import Usage
from tacit.skills.library import library_here
from tacit.skills.search_index import Progress
from tacit.skills.skill_search import Search
from tacit.ui.cli import output
from tacit.ui.cli.command import command
from tacit.ui.cli.skills import rows_with_use


@command(
    "search",
    "find",
    "Find the skill that fits a task.",
    'tacit search "resolve a merge conflict"',
    "tacit search 数据库 迁移",
    'tacit search -n 3 --json "deploy to kubernetes"',
    "tacit search - < task.md           a whole task description",
    "tacit search --sessions KeyError   what agents did",
    note="Exit code 1 when nothing fits.",
)
@click.argument("words", nargs=-1, required=True)
@click.option("-n", "--limit", type=click.IntRange(1, 1000), help="How many results.")
@click.option("--sessions", is_flag=True, help="Search what agents did, not skills.")
def search_command(words: tuple[str, ...], limit: int | None, sessions: bool, as_json: bool) -> int:
    """Find the skill that fits a task.

    WORDS may be a few words or a whole description; '-' reads it from standard input. Names,
    descriptions and whole bodies are searched; the line that fits best is shown. What was
    archived is found too, and marked; `tacit restore NAME` brings it back.
    """
    query = sys.stdin.read() if words == ("-",) else " ".join(words)
    if not query.strip():
        raise Usage("nothing to search for", 'say what the task is: tacit search "…"')
    if sessions:
        return _search_sessions(query, limit or 10, as_json)
    library = library_here()
    limit = limit or library.settings.search.limit
    with indexing_progress() as progress:
        search = Search(library, progress, archived=True, soon=query)
    hits = search.find(query, limit)
    if search.behind:
        text = "Not all skills are indexed yet; that goes on by itself. Search again in a minute."
        click.echo(text, err=True)
    if as_json:
        skills = rows_with_use([hit.entry for hit in hits])
        rows = [
            {"skill": skill, "score": hit.score, "line": hit.line, "text": hit.text}
            for skill, hit in zip(skills, hits, strict=True)
        ]
        output.write_json({"query": query, "results": rows})
        return 0 if hits else 1
    if not hits:
        click.echo("No skill fits. All of them: tacit list", err=True)
        return 1
    space = columns()
    for number, hit in enumerate(hits, 1):
        entry = hit.entry
        mark = "" if entry.state == "active" else click.style(f" [{entry.state}]", fg="yellow")
        scope = click.style(f"({entry.scope})", dim=True)
        click.echo(f"{number:>2}  {click.style(entry.name, bold=True)} {scope}{mark}")
        click.echo(f"    {fit(entry.description, space - 4)}")
        if hit.line:
            place = click.style(f"line {hit.line}:", dim=True)
            click.echo(
                f"    {place} {fit(plain(hit.text).strip(), space - 12 - len(str(hit.line)))}"
            )
    return 0


def _search_sessions(query: str, limit: int, as_json: bool) -> int:
    from tacit.traces.store import Store
    from tacit.ui.cli.sessions import write_hits

    with Store.open() as store:
        hits = store.search(query, limit=limit)
    if as_json:
        output.write_json({"query": query, "turns": hits})
        return 0 if hits else 1
    if not hits:
        click.echo("No session holds all of these words. Take in more: tacit import", err=True)
        return 1
    write_hits(hits)
    return 0


@contextmanager
def indexing_progress() -> Iterator[Progress | None]:
    """A bar on a terminal while many skills are put into the index for the first time."""
    if not sys.stderr.isatty():
        yield None
        return
    shown = False

    def tell(done: int, total: int) -> None:
        nonlocal shown
        if total >= 500:
            shown = True
            bar = output.share_bar(done / total, 30)
            sys.stderr.write(f"\rindexing skills  {bar:<30}  {done:,} of {total:,} (once)")
            sys.stderr.flush()

    try:
        yield tell
    finally:
        if shown:
            sys.stderr.write("\r\x1b[K")
