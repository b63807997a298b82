"""Whether a call of a tool may be made: allowed by a pattern, by the user, or not at all."""

import re
from collections.abc import Awaitable, Callable
from fnmatch import fnmatchcase
from typing import Any, Literal

import msgspec

from tacit.agent.tool import Power

ApprovalAnswer = Literal["once", "session", "always", "no"]


class ApprovalRequest(msgspec.Struct, frozen=True):
    """A call that needs a yes."""

    tool: str
    power: Power
    subject: str
    """What it is about: the command line, the path."""
    arguments: dict[str, Any]

    @property
    def pattern(self) -> str:
        """The pattern that `always` and `session` would allow: this program, this file."""
        if self.power == "command":
            words = self.subject.split()
            joined = any(mark in self.subject for mark in _JOINERS)
            runs_others = bool(words) and (
                "=" in words[0]  # a variable, and the program comes after it
                or words[0].rpartition("/")[2].rstrip("0123456789.") in _RUN_OTHERS
            )
            if words and not joined and not runs_others:
                return f"{self.tool}:{_exactly(words[0])} *"
        return f"{self.tool}:{_exactly(self.subject)}"


Ask = Callable[[ApprovalRequest], Awaitable[ApprovalAnswer]]
"""Asks the user. Without anybody to ask, there is no such function and the answer is no."""
Remember = Callable[[str], None]
"""Keeps a pattern in the user's settings."""

# Allowing these with any arguments would be allowing everything.
_RUN_OTHERS = {
    "sh", "bash", "zsh", "dash", "fish", "env", "sudo", "doas", "xargs", "find", "nohup", "time",
    "timeout", "python", "node", "deno", "bun", "ruby", "perl", "php", "awk", "eval", "exec", "ssh",
    "npx", "pnpx", "bunx", "uvx", "pipx", "su", "nice", "ionice", "setsid", "stdbuf", "strace",
    "watch", "parallel", "command", "builtin", "source", "busybox", "chroot", "script", "lua",
    "tclsh", "Rscript", "pwsh", "coproc", "!", "",
}  # fmt: skip
# A pattern for one program must not let a second one through.
_JOINERS = ("&", ";", "|", "`", "$(", "\n", ">", "<")


class Approver:
    """Decides on calls, and remembers what was decided for the session."""

    def __init__(
        self,
        allow: tuple[str, ...] = (),
        *,
        yes: bool = False,
        ask: Ask | None = None,
        remember: Remember | None = None,
    ) -> None:
        self._allow = list(allow)
        self._yes = yes
        self._ask = ask
        self._remember = remember
        self.by_person = False
        """Whether the last yes was said by a person to that very call."""

    @property
    def refusal(self) -> str:
        """What the model is told when the answer is no."""
        if self._ask is None:
            return "Nobody is there to allow this call, so it was not made. Do without it."
        return "The user did not allow this call. Do not repeat it; ask what they want instead."

    def will_ask(self, request: ApprovalRequest) -> bool:
        """Whether a person says yes or no to this very call."""
        return self._ask is not None and not self._goes_unasked(request)

    async def allows(self, request: ApprovalRequest) -> bool:
        self.by_person = False
        if self._goes_unasked(request):
            return True
        if self._ask is None:
            return False
        answer = await self._ask(request)
        if answer in ("session", "always"):
            self._allow.append(request.pattern)
        if answer == "always" and self._remember is not None:
            self._remember(request.pattern)
        self.by_person = answer != "no"
        return self.by_person

    def _goes_unasked(self, request: ApprovalRequest) -> bool:
        return request.power in ("read", "ask") or self._yes or self._is_listed(request)

    def _is_listed(self, request: ApprovalRequest) -> bool:
        for pattern in self._allow:
            tool, _, subject = pattern.partition(":")
            if not fnmatchcase(request.tool, tool):
                continue
            if subject in ("", "*"):
                return True
            if _fits_itself_only(request):
                if subject in (request.subject, _exactly(request.subject)):
                    return True
                continue
            if fnmatchcase(request.subject, subject) or request.subject == subject.removesuffix(
                " *"
            ):
                return True
        return False


def _fits_itself_only(request: ApprovalRequest) -> bool:
    """Whether a pattern would let more through than it says: a second program, or what lies
    above the folder that it names."""
    if request.power == "command":
        return any(mark in request.subject for mark in _JOINERS)
    return ".." in request.subject.split("/")


def _exactly(text: str) -> str:
    """A pattern that fits `text` alone: a file may be called `*`."""
    return re.sub(r"([*?[])", r"[\1]", text)
