"""Ranked search over the library: which skills fit a few words, or a page-long task.

Two passes. The first is BM25 over the whole text and over what says what a skill is for (name,
description, headings), with the rarest words of the query. The second takes the fifty best and asks
how much of a skill's name and description the query mentions. `docs/search.md` says how well each
does. The index on disk is `search_index.py`'s.
"""

import os
import sys
from collections import Counter
from contextlib import suppress
from functools import partial
from heapq import nlargest
from math import log
from typing import TYPE_CHECKING, Any

import msgspec
import tantivy

from tacit.base.atomic_files import locked
from tacit.base.display import one_line
from tacit.base.errors import Busy
from tacit.skills import frontmatter, index, search_index
from tacit.skills.library import Entry, archive_snapshots, archived_entries
from tacit.skills.scopes import REPEATED
from tacit.skills.search_index import Pending, Progress, SearchIndex, document_key, is_damage
from tacit.skills.skill_file import decode, read_skill_bytes

if TYPE_CHECKING:
    from tacit.skills.library import Library

# Each sits on a broad plateau; see docs/search.md before turning one.
META_WEIGHT = 0.4
RARITY = 0.5
MOST_TERMS = 80
LEAD = 1.0
LEAD_WORDS = 200
CANDIDATES = 50
NAME_COVER = 0.4
DESCRIPTION_COVER = 0.5
ABOUT_WEIGHT = 0.2
_LINE_TERMS = 12
_MOST_TIES = 10_000
# So many copies of one name are looked at for each result.
_COPIES = 4
# With more to put into the index than this, an answer does not wait for all of them.
_MANY = 3_000
_SOON_SKILLS, _SOON_STEMS = 1_000, 20
_PART = 10_000


class Hit(msgspec.Struct, frozen=True):
    """A skill that fits, how well, and the line of its body that fits best."""

    entry: Entry
    score: float
    line: int
    """The line in its SKILL.md; 0 when only name or description fit."""
    text: str


class Search:
    """Search over one library. Bringing the index up to date happens at the start.

    `archived`: over archived skills as well; such a hit's entry says so in its state. `soon`: a
    query that is to be answered at once. Where many skills are not in the index yet, those that
    fit it by name and description are put in, and a process of its own goes on with the rest.
    """

    def __init__(
        self,
        library: "Library",
        progress: Progress | None = None,
        *,
        archived: bool = False,
        soon: str = "",
    ) -> None:
        archives = archive_snapshots(library) if archived else []
        listed = [*library.snapshots, *archives]
        self._library = library
        self._roots = {root.path for root, _ in listed}
        self._index = SearchIndex(library.cache)
        self._snapshots = [snapshot for _, snapshot in listed]
        choice = partial(_likely, search_index.as_utf8(soon)) if soon else None
        self._index.update(self._snapshots, progress, choice)
        self.behind = self._index.behind
        """How many skills are not in the index yet."""
        if self.behind:
            _go_on(library.cwd)
        self._archived = {document_key(e.folder): e for e in archived_entries(archives)}
        self._prepare()

    def _prepare(self) -> None:
        self._searcher = self._index.searcher()
        self._schema = self._index.schema
        self._count = int(self._searcher.num_docs)
        self._rarity: dict[tuple[str, str], float] = {}
        others = self._index.holds_others(self._roots)
        self._filter = self._root_filter(self._roots) if others else None

    def find(self, query: str, limit: int = 10, about: str = "") -> list[Hit]:
        """The best `limit` skills for `query`, best first; ties in the order of their names.

        `about`: words for what it is asked in, which count a little: the project, the task.

        Of several skills of one name one is shown: of copies in one folder of skills the one that
        fits best, or the newest; of copies in several, one that lies where the name's own does.
        """
        query = search_index.as_utf8(query)
        about = search_index.as_utf8(about)
        best = _one_a_name(self._scores(query, limit * _COPIES, about))[:limit]
        rare_terms = self._rarest(search_index.without_stop_words(Counter(_exact(query))))
        return [Hit(entry, score, *best_line(entry, rare_terms)) for score, entry in best]

    def scores(self, query: str, limit: int = 10) -> list[tuple[float, Entry]]:
        """As `find`, by the index alone: no skill is opened."""
        return self._scores(search_index.as_utf8(query), limit)

    def _scores(self, query: str, limit: int, about: str = "") -> list[tuple[float, Entry]]:
        try:
            return self._rank(query, limit, about)
        except BaseException as error:
            if not is_damage(error):
                raise
        self._index.rebuild(self._snapshots)  # some damage shows only when it is read
        self._prepare()
        return self._rank(query, limit, about)

    def _rank(self, query: str, limit: int, about: str) -> list[tuple[float, Entry]]:
        exact, stemmed = _exact(query), _stemmed(query)
        plain = search_index.without_stop_words(Counter(exact))
        stems = search_index.without_stop_words(Counter(stemmed), stemmed=True)
        clauses = self._clauses("text", _emphasis(exact, plain), 1.0)
        clauses += self._clauses("meta", _emphasis(stemmed, stems), META_WEIGHT)
        if not clauses or limit < 1:
            return []
        must, should = tantivy.Occur.Must, tantivy.Occur.Should
        wanted = tantivy.Query.boolean_query(clauses)
        if near := self._near(about, plain, stems):
            nearer = tantivy.Query.boolean_query(near)
            wanted = tantivy.Query.boolean_query([(must, wanted), (should, nearer)])
        if self._filter is not None:
            wanted = tantivy.Query.boolean_query([(must, wanted), (must, self._filter)])
        scored: list[tuple[float, Entry]] = []
        # Other ways to the same folder take up places: ask for more.
        for score, address in self._candidates(wanted, max(CANDIDATES, limit * 2)):
            document = self._searcher.doc(address)
            entry = self._entry(str(document.get_first("key")))
            if entry is not None:
                name, about = bytes(document.get_first("cover") or b"\n").decode().split("\n")
                boost = NAME_COVER * _cover(name, stems) + DESCRIPTION_COVER * _cover(about, stems)
                # Rounded, so that the order does not depend on how the engine adds up its floats.
                scored.append((float(f"{score * (1 + boost):.5g}"), entry))
        return _in_order(scored)[:limit]

    def _near(
        self, about: str, plain: "Counter[str]", stems: "Counter[str]"
    ) -> list[tuple[tantivy.Occur, tantivy.Query]]:
        """What counts a little among skills that fit: the words of `about` beyond the query's."""
        words = search_index.without_stop_words(Counter(_exact(about)))
        others = search_index.without_stop_words(Counter(_stemmed(about)), stemmed=True)
        fields = (("text", words, plain, 1.0), ("meta", others, stems, META_WEIGHT))
        return [
            clause
            for field, said, known, weight in fields
            for clause in self._clauses(
                field, {word: 1.0 for word in said if word not in known}, weight * ABOUT_WEIGHT
            )
        ]

    def _entry(self, key: str) -> Entry | None:
        """The skill that a document is of; None for another way to a skill that is listed."""
        for place, (root, _) in enumerate(self._library.snapshots):
            below = key.removeprefix(document_key(root.path) + "/")
            number = self._number(place, below) if below != key else None
            if number is not None and self._library.states[place][number] != REPEATED:
                return self._library.entry(place, number)
        return self._archived.get(key)

    def _number(self, place: int, key: str) -> int | None:
        """The row of a snapshot whose folder a document's key names."""
        numbers = self._library.numbers[place]
        if key not in numbers and "\\" in key:  # a name that is not UTF-8, written out
            return next((n for path, n in numbers.items() if document_key(path) == key), None)
        return numbers.get(key)

    def _candidates(self, wanted: tantivy.Query, depth: int) -> list[tuple[float, Any]]:
        """The best `depth` documents, and all that score like the last of them: which of those
        the engine names first depends on the order in which they were put in."""
        most = depth
        while True:
            hits: list[tuple[float, Any]] = self._searcher.search(wanted, most, count=False).hits
            if len(hits) < depth:
                return hits
            last = f"{hits[depth - 1][0]:.5g}"
            if len(hits) < most or f"{hits[-1][0]:.5g}" != last or most > _MOST_TIES:
                return [hit for n, hit in enumerate(hits) if n < depth or f"{hit[0]:.5g}" == last]
            most *= 4

    def _clauses(
        self, field: str, emphasis: dict[str, float], weight: float
    ) -> list[tuple[tantivy.Occur, tantivy.Query]]:
        rated = []
        for word, loudness in emphasis.items():
            rarity = self._idf(field, word)
            if rarity > 0:
                rated.append((loudness * rarity, word, loudness * rarity**RARITY))
        if len(rated) > MOST_TERMS:
            rated = nlargest(MOST_TERMS, rated)
        query, should = tantivy.Query, tantivy.Occur.Should
        return [
            (
                should,
                query.boost_query(
                    query.term_query(self._schema, field, word, "freq"), weight * boost
                ),
            )
            for _, word, boost in rated
        ]

    def _idf(self, field: str, word: str) -> float:
        key = (field, word)
        known = self._rarity.get(key)
        if known is None:
            holding = self._searcher.doc_freq(field, word)
            # Deleted documents are counted there until the engine merges, but not in the total.
            total = max(self._count, holding)
            known = log(1 + (total - holding + 0.5) / (holding + 0.5)) if holding else 0.0
            self._rarity[key] = known
        return known

    def _rarest(self, counts: "Counter[str]") -> list[tuple[str, float]]:
        """The rarest words of the query, for finding the line that fits best."""
        rated = [(self._idf("text", word), word) for word in counts if len(word) > 1]
        return [(word, weight) for weight, word in nlargest(_LINE_TERMS, rated) if weight > 0]

    def _root_filter(self, roots: set[str]) -> tantivy.Query:
        query, should = tantivy.Query, tantivy.Occur.Should
        keys = sorted(document_key(root) for root in roots)
        terms = [(should, query.term_query(self._schema, "root", key, "basic")) for key in keys]
        any_root = query.boolean_query(terms)
        return query.const_score_query(any_root, 0.0)


def _likely(query: str, pending: Pending) -> Pending:
    """The skills to put into the index first: all, unless they are many."""
    if len(pending) <= _MANY:
        return pending
    texts = [f"{row[index.NAME]} {row[index.DESCRIPTION]}".lower() for _, row in pending]
    scores = [0.0] * len(texts)
    for stem in search_index.content_stems(query)[:_SOON_STEMS]:
        holding = [number for number, text in enumerate(texts) if stem in text]
        weight = log(1 + len(texts) / (1 + len(holding)))
        for number in holding:
            scores[number] += weight
    best = nlargest(_SOON_SKILLS, range(len(scores)), key=scores.__getitem__)
    return [pending[number] for number in sorted(best)]


def _go_on(cwd: str) -> None:
    """Have the rest put into the index by a process that nobody waits for."""
    import subprocess

    with suppress(OSError):  # then the next search puts in what it needs
        subprocess.Popen(
            [sys.executable, "-P", "-m", __name__, cwd],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


def finish_index(cwd: str) -> None:
    """Put in what is missing, part by part, so that others can search in between."""
    from tacit.skills.library import Library, archive_snapshots

    library = Library(cwd)
    behind = SearchIndex(library.cache)
    try:
        with locked(f"{behind.folder}.rest.lock", seconds=0):
            snapshots = [s for _, s in (*library.snapshots, *archive_snapshots(library))]
            behind.update(snapshots, choice=_next_part)
            while behind.behind:
                behind.update(snapshots, choice=_next_part)
    except Busy:  # another process is at it
        return


def _next_part(pending: Pending) -> Pending:
    return pending[:_PART]


def _exact(query: str) -> list[str]:
    found: list[str] = search_index.EXACT_WORDS.analyze(search_index.split_cjk(query))
    return found


def _stemmed(query: str) -> list[str]:
    found: list[str] = search_index.STEMMED_WORDS.analyze(
        search_index.split_cjk(search_index.with_camel_parts(query))
    )
    return found


def _emphasis(analyzed: list[str], counts: "Counter[str]") -> dict[str, float]:
    """How much the query emphasises each word: what it repeats, and what it begins with."""
    first: dict[str, int] = {}
    for place, word in enumerate(analyzed):
        first.setdefault(word, place)
    return {
        word: (1 + log(count)) * (1 + LEAD * max(0.0, 1 - first[word] / LEAD_WORDS))
        for word, count in counts.items()
    }


def _in_order(scored: list[tuple[float, Entry]]) -> list[tuple[float, Entry]]:
    """Best first. Of skills with one name, the one that it means leads and the others follow."""
    lead: dict[str, float] = {}
    for score, entry in scored:
        lead[entry.name] = max(score, lead.get(entry.name, 0.0))
    return sorted(
        scored,
        key=lambda pair: (
            -lead[pair[1].name],
            pair[1].name,
            pair[1].state != "active",
            -pair[0],
            pair[1].folder,
        ),
    )


def _one_a_name(scored: list[tuple[float, Entry]]) -> list[tuple[float, Entry]]:
    """Of each name the copy to show, at the place and with the score of its best."""
    copies: dict[str, list[tuple[float, Entry]]] = {}
    for pair in scored:
        copies.setdefault(pair[1].name, []).append(pair)
    shown = []
    for same in copies.values():
        # The first is what the name means; the archived and those of other folders yield to it.
        root, lead = same[0][1].root, max(score for score, _ in same)
        near = [pair for pair in same if pair[1].root == root]
        best = max(score for score, _ in near)
        fitting = [entry for score, entry in near if score == best]
        shown.append((lead, fitting[0] if len(fitting) == 1 else max(fitting, key=_changed_at)))
    return shown


def _changed_at(entry: Entry) -> float:
    try:
        return os.stat(os.path.join(entry.folder, entry.file)).st_mtime
    except OSError:
        return 0.0


def best_line(entry: Entry, rare_terms: list[tuple[str, float]]) -> tuple[int, str]:
    """The line of the body that holds most of the rare terms, with its number in the file."""
    try:
        data, size = read_skill_bytes(os.path.join(entry.folder, entry.file))
    except OSError:
        return 0, ""
    parts = frontmatter.split(decode(data, size)[0])
    lowered = parts.body.lower()
    weights: dict[int, float] = {}
    for word, weight in rare_terms:
        line, counted, at = 0, 0, lowered.find(word)
        while at >= 0:
            line += lowered.count("\n", counted, at)
            weights[line] = weights.get(line, 0.0) + weight
            counted = at
            end = lowered.find("\n", at)
            at = lowered.find(word, end) if end >= 0 else -1
    if not weights:
        return 0, ""
    best = max(sorted(weights), key=weights.__getitem__)
    return parts.body_line + best, one_line(parts.body.split("\n")[best])


def _cover(stems: str, query: "Counter[str]") -> float:
    """The share of `stems` that the query holds."""
    listed = stems.split()
    return sum(stem in query for stem in listed) / len(listed) if listed else 0.0


if __name__ == "__main__":
    os.nice(10)
    finish_index(sys.argv[1])
