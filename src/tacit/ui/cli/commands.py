"""The table of commands: where each lives, and its line in `tacit --help`."""


class Known:
    """A command that can be called."""

    __slots__ = ("about", "module", "section")

    def __init__(self, module: str, section: str, about: str) -> None:
        self.module = f"tacit.ui.cli.{module}"
        self.section = section
        self.about = about


FIND, KEEP = "Find and read skills", "Set up and look after"
TALK = "Work with the agent"
SECTIONS = (FIND, TALK, KEEP)

COMMANDS: dict[str, Known] = {
    "list": Known("list", FIND, "List the skills that can be used here."),
    "search": Known("search", FIND, "Find the skill that fits a task."),
    "show": Known("show", FIND, "Read a skill, and see where it comes from."),
    "lint": Known("lint", FIND, "Say what is wrong with skills, and how to mend it."),
    "catalogue": Known(
        "catalogue", FIND, "Print the block that tells a model which skills there are."
    ),
    "chat": Known("chat", TALK, "Talk with the agent."),
    "run": Known("run", TALK, "Let the agent do one task, and print its answer."),
    "setup": Known("setup", TALK, "Choose a model, and test it."),
    "trust": Known("trust", KEEP, "Allow a project's own skills and settings to count."),
    "config": Known("config", KEEP, "Show the settings and where each comes from."),
    "doctor": Known("doctor", KEEP, "Find damage to Tacit's own data, and mend it."),
    "completion": Known("completion", KEEP, "Print the script that completes commands in a shell."),
}
