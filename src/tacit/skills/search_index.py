"""The full-text index on disk: which skills it holds, and keeping it in step with the library.

One index for all roots of this user, in the cache folder; each document knows its root, so a
search looks only at the roots of its library. A manifest beside it says which version of which
skill is inside. The manifest is written after the index is committed: a kill in between means
that some skills are put in once more, never that one is missing. Whatever is damaged is thrown
away and built again. Where nothing can be written, the index lives in memory.
"""

import marshal
import os
import shutil
from binascii import crc32
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import tantivy

from tacit.base.errors import Busy, TacitError
from tacit.base.files import write_atomic
from tacit.base.locks import locked
from tacit.skills import index, words
from tacit.skills.index import Row, Snapshot
from tacit.skills.reading import parse_skill, read_bytes

FORMAT = 1
_HEAP = 64_000_000
_MAGIC = f"tacit-search {FORMAT} {version('tantivy')}\n".encode()

Manifest = dict[str, dict[str, str]]
"""Root -> skill folder below it -> digest of the SKILL.md that was indexed."""
Progress = Callable[[int, int], None]
"""Called now and then with how many of how many are done."""


class SearchIndex:
    """The index, in step with the snapshots that it was last given."""

    def __init__(self, cache: str) -> None:
        self.folder = os.path.join(cache, "search")
        self._manifest_file = os.path.join(self.folder, "manifest")
        self._tantivy: tantivy.Index | None = None
        self.manifest: Manifest = {}

    def update(self, snapshots: list[Snapshot], progress: Progress | None = None) -> None:
        """Make the index hold exactly what the snapshots say of their roots."""
        if self._tantivy is None:
            self._open()
        if not self._pending(snapshots):
            return
        try:
            with locked(self.folder + ".lock", seconds=120, what="the search index"):
                self._open()  # somebody else may have done the work while we waited
                self._write(snapshots, progress)
        except Busy:
            raise
        except (TacitError, OSError):  # nothing can be written there
            self._in_memory(snapshots, progress)
        except ValueError:  # tantivy's word for a damaged index
            self.discard()
            self._open()
            self._write(snapshots, progress)

    def searcher(self) -> tantivy.Searcher:
        assert self._tantivy is not None, "update comes first"
        return self._tantivy.searcher()

    @property
    def schema(self) -> tantivy.Schema:
        assert self._tantivy is not None, "update comes first"
        return self._tantivy.schema

    def holds_others(self, roots: set[str]) -> bool:
        """Whether there are skills of other roots inside."""
        return any(folders for root, folders in self.manifest.items() if root not in roots)

    def discard(self) -> None:
        """Throw the index away; the next update builds it again."""
        self._tantivy = None
        self.manifest = {}
        shutil.rmtree(self.folder, ignore_errors=True)

    def is_sound(self) -> bool:
        """Whether what lies on the disk can be opened and agrees with its manifest."""
        if not os.path.isdir(self.folder):
            return True
        manifest = _read_manifest(self._manifest_file)
        if manifest is None:
            return False
        try:
            searcher = _open(self.folder).searcher()
            query = tantivy.Query.all_query()
            searcher.search(query, 1)
            return int(searcher.num_docs) == sum(len(folders) for folders in manifest.values())
        except (ValueError, OSError):
            return False

    def _open(self) -> None:
        manifest = _read_manifest(self._manifest_file)
        if manifest is None and os.path.isdir(self.folder):
            shutil.rmtree(self.folder, ignore_errors=True)
        try:
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            self._tantivy = _open(self.folder)
        except ValueError:
            self.discard()
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            self._tantivy, manifest = _open(self.folder), None
        except OSError:
            self._tantivy, manifest = _open(None), None
        self.manifest = manifest or {}

    def _pending(self, snapshots: list[Snapshot]) -> bool:
        return any(
            self.manifest.get(snapshot.root, {})
            != {row[index.FOLDER]: row[index.DIGEST] for row in snapshot.rows}
            for snapshot in snapshots
        )

    def _write(self, snapshots: list[Snapshot], progress: Progress | None) -> None:
        assert self._tantivy is not None
        work: list[tuple[str, Row]] = []
        gone: list[str] = []
        manifest = {root: dict(folders) for root, folders in self.manifest.items()}
        for root in [root for root in manifest if not os.path.isdir(root)]:
            gone.extend(key_of(f"{root}/{folder}") for folder in manifest.pop(root))
        for snapshot in snapshots:
            inside = manifest.get(snapshot.root, {})
            outside = {row[index.FOLDER]: row for row in snapshot.rows}
            changed = [row for f, row in outside.items() if inside.get(f) != row[index.DIGEST]]
            work.extend((snapshot.root, row) for row in changed)
            gone.extend(key_of(f"{snapshot.root}/{f}") for f in inside if f not in outside)
            gone.extend(key_of(f"{snapshot.root}/{row[0]}") for row in changed if row[0] in inside)
            manifest[snapshot.root] = {f: row[index.DIGEST] for f, row in outside.items()}
        if not (work or gone):
            return
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
        self.manifest = manifest
        payload = marshal.dumps(manifest)
        if os.path.isdir(self.folder):
            data = _MAGIC + crc32(payload).to_bytes(4, "big") + payload
            write_atomic(self._manifest_file, data, durable=False)

    def _in_memory(self, snapshots: list[Snapshot], progress: Progress | None) -> None:
        self._tantivy, self.manifest = _open(None), {}
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
    opened.register_tokenizer("exact", words.EXACT)
    opened.register_tokenizer("stemmed", words.STEMMED)
    return opened


def key_of(path: str) -> str:
    """What names the document of a skill folder; bytes that are not UTF-8 are written out."""
    return path if path.isascii() else os.fsencode(path).decode("utf-8", "backslashreplace")


def _document(root: str, row: Row) -> tantivy.Document:
    """A skill as search sees it.

    `text` is everything, as written. `meta` is what says what it is for: the name three times,
    the description twice, the headings once, so that their words weigh more, as stems. `cover`
    keeps the stems of name and description for the second look at the best candidates.
    """
    name, description, body = row[index.NAME], row[index.DESCRIPTION], ""
    try:
        data, size = read_bytes(os.path.join(root, row[index.FOLDER], row[index.FILE]))
        skill = parse_skill(data, name, size=size)
        body = f"{skill.when_to_use}\n{skill.body}" if skill.when_to_use else skill.body
    except OSError:
        pass
    folder_name = row[index.FOLDER].rpartition("/")[2]
    alias = "" if folder_name == name else folder_name
    title = words.fold(words.with_parts(name), singles=True)
    about = words.fold(words.with_parts(description), singles=True)
    document = tantivy.Document()
    document.add_text("key", key_of(f"{root}/{row[index.FOLDER]}"))
    document.add_text("root", key_of(root))
    document.add_text("text", words.fold(f"{name}\n{alias}\n{description}\n{body}"))
    heads = words.fold(words.headings(body), singles=True)
    document.add_text("meta", "\n".join([title] * 3 + [about] * 2 + [heads]))
    stems = words.telling_stems
    document.add_bytes("cover", f"{' '.join(stems(title))}\n{' '.join(stems(about))}".encode())
    return document


def _read_manifest(path: str) -> Manifest | None:
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return None
    start = len(_MAGIC) + 4
    checksum = crc32(data[start:]).to_bytes(4, "big")
    if not data.startswith(_MAGIC) or checksum != data[start - 4 : start]:
        return None
    try:
        manifest: Any = marshal.loads(data[start:])  # noqa: S302 - see index.py
    except (ValueError, TypeError, EOFError):
        return None
    return manifest if isinstance(manifest, dict) else None
