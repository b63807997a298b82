"""What a session is given to work with, where that is not the usual: other tools, other skills."""

import msgspec

from tacit.agent.tools import TOOLS, Tool
from tacit.skills.library import Library


class Kit(msgspec.Struct, frozen=True):
    """The tools of a session, and the skills that it knows."""

    tools: tuple[Tool, ...] = TOOLS
    library: Library | None = None
    """Instead of the one of its working directory."""
