"""What pages draw: templates and what they show values with, the Markdown of a skill, two versions
side by side, and charts.

Markdown of a skill is hostile text, so nothing in it is ever taken for HTML: raw HTML is shown as
the text that it is, pictures are not loaded, and a link leads out only when it is an http address;
it is opened without telling where from. Charts are SVG made here; whoever shows one shows its
numbers in a table beside it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from tacit.base.clock import ago
from tacit.base.display import amount, dollars, plain, shorten
from tacit.base.paths import with_tilde

_MOST = 200_000


def make_templates(**known: Any) -> Environment:
    """The templates, which know these values; what they show is escaped, whatever it is."""
    made = Environment(
        loader=PackageLoader("tacit.ui.web"),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= known
    filters: dict[str, Callable[..., Any]] = {
        "ago": _ago,
        "minute": _minute,
        "exact": escape,
        "interval": interval_chart,
        "pretty": _pretty,
        "markdown": markdown_html,
        "dollars": lambda value: dollars(value or 0.0),
        "amount": amount,
        "home": with_tilde,
        "short": lambda text: str(text)[-8:],
        "query": urlencode,
        "diff": diff_rows,
        "typed": setting_text,
    }
    made.filters |= filters
    return made


def _shown(value: Any) -> Any:
    """What is put out, without signs that would turn or hide what stands beside them."""
    return plain(value) if type(value) is str else value


def _pretty(value: Any) -> str:
    """A value as indented JSON, cut where it is long."""
    return shorten(msgspec.json.format(msgspec.json.encode(value), indent=2).decode(), 4000)


def _ago(at: str | None) -> str:
    return ago(datetime.fromisoformat(at), datetime.now(UTC)) if at else ""


def _minute(at: str | None) -> str:
    """A moment as commands print it, in the time of this machine."""
    return f"{datetime.fromisoformat(at).astimezone():%Y-%m-%d %H:%M}" if at else ""


def setting_text(value: Any) -> str:
    """A setting as it is typed: of a list, a value a line."""
    if isinstance(value, list):
        return "\n".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def markdown_html(text: str) -> Markup:
    """`text` as HTML."""
    cut = plain(text[:_MOST])
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
    reader.core.ruler.push("below", _put_below)
    return reader


def _put_below(state: Any) -> None:
    """Let the headings of a text stand below those of the page that shows it."""
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1:]) + 2, 6)}"


def _is_web(url: str) -> bool:
    return url.lower().startswith(("https://", "http://"))


def _open_link(self: Any, tokens: Any, at: int, options: Any, env: Any) -> str:
    tokens[at].attrSet("rel", "noreferrer noopener nofollow")
    tokens[at].attrSet("target", "_blank")
    return str(self.renderToken(tokens, at, options, env))


class DiffRow(NamedTuple):
    """One line of two texts side by side."""

    kind: str
    """`same`, `removed`, `added`, `changed` or `head`."""
    old: str
    new: str
    old_number: int = 0
    new_number: int = 0


_PART = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def diff_rows(diff: str) -> list[DiffRow]:
    """A unified diff as rows of two columns: what went beside what came."""
    rows: list[DiffRow] = []
    gone: list[tuple[int, str]] = []
    came: list[tuple[int, str]] = []
    old = new = 0
    left = [0, 0]  # lines of the part that are still to come, of the old text and of the new

    def flush() -> None:
        for at in range(max(len(gone), len(came))):
            one = gone[at] if at < len(gone) else (0, "")
            other = came[at] if at < len(came) else (0, "")
            kind = "changed" if one[0] and other[0] else "removed" if one[0] else "added"
            rows.append(DiffRow(kind, one[1], other[1], one[0], other[0]))
        gone.clear()
        came.clear()

    for line in diff.removesuffix("\n").split("\n"):
        if max(left) <= 0 or line.startswith("\\"):
            flush()
            if part := _PART.match(line):
                old, new = int(part[1]), int(part[3])
                left = [int(part[2] or 1), int(part[4] or 1)]
            rows.append(DiffRow("head", line, line))
        elif line.startswith("-"):
            gone.append((old, line[1:]))
            old, left[0] = old + 1, left[0] - 1
        elif line.startswith("+"):
            came.append((new, line[1:]))
            new, left[1] = new + 1, left[1] - 1
        else:
            flush()
            rows.append(DiffRow("same", line[1:], line[1:], old, new))
            old, new, left = old + 1, new + 1, [left[0] - 1, left[1] - 1]
    flush()
    return rows


_WIDE, _HIGH = 640, 120
_BAR = Markup(
    '<rect class="bar" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}">'
    "<title>{}: {}</title></rect>"
)


def bar_chart(values: Mapping[str, float], show: Callable[[Any], str], limit: float = 0) -> Markup:
    """A bar a value by its label, with a line at `limit` where that is not far above them."""
    highest = max(values.values(), default=0.0)
    most = (max(highest, limit) if limit <= 2 * highest else highest) or 1.0
    step = _WIDE / max(len(values), 1)
    parts = Markup("").join(
        _BAR.format(at * step + step * 0.1, _HIGH - high, step * 0.8, high, label, show(value))
        for at, (label, value) in enumerate(values.items())
        for high in [value / most * _HIGH]
    )
    if 0 < limit <= most:
        parts += Markup('<line class="limit" x1="0" x2="{}" y1="{y:.1f}" y2="{y:.1f}"/>').format(
            _WIDE, y=_HIGH - limit / most * _HIGH
        )
    ends = list(values)[:: max(len(values) - 1, 1)]
    return _axis([f"most: {show(highest)}"]) + _svg(parts, "bars", _HIGH) + _axis(ends)


def interval_chart(effect: Mapping[str, float]) -> Markup:
    """An effect between -100 and +100 points, with its interval and the line of no effect."""
    low, middle, high = (
        (max(-1.0, min(1.0, effect[part])) + 1) / 2 * _WIDE for part in ("low", "mean", "high")
    )
    parts = Markup(
        '<line class="zero" x1="{0:.1f}" x2="{0:.1f}" y1="0" y2="40"/>'
        '<line class="interval" x1="{1:.1f}" x2="{2:.1f}" y1="20" y2="20"/>'
        '<line class="effect" x1="{3:.1f}" x2="{3:.1f}" y1="8" y2="32"/>'
    ).format(_WIDE / 2, low, high, middle)
    return _svg(parts, "effect with its interval", 40) + _axis(["−100", "no effect", "+100"])


def _svg(inner: Markup, label: str, high: int) -> Markup:
    return Markup(
        '<svg class="chart high-{}" role="img" aria-label="{}" viewBox="0 0 {} {}"'
        ' preserveAspectRatio="none">{}</svg>'
    ).format(high, label, _WIDE, high, inner)


def _axis(words: Sequence[str]) -> Markup:
    spans = Markup("").join(Markup("<span>{}</span>").format(word) for word in words)
    return Markup('<p class="axis">{}</p>').format(spans)
