"""The agents whose sessions Tacit reads and that it can be connected to: one file each.

Nothing but hosts lies here, each module with its records in `HOSTS`. `host.py` says what one is,
`host_registry.py` finds them by listing this folder.
"""
