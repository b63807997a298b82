"""What kind of thing a file is: text to be read, a picture, or something that runs or hides."""

import codecs
from typing import Literal, NamedTuple

Kind = Literal["text", "media", "program", "archive", "data"]

_MAGIC: tuple[tuple[bytes, Kind, str], ...] = (
    (b"\x7fELF", "program", "a Linux program"),
    (b"\xfe\xed\xfa\xce", "program", "a macOS program"),
    (b"\xfe\xed\xfa\xcf", "program", "a macOS program"),
    (b"\xce\xfa\xed\xfe", "program", "a macOS program"),
    (b"\xcf\xfa\xed\xfe", "program", "a macOS program"),
    (b"\xca\xfe\xba\xbe", "program", "a macOS or Java program"),
    (b"\x00asm", "program", "a WebAssembly program"),
    (b"dex\n", "program", "an Android program"),
    (b"L\x00\x00\x00\x01\x14\x02\x00", "program", "a Windows shortcut"),
    (b"PK\x03\x04", "archive", "a zip archive"),
    (b"PK\x05\x06", "archive", "a zip archive"),
    (b"\x1f\x8b", "archive", "a gzip archive"),
    (b"BZh", "archive", "a bzip2 archive"),
    (b"\xfd7zXZ\x00", "archive", "an xz archive"),
    (b"7z\xbc\xaf\x27\x1c", "archive", "a 7z archive"),
    (b"Rar!\x1a\x07", "archive", "a rar archive"),
    (b"\x28\xb5\x2f\xfd", "archive", "a zstd archive"),
    (b"\x89PNG\r\n\x1a\n", "media", "a PNG picture"),
    (b"\xff\xd8\xff", "media", "a JPEG picture"),
    (b"GIF87a", "media", "a GIF picture"),
    (b"GIF89a", "media", "a GIF picture"),
    (b"wOFF", "media", "a font"),
    (b"wOF2", "media", "a font"),
    (b"\x00\x01\x00\x00\x00", "media", "a font"),
    (b"OTTO", "media", "a font"),
    (b"%PDF-", "media", "a PDF document"),
)
_RUNS_BY_NAME = (
    ".exe", ".dll", ".so", ".dylib", ".scr", ".com", ".msi", ".jar", ".class", ".lnk", ".pyc",
    ".pyo", ".pyd", ".node", ".wasm", ".apk", ".app", ".dmg", ".pkg", ".deb", ".rpm", ".vbe", ".jse",
)  # fmt: skip


class Contents(NamedTuple):
    """The kind of a file, what to call it, and its text where it has one."""

    kind: Kind
    what: str
    text: str
    odd: str = ""
    """What is unusual about the encoding, if anything."""


def inspect(path: str, data: bytes) -> Contents:
    """What `data`, called `path`, is. Text is decoded; nothing is unpacked."""
    for magic, kind, what in _MAGIC:
        if data.startswith(magic) and (kind != "archive" or not _is_plain(data)):
            return Contents(kind, what, "")
    if data.startswith(b"MZ") and b"\x00" in data[:512]:
        return Contents("program", "a Windows program", "")
    if data[2:4] == b"\r\n" and len(data) > 16 and b"\x00" in data[4:16]:
        return Contents("program", "compiled Python", "")
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return Contents("media", "a WebP picture", "")
    if path.lower().endswith(_RUNS_BY_NAME):
        return Contents(
            "program", f"a program by its name ({path.rpartition('.')[2]})", _text(data)[0]
        )
    text, odd = _text(data)
    if "\x00" in text:
        return Contents("data", "binary data", text.replace("\x00", " "))
    return Contents("text", "text", text, odd)


def _is_plain(data: bytes) -> bool:
    try:
        return data[:4096].isascii() and b"\x00" not in data[:4096]
    except ValueError:
        return False


def _text(data: bytes) -> tuple[str, str]:
    for mark, name in ((codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16")):
        if data.startswith(mark):
            return data.decode(name, "replace"), "it is UTF-16"
    try:
        return data.decode("utf-8"), ""
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace"), "it is not UTF-8"
