"""Markdown of a skill as HTML: hostile text, so nothing in it is ever taken for HTML.

Raw HTML is shown as the text that it is, pictures are not loaded, and a link leads out only when it
is an http address; it is opened without telling where from.
"""

from functools import cache
from typing import Any

from markupsafe import Markup

_MOST = 200_000


def markdown_html(text: str) -> Markup:
    """`text` as HTML."""
    cut = text[:_MOST]
    html = _reader().render(cut)
    note = "<p>… cut here; the whole text is in the file.</p>" if len(text) > _MOST else ""
    return Markup(html + note)  # noqa: S704  # made by the reader below, which escapes


@cache
def _reader() -> Any:
    from markdown_it import MarkdownIt

    reader = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable("table")
    reader.disable("image")
    reader.validateLink = _is_web  # type: ignore[method-assign]
    reader.add_render_rule("link_open", _open_link)
    return reader


def _is_web(url: str) -> bool:
    return url.lower().startswith(("https://", "http://"))


def _open_link(self: Any, tokens: Any, at: int, options: Any, env: Any) -> str:
    tokens[at].attrSet("rel", "noreferrer noopener nofollow")
    tokens[at].attrSet("target", "_blank")
    return str(self.renderToken(tokens, at, options, env))
