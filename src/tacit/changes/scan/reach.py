"""What a skill reaches for beyond its task: other machines, keys, agents' own files, start-up places.

Wording can be varied without end; what an order needs to do harm cannot. A planted order has to
send something somewhere, run something from somewhere, stay, or get at keys. So a learned skill
that reaches for any of these is put before a person, however politely it asks. In a person's own
skill the same is only noted.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from tacit.changes.scan import hosts
from tacit.changes.scan.views import View


class Reach(NamedTuple):
    """One thing reached for: its kind, where in the folded text, and in words."""

    kind: str
    line: int
    what: str


_PLACES = (
    (
        "keys",
        "names a place where keys or passwords are kept",
        (".ssh", ".aws", "netrc", "gnupg", "git-cred", "keychain", "login data", "id_rsa", "id_ed2", "shadow",
         ".kube", "config/gh", "docker/config", "pypirc", "tfstate", "seed phrase", "wallet key", "saved pass"),
        re.compile(
            r"\.ssh/(?!config\b|known_hosts|authorized)|\.aws/credentials|\.netrc\b|\.gnupg\b|\.git-credentials"
            r"|\bkeychain\b|login data\b|\bid_rsa\b(?!\.pub)|\bid_ed25519\b(?!\.pub)|/etc/shadow|\.kube/config"
            r"|\.config/gh/|\.docker/config|\.pypirc\b|\btfstate\b|\bseed phrase\b|\bwallet keys?\b|saved passwords"
        ),
    ),
    (
        "agent-files",
        "names files or switches by which agents are steered",
        (".md", "cursorrules", ".claude", ".codex", "--yolo", "--danger", "bypassp", "permission-mode",
         "approval_policy", "allow", "codex -a", "gemini -y", "memory"),
        re.compile(
            r"\b(?:claude|agents|gemini|soul)\.md\b|\.cursorrules|\.claude/settings|\.codex/config|--yolo\b"
            r"|--dangerously|bypasspermissions|permission-mode|approval_policy|\ballow ?list\b|\bcodex -a\b|\bgemini -y\b"
            r"|(?:store|save|record|write|put)\b[^.\n]{0,30}\bmemory\b"
        ),
    ),
    (
        "start-up",
        "names a place from which commands run by themselves later",
        ("launchagents", "autostart", "crontab", "bashrc", "zshrc", "bash_profile", "zprofile", "shell profile",
         ".git/hooks", "systemctl", "schtasks", "postinstall"),
        re.compile(
            r"launchagents|/autostart/|\bcrontab\b|\.(?:bashrc|zshrc|bash_profile|zprofile)\b|\bshell profile\b"
            r"|\.git/hooks|systemctl (?:--user )?enable|\bschtasks\b|\bpostinstall\b"
        ),
    ),
    (
        "whole-machine",
        "asks for the whole machine",
        ("--privileged", "-v /:/", "sudo", "/dev/tcp", "create_connection"),
        re.compile(r"--privileged\b|-v /:/|\bsudo and uses it freely|\bhas sudo\b|/dev/tcp/|socket\.create_connection"),
    ),
)  # fmt: skip
_URL = re.compile(r"(?:https?|ftp)://[a-z0-9.-]{2,120}")
# A host without its scheme counts where a program takes it for one.
_BARE = re.compile(
    r"\b(?:curl|wget|nc|ncat|scp|rsync|ssh)\b[^\n|]{0,120}?(?<![\w@./-])(?:[\w-]{1,30}@)?"
    r"(?P<host>(?:[a-z0-9-]{2,40}\.){1,3}[a-z]{3,12})[/:]"
)
_DOES = re.compile(
    r"\b(?:curl|wget|iwr|irm|invoke-\w{3,12}|fetch|axios|requests|urlopen|httpx|clone|push|remote|install|add|npm|npx|docker|scp"
    r"|send|sent|post|upload|forward|submit|share|paste|report|read|reading|load|follow|open|visit|download|import|get|copy|mail"
    r"|pull|transfer|append|work|run|runs|from|to|at)\b"
)  # fmt: skip
_MAIL = re.compile(
    r"\b(?:send|sent|mail|forward|e-?mail|copy|share|cc|bcc)\b[^\n.]{0,80}?[\w.+-]{1,40}@(?!example\b|domain\b|company\b|test\b)[\w-]{2,40}\.[a-z]{2,12}"
)
_ADDRESS = re.compile(
    r"(?<![\d.])(?!127\.|10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|0\.|169\.254\.|255\.|8\.8\.|1\.1\.1\.|100\.64\.)"
    r"\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?![\d.])"
)
_COMMENT = re.compile(r"<!--([^>]{0,600})")
_TITLE = re.compile(
    r"\]\([^\s)]{1,200}\s{1,4}[\"']([^\"'\n]{12,600})[\"']\)|^\[[^\]\n]{0,60}\]:[^\n]{0,200}[(\"']([^\n]{20,600})",
    re.M,
)
_STYLE = re.compile(
    r"<[a-z]{1,10}[^<>\n]{0,200}(?:\bhidden\b|display:\s?none|font-size:\s?0|opacity:\s?0|visibility:\s?hidden|left:\s?-\d{3,5}px|color:\s?(?:white|#fff))[^<>\n]{0,200}>\s{0,4}(\w[^<]{12,600})"
)  # fmt: skip
_FAR_BELOW = re.compile(r"\n[ \t]{0,4}(?:\n[ \t]{0,4}){20,400}(?=\S)")
_ORDINARY_COMMENT = re.compile(r"\s*(?:toc|prettier|markdownlint|eslint|end|begin|region|todo)\b")


def reaches(readings: list[View]) -> list[Reach]:
    """What a text, in its `readings` by `views`, reaches for; one of each kind, the first."""
    plain = readings[0].text
    found: dict[str, Reach] = {}
    for reach in (*_places(plain), *_machines(plain), *_unseen(plain), *_encoded(readings)):
        found.setdefault(reach.kind, reach)
    return list(found.values())


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _places(text: str) -> Iterator[Reach]:
    for kind, what, words, pattern in _PLACES:
        if any(word in text for word in words) and (match := pattern.search(text)):
            yield Reach(kind, _line(text, match.start()), what)


def _machines(text: str) -> Iterator[Reach]:
    """Hosts that are not widely known, where something is sent there or taken from there."""
    what = "sends to or takes from a host that is not widely known"
    for match in _URL.finditer(text) if "://" in text else ():
        before = text[max(0, match.start() - 160) : match.start()].rpartition("\n")[2]
        if _DOES.search(before) and not hosts.is_widely_known(match[0]):
            yield Reach("host", _line(text, match.start()), what)
            break
    for match in _BARE.finditer(text):
        if not hosts.is_widely_known(match["host"]):
            yield Reach("host", _line(text, match.start()), what)
            break
    if match := _ADDRESS.search(text):
        yield Reach("address", _line(text, match.start()), "names a machine by its number")
    if match := _MAIL.search(text):
        yield Reach("mail", _line(text, match.start()), "sends mail to a fixed address")


def _unseen(text: str) -> Iterator[Reach]:
    """Text that a reader of the rendered page does not see."""
    what = "holds text that a reader of the rendered page does not see"
    for mark, pattern in (("<!--", _COMMENT), ("]", _TITLE), ("<", _STYLE)):
        for match in pattern.finditer(text) if mark in text else ():
            inside = next((part for part in match.groups() if part), "")
            if len(inside.split()) >= 4 and not _ORDINARY_COMMENT.match(inside):
                yield Reach("unseen", _line(text, match.start()), what)
                break
    if match := _FAR_BELOW.search(text):
        yield Reach("unseen", _line(text, match.end()), "goes on far below an empty stretch")


def _encoded(readings: list[View]) -> Iterator[Reach]:
    for view in readings:
        if view.how in ("base64", "hexadecimal", "percent-encoded") and " " in view.text.strip():
            yield Reach("encoded", view.line, f"holds text that is encoded ({view.how})")
            return
