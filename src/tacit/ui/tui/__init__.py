"""`tacit chat` on a whole terminal, with Textual: the same events as `--plain`, drawn."""
