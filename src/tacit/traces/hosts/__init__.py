"""The agents whose sessions Tacit reads, one file each behind one Protocol.

Kept empty on purpose: `places` is on the way of every command, and must cost nothing to import.
"""
