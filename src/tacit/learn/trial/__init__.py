"""Trials: whether a skill helps, by runs of the same tasks with it and without it.

`interval` is the arithmetic, `trial_tasks` what is tried, `verifier` and `judge` say whether a run
succeeded, `arms` what each side has, `trial_run` is one run, `trial_records` keeps them,
`trial` runs pairs until the answer is clear, and `trial_report` is that answer. `daily_use` does
the same arithmetic on sessions that nobody arranged.
"""
