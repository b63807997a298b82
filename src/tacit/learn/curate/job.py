"""The job of looking after the library, for the durable worker: asked for once a period.

Looks again whether it is due when it begins: hours may lie between. Killed in the middle, the
next attempt finishes what was begun (`curating.py`).
"""

from tacit.base import paths
from tacit.base.job import Done, Job
from tacit.base.settings import load
from tacit.learn.curate.consolidating import consolidate
from tacit.learn.curate.curating import curate
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
    world = here()
    # Before the look at the ages: that one ends the period, and with it this job's reason.
    joined = consolidate(world, settings)
    report = curate(world, settings, by="worker")
    reports = [*joined, report]
    said = "; ".join(dict.fromkeys(r.summary() for r in reports if r.moved or r.joined))
    changes = tuple(change for r in reports for change in (*r.changes, *([r.id] * r.landed)))
    return Done("curated" if said else "nothing", said or report.summary(), changes)
