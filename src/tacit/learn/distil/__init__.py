"""Distillation: many sessions become one skill, and every line of it knows its support.

Read `learn.segments` (a session cut into tasks) and `learn.clusters` (tasks of one kind), which
trials use too; then `lessons` (what one task teaches), `analyst` (who finds lessons, and their
check), `consensus` (equal lessons joined, contradictions settled), `support` (the tables),
`distilled_skill` (what is written), and `distil_plan` and `distillation`, which put them together
as jobs. `learn.inquiry` is one request of such a job, `evidence` is why a line stands in a skill.
"""
