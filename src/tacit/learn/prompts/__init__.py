"""The prompts of the agents in the background: Markdown files, read by their stems."""

from importlib.resources import files


def prompt(name: str, **values: str) -> str:
    """A prompt of ours by its file's stem; `{name}` in it becomes the value of that name."""
    text = (files(__name__) / f"{name}.md").read_text(encoding="utf-8")
    for key, value in values.items():
        text = text.replace(f"{{{key}}}", value)
    return text
