"""The job of looking after the library, for the durable worker: asked for once a period.

Looks again whether it is due when it begins: hours may lie between. Killed in the middle, the
next attempt finishes what was begun (`curating.py`).
"""

from tacit.base import paths
from tacit.base.job import Done, Job
from tacit.base.settings import load
from tacit.learn.curate.curating import curate
from tacit.learn.curate.schedules import scheduled_names
from tacit.learn.curate.when import due
from tacit.learn.curate.world import here


def run(job: Job) -> Done:
    """Do the run that `job.key` names, or say when to come back."""
    settings = load(paths.user_home()).settings
    when = due(settings.curate)
    if when.key != job.key:
        return Done("nothing", "it was done meanwhile" if when.key else when.reason)
    if not when.now:
        return Done("put off", when.reason, later=max(when.seconds, 1.0))
    report = curate(here(scheduled=scheduled_names()), settings, by="worker")
    return Done("curated" if report.moved else "nothing", report.summary(), report.changes)
