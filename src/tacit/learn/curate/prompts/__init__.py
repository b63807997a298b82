"""The prompts of curation: Markdown files, read by their stems."""

from importlib.resources import files


def prompt(name: str) -> str:
    """A prompt of ours, by its file's stem."""
    return (files(__name__) / f"{name}.md").read_text(encoding="utf-8")
