"""Building rows of the index by reading skills. The cold half of `index.py`."""

import os
import re
from hashlib import blake2b

from tacit.base.terminal import one_line
from tacit.skills import index
from tacit.skills.index import Snapshot
from tacit.skills.problems import problem
from tacit.skills.reading import FILE_NAMES, parse_skill, read_bytes
from tacit.skills.skill import Skill
from tacit.skills.walk import walk


def build(root: str, known: Snapshot | None = None) -> Snapshot:
    """Walk `root`; rows of `known` whose file did not change are taken over."""
    looked_at = index.now()
    found = walk(root)
    before = {row[index.FOLDER]: row for row in known.rows} if known else {}
    rows = []
    for folder, file in found.skills.items():
        real = found.links.get(folder, "")
        row = before.get(folder)
        if row is None or not _still_holds(root, row, file, real):
            row = read_row(root, folder, file, real, looked_at)
        rows.append(row)
    rows.sort(key=_order)
    categories = []
    # Where the file has an unusual name, one with the usual name may appear beside it.
    unusual = [folder for folder, file in found.skills.items() if file != FILE_NAMES[0]]
    for folder in [*found.categories, *unusual]:
        try:
            status = os.stat(os.path.join(root, folder))
        except OSError:
            continue
        categories.append((folder, index.trusted_stamp(status, looked_at)))
    return Snapshot(root, rows, categories, found.twice, found.broken)


def _order(row: index.Row) -> tuple[str, bool, int, list[tuple[bool, int, str]]]:
    """By name; and who wins a name: a folder that bears it, then the less deep, then by path.

    Numbers in paths count as numbers, so that `skill-2` comes before `skill-10`.
    """
    folder, name = row[index.FOLDER], row[index.NAME]
    parts = re.split(r"(\d+)", folder)
    natural = [(p.isdecimal(), int(p) if p.isdecimal() else 0, p) for p in parts if p]
    return (name, folder.rpartition("/")[2] != name, folder.count("/"), natural)


def refresh(known: Snapshot, stale: list[int]) -> Snapshot:
    """`known` with the rows numbered in `stale` read again."""
    looked_at = index.now()
    rows = list(known.rows)
    renamed = False
    for number in stale:
        before = rows[number]
        folder, file, real = (before[i] for i in (index.FOLDER, index.FILE, index.REAL))
        if real:
            real = os.path.realpath(os.path.join(known.root, folder))
        rows[number] = read_row(known.root, folder, file, real, looked_at)
        renamed = renamed or rows[number][index.NAME] != before[index.NAME]
    if renamed:  # of what the order goes by, nothing else can have changed
        rows.sort(key=_order)
    return Snapshot(known.root, rows, known.categories, known.twice, known.broken)


def read_row(root: str, folder: str, file: str, real: str, looked_at: int) -> "index.Row":
    """The row of one skill; an unreadable file gives a row that says so."""
    path = os.path.join(root, folder, file)
    name = os.path.basename(folder)
    stamp = (0, 0, 0, 0)
    digest = ""
    try:
        stamp = index.trusted_stamp(os.stat(path), looked_at)
        data, size = read_bytes(path)
        digest = blake2b(data, digest_size=8).hexdigest()
        skill = parse_skill(data, name, file=file, size=size)
    except OSError as error:
        why = error.strerror or type(error).__name__
        skill = Skill(name=name, description="", problems=(problem("unreadable", 1, why=why),))
    flags = (index.NO_MODEL if skill.disable_model_invocation else 0) | (
        0 if skill.user_invocable else index.NO_USER
    )
    return (
        folder,
        file,
        one_line(skill.name),
        one_line(skill.description),
        one_line(skill.source),
        flags,
        skill.paths,
        real,
        one_line(skill.version),
        skill.worst or "",
        stamp,
        digest,
    )


def _still_holds(root: str, row: "index.Row", file: str, real: str) -> bool:
    if row[index.FILE] != file or row[index.REAL] != real:
        return False
    try:
        status = os.stat(os.path.join(root, row[index.FOLDER], file))
    except OSError:
        return False
    return bool(index.stamp(status) == row[index.STAMP])
