"""Whether a new skill is named for a class of work, or for a ticket, an error or a day.

What the prompt asks for and a program can see. Whether a word is a codename it cannot.
"""

import re

from tacit.skills.naming import MAX_NAME, faults

_TICKET = re.compile(
    r"(?:^|-)(?:pr|mr|issue|issues|ticket|bug|jira|gh|task|story|epic|case|incident|inc|cve|rfc)"
    r"-?\d+(?:-|$)|(?:^|-)[a-z]{2,6}-\d{2,}(?:-|$)|\d{4,}"
)
_DATE = re.compile(
    r"(?:^|-)(?:today|yesterday|tomorrow|tonight|this-week|monday|tuesday|wednesday|thursday|friday"
    r"|saturday|sunday|january|february|april|june|july|august|september|october|november|december)"
    r"(?:-|$)|(?:19|20)\d\d"
)
_ERROR = re.compile(
    r"[a-z]+(?:error|exception)(?:-|$)|(?:^|-)(?:traceback|segfault|stacktrace|errno|exit-code)"
    r"(?:-|$)|(?:^|-)e\d{3,}(?:-|$)|(?:^|-)(?:error|exception)-\d+"
)
_HASH = re.compile(r"(?:^|-)(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}(?:-|$)")
# `fix-…` and its like name what was done once, not how such things are done.
_DEED = re.compile(r"^(?:fix|fixed|fixing|debug|debugged|hotfix|patch|workaround|quick-fix)-")
_SESSION = re.compile(r"(?:^|-)(?:session|conversation|transcript)-?\d*$")


def unfit_name(name: str) -> str:
    """Why `name` is not one for a class of work; empty where it may be."""
    if not name or len(name) > MAX_NAME:
        return f"a name has 1 to {MAX_NAME} characters"
    if wrong := faults(name):
        return f"the name {wrong[0]}"
    for pattern, what in (
        (_DATE, "a day"),
        (_TICKET, "a ticket or a number"),
        (_HASH, "a commit"),
        (_ERROR, "an error message"),
        (_DEED, "what was done once"),
        (_SESSION, "a session"),
    ):
        if pattern.search(name):
            return f"'{name}' names {what}, not a class of work"
    return ""
