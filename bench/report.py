"""The figures as an aligned table, or as JSON."""

import os
from datetime import date

import msgspec

from bench.measure import Figure, Timing
from bench.pool import Pool

_HEADINGS = ("", "ours", "other", "against", "best", "median", "cpu", "aim", "")


def as_text(pool: Pool, figures: list[Figure], missing: list[str]) -> str:
    """A line a figure: best (median) of both sides, their ratio by best and by median."""
    machine = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end"
    out = [
        f"{len(pool.skills):,} skills ({pool.name}), {len(pool.queries)} queries; {machine}",
        "Times on the clock, best (median). Then ratios, ours to the other: of the best times, of",
        "the medians, and of the least times on the processor. Below 1, ours is less.",
    ]
    rows: list[tuple[str, ...]] = []
    for group in dict.fromkeys(figure.group for figure in figures):
        rows.append((f"-- {group}",))
        rows.extend(_cells(figure) for figure in figures if figure.group == group)
    columns = len(_HEADINGS)
    widths = [
        max(len(row[i]) for row in [_HEADINGS, *rows] if len(row) == columns)
        for i in range(columns)
    ]
    for row in [_HEADINGS, *rows]:
        cells = [
            cell.ljust(width) if number in (0, 3, columns - 1) else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=False))
        ]
        out.append("  ".join(cells).rstrip())
    out.extend(f"not compared: {why}" for why in missing)
    return "\n".join(out)


_BEGIN, _END = "<!-- scripts/bench --write -->\n", "<!-- end -->\n"


def write_page(path: str, pool: Pool, figures: list[Figure], missing: list[str]) -> None:
    """Put the table in the place of the last one, between the two marks of a Markdown page."""
    with open(path, encoding="utf-8") as file:
        before, found, rest = file.read().partition(_BEGIN)
    _, ends, after = rest.partition(_END)
    if not found or not ends:
        raise ValueError(f"{path} has no place for the table: {_BEGIN.strip()} … {_END.strip()}")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{before}{_BEGIN}\n{as_markdown(pool, figures, missing)}\n{_END}{after}")


def as_markdown(pool: Pool, figures: list[Figure], missing: list[str]) -> str:
    """A table a group, with the same figures."""
    machine = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end"
    count = f"{len(pool.skills):,} skills and {len(pool.queries)} tasks"
    out = [f"{date.today()}: {count}; {machine}."]
    heads = ("ours", "other", "against", "best", "median", "processor", "aim", "")
    for group in dict.fromkeys(figure.group for figure in figures):
        out += ["", f"| {group} | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
        rows = (_cells(figure) for figure in figures if figure.group == group)
        out += [f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows]
    out += ["", *(f"Not compared: {why}" for why in missing)]
    return "\n".join(out).rstrip() + "\n"


def as_json(pool: Pool, figures: list[Figure], missing: list[str]) -> str:
    """The same with every single time in it."""
    content = {
        "pool": {"name": pool.name, "skills": len(pool.skills), "queries": len(pool.queries)},
        "figures": figures,
        "missing": missing,
    }
    return msgspec.json.format(msgspec.json.encode(content)).decode()


def _cells(figure: Figure) -> tuple[str, ...]:
    values = list(figure.values)
    ours = _time(figure.ours) if figure.ours else (values.pop(0) if values else "")
    theirs = _time(figure.theirs) if figure.theirs else (values.pop(0) if values else "")
    verdict = {True: "met", False: "MISSED", None: ""}[figure.met]
    return (
        figure.name,
        ours,
        theirs,
        figure.against,
        f"{figure.ratio:.2f}" if figure.ratio is not None else "",
        f"{figure.median_ratio:.2f}" if figure.median_ratio is not None else "",
        f"{figure.cpu_ratio:.2f}" if figure.cpu_ratio is not None else "",
        f"≤ {figure.aim:g}" if figure.aim is not None else "",
        "; ".join(part for part in (verdict, *values) if part),
    )


def _time(timing: Timing) -> str:
    if timing.best < 1:
        return f"{timing.best * 1000:.1f} ({timing.median * 1000:.1f}) ms"
    return f"{timing.best:.2f} ({timing.median:.2f}) s"
