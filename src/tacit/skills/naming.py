"""What a skill may be called, by the open standard."""

import re
import unicodedata

MAX_NAME = 64


def normal(name: str) -> str:
    """`name` in the one spelling that is compared and shown."""
    return unicodedata.normalize("NFKC", name).strip()


def faults(name: str) -> list[str]:
    """What is wrong with the form of `name`, as ends of the sentence "the name …"."""
    wrong = []
    if name != name.lower():
        wrong.append("has capital letters")
    if name.startswith("-") or name.endswith("-"):
        wrong.append("begins or ends with a hyphen")
    if "--" in name:
        wrong.append("has two hyphens in a row")
    if not all(c.isalnum() or c == "-" for c in name):
        wrong.append("has characters other than letters, digits and hyphens")
    return wrong


def suggest(name: str) -> str:
    """A valid name as near to `name` as can be."""
    name = "".join(c if c.isalnum() else "-" for c in normal(name).lower())
    name = re.sub(r"-+", "-", name).strip("-")
    return name[:MAX_NAME].strip("-") or "my-skill"
