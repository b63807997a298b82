"""The full-text index on disk, and how text becomes the words in it.

Words are the same for skills and queries: lower-cased runs of letters and digits, so `snake_case`,
`kebab-case` and `dotted.names` fall apart by themselves; parts of camelCase are added beside the
whole; runs of Chinese, Japanese and Korean, which are written without spaces, become pairs of
characters.

One index holds all roots of this user, in the cache folder; each document knows its root, so a
search covers only the roots of its library. A manifest beside it says which version of which skill
is inside, and the checksums of its files. The manifest is written after the index is committed: a
kill in between means that some skills are put in once more, never that one is missing or there
twice. Whatever is damaged is thrown away and built again, under a lock. Where nothing can be
written, the index lives in memory. A part of what is missing can be put in by itself: the index
then knows that it is behind.
"""

import marshal
import os
import re
from binascii import crc32
from collections import Counter
from collections.abc import Callable
from functools import cache

import tantivy
from tantivy import Filter, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

from tacit.base.atomic_files import locked
from tacit.base.errors import Busy, TacitError
from tacit.base.marshal_cache import Stamp, read_cache, stamp, write_cache
from tacit.base.paths import make_private
from tacit.base.patterns import late_pattern
from tacit.skills import frontmatter, index
from tacit.skills.index import Row, Snapshot
from tacit.skills.skill_file import decode, parse_skill, read_skill_bytes

_CJK_RUN = late_pattern("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
_CAMEL = late_pattern(r"\b(?=[A-Za-z0-9]*[a-z][A-Z])[A-Za-z0-9]{4,40}\b")
_CAMEL_PART = late_pattern(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]{2,}|[A-Z]{2,}|[0-9]+")
_FENCE = late_pattern(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1|\Z)", re.S | re.M)
_HEADING = late_pattern(r"^#{1,6}[ \t]+(.+)", re.M)
# Words that say nothing about what a skill is for.
_STOP = (
    "a an and are as at be but by can for from has have how i if in into is it its may more no not "
    "of on or s so such t than that the their them then there these this to use used user users "
    "using was we what when where which will with you your skill skills"
)
_LONGEST = 60


def _analyzer(stem: bool) -> TextAnalyzer:
    chain = TextAnalyzerBuilder(Tokenizer.simple())
    chain = chain.filter(Filter.remove_long(_LONGEST)).filter(Filter.lowercase())
    return (chain.filter(Filter.stemmer("english")) if stem else chain).build()


EXACT_WORDS = _analyzer(stem=False)
"""Words as they are."""
STEMMED_WORDS = _analyzer(stem=True)
"""English words cut to their stems."""


def as_utf8(text: str) -> str:
    """`text` without what stands for bytes that are not UTF-8, as in the names of some files."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def split_cjk(text: str, *, singles: bool = False) -> str:
    """`text` with its CJK runs broken into pairs; with `singles`, into characters as well."""
    if text.isascii():
        return text
    return _CJK_RUN.sub(_pairs_and_singles if singles else _pairs, text)


def with_camel_parts(text: str) -> str:
    """`text`, and after it the parts of its camelCase words."""
    parts = [" ".join(_CAMEL_PART.findall(word)) for word in _CAMEL.findall(text)]
    return f"{text} {' '.join(parts)}" if parts else text


def headings(body: str) -> str:
    """The Markdown headings of `body`, a line each; what looks like one in code does not count."""
    if "#" not in body:
        return ""
    if "```" in body or "~~~" in body:
        body = _FENCE.sub("", body)
    return "\n".join(_HEADING.findall(body))


def without_stop_words(counts: "Counter[str]", *, stemmed: bool = False) -> "Counter[str]":
    """`counts` less the words that say nothing; unless there are no others.

    In a large library such words weigh next to nothing anyway. In a small one they would decide.
    """
    stop = _stop_stems() if stemmed else _stop_words()
    kept = Counter({word: count for word, count in counts.items() if word not in stop})
    return kept or counts


def content_stems(text: str) -> list[str]:
    """The distinct stems of `text` that are not stop words, in order."""
    stop = _stop_stems()
    return [stem for stem in dict.fromkeys(STEMMED_WORDS.analyze(text)) if stem not in stop]


@cache
def _stop_words() -> frozenset[str]:
    return frozenset(_STOP.split())


@cache
def _stop_stems() -> frozenset[str]:
    return frozenset(STEMMED_WORDS.analyze(_STOP))


def _pairs(match: re.Match[str]) -> str:
    run = match[0]
    if len(run) == 1:
        return f" {run} "
    return " " + " ".join([run[i : i + 2] for i in range(len(run) - 1)]) + " "


def _pairs_and_singles(match: re.Match[str]) -> str:
    return _pairs(match) + " ".join(match[0]) + " "


FORMAT = 3
_HEAP = 64_000_000
_INSIDE = late_pattern(r"[0-9a-f]{32}\..+|meta\.json|\.managed\.json")
_SOON = 1.0
"""Seconds for which somebody who wants an answer soon waits for others."""
_NOTHING = marshal.dumps({})
_UNSEEN = (-1, -1, -1, -1)
_HEAD = f"tacit-search {FORMAT} {tantivy.__version__}\n".encode()  # type: ignore[attr-defined]

Manifest = dict[str, dict[str, str]]
"""Root -> skill folder below it -> digest of the SKILL.md that was indexed."""
Mark = tuple[int, int, int]
"""How many skills of a root are inside, and by which two checksums it is known that these are all,
as they are now; zeros where they are not."""
Pending = list[tuple[str, Row]]
"""Skills that are to be put in: their root, and their row."""
Choice = Callable[[Pending], Pending]
"""Which of these to put in now."""
Checksums = dict[str, tuple[int, Stamp]]
"""Name of a file of the index -> checksum of its bytes, and its stamp when that was taken."""
Progress = Callable[[int, int], None]
"""Called now and then with how many of how many are done."""


class SearchIndex:
    """The index, in step with the snapshots that it was last given."""

    def __init__(self, cache: str) -> None:
        self.folder = os.path.join(cache, "search")
        self._manifest_file = os.path.join(self.folder, "manifest")
        self._tantivy: tantivy.Index | None = None
        self._marks: dict[str, Mark] = {}
        self._packed = _NOTHING
        self._files: Checksums = {}
        self._choice: Choice | None = None
        self.behind = 0
        """How many skills the last update left out, as far as is known."""

    def update(
        self,
        snapshots: list[Snapshot],
        progress: Progress | None = None,
        choice: Choice | None = None,
    ) -> None:
        """Make the index hold exactly what the snapshots say of their roots.

        With `choice`, what is missing is put in as far as it was chosen, nobody is waited for, and
        `behind` counts the rest.
        """
        self._choice, self.behind = choice, 0
        if self._tantivy is None:
            self._open_existing()
        if self._tantivy is not None and not self._pending(snapshots):
            return
        seconds = _SOON if choice else 120
        try:
            with locked(self.folder + ".lock", seconds=seconds, what="the search index"):
                self._open_existing()  # somebody else may have done the work while we waited
                if self._tantivy is None:
                    self._create()
                self._write(snapshots, progress)
        except Busy:
            if choice is None:
                raise
            self.behind = 1
            if self._tantivy is None:
                self._in_memory(snapshots, progress)
        except (TacitError, OSError):  # nothing can be written there
            self._in_memory(snapshots, progress)
        except BaseException as error:
            if not is_damage(error):
                raise
            self.rebuild(snapshots, progress)

    def rebuild(self, snapshots: list[Snapshot], progress: Progress | None = None) -> None:
        """Throw away what is there, and build it again."""
        try:
            with locked(self.folder + ".lock", seconds=120, what="the search index"):
                self._create()
                self._write(snapshots, progress)
        except Busy:
            raise
        except BaseException as error:
            if not (isinstance(error, TacitError | OSError) or is_damage(error)):
                raise
            self._in_memory(snapshots, progress)

    def searcher(self) -> tantivy.Searcher:
        assert self._tantivy is not None, "update comes first"
        return self._tantivy.searcher()

    @property
    def schema(self) -> tantivy.Schema:
        assert self._tantivy is not None, "update comes first"
        return self._tantivy.schema

    def holds_others(self, roots: set[str]) -> bool:
        """Whether there are skills of other roots inside."""
        return any(count for root, (count, *_) in self._marks.items() if root not in roots)

    def discard(self) -> None:
        """Throw the index away; the next update builds it again."""
        self._forget()
        import shutil

        shutil.rmtree(self.folder, ignore_errors=True)

    def is_sound(self) -> bool:
        """Whether what lies on the disk can be opened and is what was written there."""
        if not os.path.isdir(self.folder):
            return True
        read = _read_manifest(self._manifest_file)
        # Without the stamps, so that every byte is looked at.
        every = (
            {name: (checksum, _UNSEEN) for name, (checksum, _) in read[1].items()} if read else {}
        )
        if read is None or not _are_whole(self.folder, every):
            return False
        self._open_existing()
        sound = self._tantivy is not None
        self._tantivy = None
        return sound

    def _open_existing(self) -> None:
        """Open what is there, changing nothing; without a lock somebody may be writing it."""
        self._forget()
        read = _read_manifest(self._manifest_file)
        if read is None:
            return
        try:
            if not _are_whole(self.folder, read[1]) or not tantivy.Index.exists(self.folder):
                return
            opened = _open(self.folder)
            held = int(opened.searcher().num_docs)
        except BaseException as error:
            if not isinstance(error, OSError) and not is_damage(error):
                raise
            return
        if held == sum(count for count, *_ in read[0].values()):
            self._tantivy, (self._marks, self._files, self._packed) = opened, read

    def _forget(self) -> None:
        self._tantivy, self._marks, self._files, self._packed = None, {}, {}, _NOTHING

    def _create(self) -> None:
        """An empty index in place of what is there. Only under the lock."""
        self.discard()
        make_private(self.folder)
        self._tantivy = _open(self.folder)

    def _pending(self, snapshots: list[Snapshot]) -> bool:
        return any(
            self._marks.get(snapshot.root, (0, 0, 0)) != _mark(snapshot) for snapshot in snapshots
        )

    def _write(self, snapshots: list[Snapshot], progress: Progress | None) -> None:
        # These bytes were inside those whose checksum held.
        manifest: Manifest = marshal.loads(self._packed)  # noqa: S302
        known = bool(manifest)
        work, gone = _differences(manifest, snapshots)
        chosen = self._choice(work) if self._choice else work
        self.behind, work = len(work) - len(chosen), chosen
        if known:  # also what the manifest does not know: a kill may have cut it off
            gone += [document_key(f"{root}/{row[index.FOLDER]}") for root, row in work]
        if work or gone:
            self._put_in(work, gone, progress)
        for root, row in work:
            manifest[root][row[index.FOLDER]] = row[index.DIGEST]
        self._marks = {root: self._marks.get(root, (0, 0, 0)) for root in manifest}
        for snapshot in snapshots:
            inside, mark = len(manifest[snapshot.root]), _mark(snapshot)
            self._marks[snapshot.root] = mark if inside == mark[0] else (inside, 0, 0)
        self._packed = marshal.dumps(manifest)
        if os.path.isdir(self.folder):
            for entry in os.scandir(self.folder):
                if entry.stat().st_mode & 0o077:  # tantivy goes by the umask
                    os.chmod(entry.path, 0o600)
            self._files = _checksums(self.folder, self._files)
            write_cache(self._manifest_file, _HEAD, (self._marks, self._files, self._packed))

    def _put_in(self, work: Pending, gone: list[str], progress: Progress | None) -> None:
        assert self._tantivy is not None
        writer = self._tantivy.writer(_HEAP, 1)
        for key in gone:
            writer.delete_documents_by_term("key", key)
        for done, (root, row) in enumerate(work):
            if progress and done % 100 == 0:
                progress(done, len(work))
            writer.add_document(_document(root, row))
        writer.commit()
        writer.wait_merging_threads()
        self._tantivy.reload()
        if progress:
            progress(len(work), len(work))

    def _in_memory(self, snapshots: list[Snapshot], progress: Progress | None) -> None:
        self._forget()
        self._tantivy = _open(None)
        folder, self.folder = self.folder, os.devnull
        try:
            self._write(snapshots, progress)
        finally:
            self.folder = folder


def _open(folder: str | None) -> tantivy.Index:
    """Open or create. Tokenizers are not saved with an index: they are registered each time."""
    build = tantivy.SchemaBuilder()
    build.add_text_field("key", stored=True, tokenizer_name="raw", index_option="basic")
    build.add_text_field("root", tokenizer_name="raw", index_option="basic")
    build.add_text_field("text", tokenizer_name="exact", index_option="freq")
    build.add_text_field("meta", tokenizer_name="stemmed", index_option="freq")
    build.add_bytes_field("cover", stored=True)
    opened = tantivy.Index(build.build(), path=folder)
    # No thread that watches the folder: an index is opened, used and let go.
    opened.config_reader("manual")
    opened.register_tokenizer("exact", EXACT_WORDS)
    opened.register_tokenizer("stemmed", STEMMED_WORDS)
    return opened


def document_key(path: str) -> str:
    """What names the document of a skill folder; bytes that are not UTF-8 are written out."""
    return path if path.isascii() else os.fsencode(path).decode("utf-8", "backslashreplace")


def _document(root: str, row: Row) -> tantivy.Document:
    """A skill as search sees it.

    `text` is everything, as written. `meta` is what says what it is for: the name three times,
    the description twice, the headings once, so that their words weigh more, as stems. `cover`
    keeps the stems of name and description for ranking the best candidates again.
    """
    name, description, body = as_utf8(row[index.NAME]), row[index.DESCRIPTION], ""
    try:
        data, size = read_skill_bytes(os.path.join(root, row[index.FOLDER], row[index.FILE]))
        parts = frontmatter.split(decode(data, size)[0])
        body = parts.body
        if "when_to_use" in (parts.head or ""):
            when = parse_skill(data, name, size=size).when_to_use
            body = f"{when}\n{body}" if when else body
    except OSError:
        pass
    folder_name = as_utf8(row[index.FOLDER].rpartition("/")[2])
    alias = "" if folder_name == name else folder_name
    title = split_cjk(with_camel_parts(name), singles=True)
    about = split_cjk(with_camel_parts(description), singles=True)
    document = tantivy.Document()
    document.add_text("key", document_key(f"{root}/{row[index.FOLDER]}"))
    document.add_text("root", document_key(root))
    document.add_text("text", split_cjk(f"{name}\n{alias}\n{description}\n{body}"))
    heads = split_cjk(headings(body), singles=True)
    document.add_text("meta", "\n".join([title] * 3 + [about] * 2 + [heads]))
    stems = content_stems
    document.add_bytes("cover", f"{' '.join(stems(title))}\n{' '.join(stems(about))}".encode())
    return document


def is_damage(error: BaseException) -> bool:
    """Whether `error` is the engine's word for a damaged index. It may also panic: an exception
    that is made to escape `except Exception`, of a type that cannot be imported."""
    return isinstance(error, ValueError) or type(error).__name__ == "PanicException"


def _checksums(folder: str, known: Checksums) -> Checksums:
    """The checksum of each file of the index; those that did not change are not read again."""
    found = {}
    for name in os.listdir(folder):
        if _INSIDE.fullmatch(name):
            path = os.path.join(folder, name)
            now = stamp(os.stat(path))
            if name in known and known[name][1] == now:
                found[name] = known[name]
                continue
            with open(path, "rb") as file:
                found[name] = (crc32(file.read()), now)
    return found


def _are_whole(folder: str, known: Checksums) -> bool:
    """Whether every file holds the bytes that were written. The engine maps them into memory, and
    a wrong byte can end the whole process; so what was touched since is read and compared."""
    found = _checksums(folder, known)
    return {n: c for n, (c, _) in found.items()} == {n: c for n, (c, _) in known.items()}


def _differences(manifest: Manifest, snapshots: list[Snapshot]) -> tuple[Pending, list[str]]:
    """What is to be put in, and the keys of what is to be taken out first.

    `manifest` is left with what stays as it is.
    """
    work: Pending = []
    gone: list[str] = []
    for root in [root for root in manifest if not os.path.isdir(root)]:
        gone.extend(document_key(f"{root}/{folder}") for folder in manifest.pop(root))
    for snapshot in snapshots:
        root, inside = snapshot.root, manifest.get(snapshot.root, {})
        outside = {row[index.FOLDER]: row for row in snapshot.rows}
        changed = [row for f, row in outside.items() if inside.get(f) != row[index.DIGEST]]
        work.extend((root, row) for row in changed)
        manifest[root] = {
            f: row[index.DIGEST] for f, row in outside.items() if inside.get(f) == row[index.DIGEST]
        }
        gone.extend(document_key(f"{root}/{f}") for f in inside if f not in manifest[root])
    return work, gone


def _mark(snapshot: Snapshot) -> Mark:
    """What the mark of its root is when all of `snapshot` is inside."""
    files, (_, _, digests) = snapshot.columns.files, snapshot.columns.others()
    return (len(files), crc32(os.fsencode("\n".join(files))), crc32("".join(digests).encode()))


def _read_manifest(path: str) -> tuple[dict[str, Mark], Checksums, bytes] | None:
    known = read_cache(path, _HEAD)
    return known if isinstance(known, tuple) and len(known) == 3 else None
