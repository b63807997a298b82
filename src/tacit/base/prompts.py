"""The prompts: Markdown files in the folder `prompts` of the layer that sends them."""

import re
from importlib.resources import files


def prompt(layer: str, name: str, /, **values: str) -> str:
    """The prompt in `<layer>/prompts/<name>.md`; `{key}` in it becomes the value of that key.

    Other braces stay as they are, also those that a value brings.
    """
    text = files("tacit").joinpath(layer, "prompts", f"{name}.md").read_text(encoding="utf-8")
    return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), text)
