"""Repair: a skill that failed is mended by a model, checked, and put on probation.

`repair_triggers` says which uses call for a repair, `repair_job` does one, `repair_broker` judges
what the model made with the help of `verification`, `repairs` records it, and `probation` watches
the uses after it.
"""
