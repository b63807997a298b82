"""Distillation: many sessions become one skill, and every line of it knows its support.

Read `segments` (a session cut into tasks) and `clusters` (tasks of one kind).
"""
