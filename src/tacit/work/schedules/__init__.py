"""Skills on a clock: what is due when, what a schedule binds, how it fires, where output goes."""
