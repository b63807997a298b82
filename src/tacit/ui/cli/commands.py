"""The table of commands: where each lives, and its line in `tacit --help`."""


class Known:
    """A command that can be called."""

    __slots__ = ("about", "module", "section")

    def __init__(self, module: str, section: str, about: str) -> None:
        self.module = f"tacit.ui.cli.{module}"
        self.section = section
        self.about = about


FIND = "Find and read skills"
CHANGE = "Change skills and facts"
BACK = "History and inbox"
SESSIONS = "Sessions of your agents"
CONNECT = "Connect your agents"
LEARN = "Learn"
TALK = "Work with the agent"
KEEP = "Set up and look after"
SECTIONS = (FIND, TALK, LEARN, CHANGE, BACK, SESSIONS, CONNECT, KEEP)

# Other words for a command.
ALIASES = {"ls": "list"}

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
    "schedule": Known("schedule", TALK, "Run skills and tasks by the clock."),
    "setup": Known("setup", TALK, "Choose a model, and test it."),
    "learn": Known("learn", LEARN, "Learn from what agents did: drafts go to the inbox."),
    "improve": Known("improve", LEARN, "Repair a skill by what failed when it was used."),
    "why": Known("why", LEARN, "Say what came of a session, and why."),
    "cost": Known("cost", LEARN, "Show what work in the background cost, and what it may."),
    "prompt-status": Known("prompt_status", LEARN, "Print, once, what was learned; for a prompt."),
    "new": Known("new", CHANGE, "Make a skill."),
    "edit": Known("edit", CHANGE, "Change a skill: its text, a support file, or its name."),
    "archive": Known("archive", CHANGE, "Take a skill out of use; it can be brought back."),
    "restore": Known("restore", CHANGE, "Bring an archived skill back."),
    "rm": Known("rm", CHANGE, "Delete a skill."),
    "pin": Known("pin", CHANGE, "Let nobody but you change a skill."),
    "unpin": Known("unpin", CHANGE, "Let the usual rules hold for a skill again."),
    "curate": Known("curate", CHANGE, "Put away what nobody uses, and see how the library ages."),
    "share": Known("share", CHANGE, "Let git see a learned skill of this project."),
    "memory": Known("memory", CHANGE, "Show, note, change and forget facts."),
    "log": Known("log", BACK, "Show the history of skills, the newest change first."),
    "history": Known("history", BACK, "Show the life of a skill: made, used, failed, repaired."),
    "diff": Known("diff", BACK, "Show what a change did, or how a skill differs."),
    "undo": Known("undo", BACK, "Take one change back, and nothing else."),
    "rollback": Known("rollback", BACK, "Make one skill what it was in an earlier version."),
    "inbox": Known("inbox", BACK, "Show the changes that wait for you."),
    "accept": Known("accept", BACK, "Let changes from the inbox happen."),
    "reject": Known("reject", BACK, "Turn a change from the inbox down."),
    "import": Known("import_", SESSIONS, "Take sessions in: of all agents, of one, from a file."),
    "sessions": Known("sessions", SESSIONS, "List the sessions that are in the store."),
    "session": Known("session", SESSIONS, "Show one session as a timeline."),
    "forget": Known("forget", SESSIONS, "Forget sessions for good."),
    "watch": Known("watch", SESSIONS, "Follow the agents' folders, without hooks."),
    "worker": Known("worker", SESSIONS, "Take in the sessions that hooks reported."),
    "daemon": Known("daemon", SESSIONS, "Keep a worker running, and start it with the machine."),
    "jobs": Known("jobs", LEARN, "Show the work in the background: what came of it, and why."),
    "connect": Known("connect", CONNECT, "Have your agents tell Tacit when a session ends."),
    "disconnect": Known("disconnect", CONNECT, "Take back what `tacit connect` wrote."),
    "plugin": Known("plugin", CONNECT, "Write the folder that agents can install as a plugin."),
    "trust": Known("trust", KEEP, "Allow a project's own skills and settings to count."),
    "config": Known("config", KEEP, "Show the settings and where each comes from, or set one."),
    "doctor": Known("doctor", KEEP, "Find damage to Tacit's own data, and mend it."),
    "completion": Known("completion", KEEP, "Print the script that completes commands in a shell."),
}
