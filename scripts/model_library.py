"""A library for scripts/test-model: a few skills on programs that do not exist, among many others.

All of it is made here from a seed. The programs, their options and the tasks are invented, so that
no model can know them; the others are about real tools, and some of them are about like tasks, so
that the right skill has to be told from its neighbours.
"""

import random
from pathlib import Path
from typing import Literal, NamedTuple

SEED = 20261115


Manner = Literal["names the program", "in the skill's words", "in other words"]


class Question(NamedTuple):
    """What is asked, which skill knows it, and the command that answers it."""

    text: str
    skill: str
    answer: str
    manner: Manner


class _Invented(NamedTuple):
    program: str
    skill: str
    does: str
    task: str
    answer: str
    asked: str
    manner: Manner


_NAMED: Manner = "names the program"
_OWN: Manner = "in the skill's words"
_OTHER: Manner = "in other words"

_INVENTED = (
    _Invented(
        "brindle", "label-printers", "Runs the label printers of the warehouse.",
        "empty the queue of the label printers", "brindle purge --all-trays",
        "The sticker printing is stuck with old work. Which command clears it?", _OTHER,
    ),
    _Invented(
        "quoll", "artifact-shelf", "Looks after the shelf where build artifacts are kept.",
        "copy the artifact shelf to the west ring", "quoll mirror --ring west",
        "How do I copy the artifact shelf to the west ring with quoll?", _NAMED,
    ),
    _Invented(
        "tarn", "fish-tank-sensors", "Calibrates the water sensors of the fish tanks.",
        "set the water sensors to zero", "tarn zero --probe ph",
        "The fish tank readings are off. Which command sets the water sensors to zero?", _OWN,
    ),
    _Invented(
        "oskar", "dock-gate-keys", "Handles the keys of the dock gates.",
        "issue a new key for a dock gate", "oskar rekey --gate dock",
        "How do I issue a new key for a dock gate with oskar?", _NAMED,
    ),
    _Invented(
        "fennel", "seed-catalogue", "Publishes the seed catalogue of the nursery.",
        "publish the seed catalogue for spring", "fennel issue --season spring",
        "Which command brings out the list of plants to sow after winter?", _OTHER,
    ),
    _Invented(
        "grackle", "choir-rota", "Makes the rota of the choir.",
        "swap two singers in the rota", "grackle swap --pair",
        "Which command swaps two singers in the rota of the choir?", _OWN,
    ),
    _Invented(
        "mossop", "greenhouse-vents", "Opens and shuts the vents of the greenhouses.",
        "shut all greenhouse vents at once", "mossop shut --every-bay",
        "A storm comes. Which command shuts all greenhouse vents at once?", _OWN,
    ),
    _Invented(
        "dunlin", "ferry-manifest", "Keeps the passenger manifest of the ferry.",
        "freeze the manifest before departure", "dunlin seal --crossing",
        "How do I freeze the ferry manifest before departure with dunlin?", _NAMED,
    ),
    _Invented(
        "wexford", "kiln-schedule", "Runs the firing schedule of the pottery kilns.",
        "start the slow cooling of a kiln", "wexford cool --slow",
        "The pots are fired. Which command lets the oven cool down gently?", _OTHER,
    ),
    _Invented(
        "pintail", "bee-hive-scales", "Reads the scales under the bee hives.",
        "export the hive weights of this week", "pintail dump --week",
        "How do I export the hive weights of this week with pintail?", _NAMED,
    ),
    _Invented(
        "corvane", "museum-lights", "Controls the lights of the museum rooms.",
        "dim the lights for the night", "corvane dim --after-hours",
        "Which command lowers the lamps in the exhibition in the evening?", _OTHER,
    ),
    _Invented(
        "sandrel", "ski-lift-log", "Keeps the log of the ski lifts.",
        "close the lift log of the day", "sandrel close --daybook",
        "Which command closes the lift log of the day?", _OWN,
    ),
)  # fmt: skip

_TOOLS = (
    "docker", "kubectl", "terraform", "git", "psql", "redis", "nginx", "ansible", "npm", "cargo",
    "pytest", "ffmpeg", "helm", "aws", "gcloud", "openssl", "systemd", "rsync", "mysql", "kafka",
    "rabbitmq", "elasticsearch", "prometheus", "grafana", "vault",
)  # fmt: skip
_TASKS = (
    ("upgrade", "Upgrade {t} to a new version and keep a way back."),
    ("back-up", "Back up what {t} holds and check that the copy can be read."),
    ("restore", "Restore {t} from a backup after a loss."),
    ("rotate-logs", "Rotate and compress the logs of {t} before the disk is full."),
    ("rotate-keys", "Issue new keys for {t} and revoke the old ones."),
    ("empty-queue", "Empty a queue or a cache of {t} that is stuck with old jobs."),
    ("mirror", "Copy everything that {t} serves to a second region."),
    ("calibrate-alerts", "Set the thresholds of the alerts on {t} so that they mean something."),
    ("publish-release", "Publish a release of {t} modules to the internal catalogue."),
    ("schedule-jobs", "Run {t} jobs on a schedule, and swap two of them when they clash."),
    ("shut-down", "Shut all {t} instances down at once and in order, before maintenance."),
    ("freeze-config", "Freeze the configuration of {t} before a departure from the standard."),
    ("cool-storage", "Move cold data of {t} to slow and cheap storage."),
    ("export-metrics", "Export the figures of this week from {t} as CSV."),
    ("dim-noise", "Dim the noise in the output of {t} for the night shift."),
    ("close-tickets", "Close the log of the day and the tickets on {t} that are done."),
    ("debug-timeouts", "Find out why calls to {t} time out."),
    ("tune-memory", "Choose memory limits for {t} from what it uses."),
    ("audit-access", "List who can reach {t}, and take away what is not needed."),
    ("migrate", "Move {t} to another host without losing requests."),
    ("test-locally", "Run {t} on a laptop with sample data."),
    ("write-docs", "Write the page that explains our use of {t}."),
    ("review-changes", "Review a change to {t} files before it is merged."),
    ("cut-cost", "Find what {t} costs and what of it can go."),
    ("scan-security", "Scan {t} for known holes and mend what is found."),
    ("set-up-ci", "Set {t} up in the pipeline, with a cache."),
    ("template-project", "Start a project that uses {t} from our template."),
    ("clean-up", "Remove what {t} left behind and nobody uses."),
    ("trace-requests", "Follow one request through {t} with its id."),
    ("load-test", "Put {t} under load and read the result."),
    ("fail-over", "Switch {t} to the stand-by when the main one is gone."),
    ("limit-rates", "Limit how often one client may call {t}."),
    ("validate-input", "Check what is fed to {t} before it is used."),
    ("cache-results", "Keep results of {t} for as long as they hold."),
    ("split-config", "Split the settings of {t} by environment."),
    ("pin-versions", "Pin the versions that {t} pulls in."),
    ("handle-errors", "Read the errors of {t} and say what each asks for."),
    ("plan-capacity", "Say how much {t} the next quarter needs."),
    ("sync-clocks", "Set the clocks that {t} depends on to zero drift."),
    ("onboard", "Show a new colleague around {t} in an hour."),
)
_STEPS = (
    "Note the state before anything is changed: `{t} status > before.txt`.",
    "Read the last page of the runbook for {t}; it may have changed since.",
    "Try it on the smallest instance first, with `--dry-run` where there is one.",
    "Run `{t} {verb} --target $1` and wait until it returns.",
    "Compare with the state from before: `diff before.txt after.txt`.",
    "Tell the channel what was done and when.",
    "Write down what took longer than expected.",
    "Keep the old version for two days, then remove it.",
    "If a step fails, stop there: the next one relies on it.",
)
_PITFALLS = (
    "A full disk looks like a slow {t}. Check `df -h` first.",
    "Old clients of {t} keep their connections for an hour.",
    "The staging {t} has other limits than production.",
    "Two people doing this at once undo each other's work.",
    "What {t} prints last is not always what it did last.",
)


def questions() -> list[Question]:
    """What is asked, one of each skill, as many in each manner."""
    return [Question(made.asked, made.skill, made.answer, made.manner) for made in _INVENTED]


def write(skills: Path, others: int = 1000, seed: int = SEED) -> None:
    """Make the library in the folder `skills`: the invented ones among `others`."""
    chance = random.Random(seed)  # noqa: S311
    pairs = [(tool, *task) for tool in _TOOLS for task in _TASKS]
    if others > len(pairs):
        raise ValueError(f"there are {len(pairs)} other skills")
    for tool, verb, does in chance.sample(pairs, others):
        _put(skills, f"{tool}-{verb}", does.format(t=tool), _other(tool, verb, chance))
    for made in _INVENTED:
        _put(skills, made.skill, f"{made.does} Use to {made.task}.", _invented(made))


def _put(skills: Path, name: str, description: str, body: str) -> None:
    folder = skills / name
    folder.mkdir(parents=True)
    text = f"---\nname: {name}\ndescription: {description}\n---\n\n{body}\n"
    (folder / "SKILL.md").write_text(text, encoding="utf-8")


def _invented(made: _Invented) -> str:
    """A dozen lines, of which one is the answer."""
    return "\n".join(
        [
            f"# {made.skill.replace('-', ' ').capitalize()}",
            "",
            f"{made.does} The program for it is `{made.program}`.",
            "",
            f"To {made.task}, run this command:",
            "",
            f"    {made.answer}",
            "",
            "It prints nothing when it worked. If it prints an error, read it and stop.",
            "",
            "Do not run it twice at the same time, and ask before doing it on a holiday.",
        ]
    )


def _other(tool: str, verb: str, chance: random.Random) -> str:
    steps = chance.sample(_STEPS, chance.randint(5, len(_STEPS)))
    pitfalls = chance.sample(_PITFALLS, chance.randint(2, 4))
    title = f"{tool} {verb.replace('-', ' ')}".capitalize()
    lines = [f"# {title}", "", "## Steps", ""]
    lines += [f"{n}. {step.format(t=tool, verb=verb)}" for n, step in enumerate(steps, 1)]
    lines += ["", "## Watch out", "", *(f"- {pitfall.format(t=tool)}" for pitfall in pitfalls)]
    return "\n".join(lines)
