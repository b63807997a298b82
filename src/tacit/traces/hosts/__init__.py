"""The agents whose sessions Tacit reads and that it can be connected to: one file each.

Nothing but hosts lies here. `host.py` says what one is, `host_registry.py` finds them.
"""
