"""The command line: one module a noun, each with the commands that are about it."""
