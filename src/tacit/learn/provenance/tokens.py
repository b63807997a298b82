"""The parts of a phrase that act: addresses, options, variables, versions.

Words can be chosen anew; these must stay as they are to work, so they give a source away even
where the sentence around them was written afresh or translated.
"""

import re

from tacit.changes.scan.hosts import is_widely_known
from tacit.learn.provenance.wording import telling, weight

_ADDRESS = re.compile(
    r"\bhttps?://[^\s`'\"<>)\]]+|\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b"
    r"|\b\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,2})?\b"
    r"|\b(?:[a-z0-9-]+\.){1,4}(?:com|net|org|io|dev|app|invalid|example|test|info|biz|co|me|sh|ru|cn"
    r"|de|fr|uk|xyz|top|site|online|cloud|ai)\b(?:/[^\s`'\"<>)\]]*)?",
    re.IGNORECASE,
)
_OPTION = re.compile(r"(?<![\w-])(?:--[A-Za-z]|-[A-Za-z]{5})[\w.-]+(?:=[^\s`'\",;]+)?")
_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9_]{3,}=[^\s`'\",;]+")
_SETTING = re.compile(r"\b[a-z][a-z_.]{3,40}\s?=\s?(?:off|on|true|false|none|0|1|yes|no)\b")
_VERSION = re.compile(r"(?:@[\w-]+/)?\b[a-zA-Z][\w.-]+(?:==|@)v?\d[\w.]*|[\w./-]+@latest\b")


_SAMPLES = re.compile(
    r"(?:https?://)?(?:[\w.-]*\bexample\.(?:com|org|net)|localhost|127\.0\.0\.1|0\.0\.0\.0)\b"
)


def acting(text: str) -> set[str]:
    """The parts of `text` that act, as they stand there."""
    addresses = {match[0].rstrip(".,;:") for match in _ADDRESS.finditer(text)}
    found = {a for a in addresses if not (_SAMPLES.match(a) or is_widely_known(a.lower()))}
    # `--help` and `--output` are everybody's; `--ignore-integrity` is not.
    options = {match[0].rstrip(".,;:") for match in _OPTION.finditer(text)}
    found |= {option for option in options if "=" in option or weight(telling(option)) >= 1.0}
    for pattern in (_VARIABLE, _SETTING, _VERSION):
        found |= {match[0].rstrip(".,;:") for match in pattern.finditer(text)}
    return found
