"""Charts as SVG, made on the server; whoever shows one shows its numbers in a table beside it."""

from collections.abc import Sequence

from markupsafe import Markup, escape

_WIDE, _HIGH = 640, 120


def bar_chart(labels: Sequence[str], values: Sequence[float], limit: float = 0.0) -> Markup:
    """A bar a value, with a line at `limit` where there is one."""
    most = max([*values, limit, 0.0]) or 1.0
    step = _WIDE / max(len(values), 1)
    bars = Markup("").join(
        Markup('<rect class="bar" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}">').format(
            at * step + step * 0.1, _HIGH - value / most * _HIGH, step * 0.8, value / most * _HIGH
        )
        + Markup("<title>{}: {}</title></rect>").format(label, round(value, 4))
        for at, (label, value) in enumerate(zip(labels, values, strict=True))
    )
    line = Markup("")
    if limit:
        high = _HIGH - limit / most * _HIGH
        line = Markup('<line class="limit" x1="0" x2="{}" y1="{:.1f}" y2="{:.1f}"/>').format(
            _WIDE, high, high
        )
    return _svg(bars + line, "bars by day")


def interval_chart(low: float, middle: float, high: float) -> Markup:
    """An effect between -100 and +100 points, with its interval and the line of no effect."""

    def at(share: float) -> float:
        return (max(-1.0, min(1.0, share)) + 1) / 2 * _WIDE

    parts = Markup(
        '<line class="zero" x1="{0:.1f}" x2="{0:.1f}" y1="0" y2="40"/>'
        '<line class="interval" x1="{1:.1f}" x2="{2:.1f}" y1="20" y2="20"/>'
        '<circle class="effect" cx="{3:.1f}" cy="20" r="6"/>'
    ).format(at(0), at(low), at(high), at(middle))
    return _svg(parts, "effect with its interval", 40)


def _svg(inner: Markup, label: str, high: int = _HIGH) -> Markup:
    return Markup(
        '<svg class="chart" role="img" aria-label="{}" viewBox="0 0 {} {}"'
        ' preserveAspectRatio="none">{}</svg>'
    ).format(escape(label), _WIDE, high, inner)
