"""What a scheduled run is told: Markdown files, read by their stems."""

from importlib.resources import files


def prompt(name: str) -> str:
    return (files(__name__) / f"{name}.md").read_text(encoding="utf-8")
