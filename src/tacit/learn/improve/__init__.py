"""Repair: a skill that failed is looked at by a model, mended, checked, and put on probation.

`triggers` says which uses call for it, `repair` does one, `probation` (beside this package) watches
what became of it.
"""
