"""Small charts of a report as inline SVG: no script, nothing from outside."""

from collections.abc import Sequence
from html import escape as escape_html

from reflexarc.bench.readable import readable
from reflexarc.context.reuse import Band

_WIDTH, _LEFT, _ROW, _BAR = 640, 150, 26, 14
_SPAN = _WIDTH - _LEFT - 90


def shares(title: str, bands: Sequence[Band]) -> str:
    """Medians as bars, the tenth to the ninetieth percentile as a line."""
    rows: list[str] = []
    for at, band in enumerate(bands):
        top = at * _ROW
        low, high = _LEFT + band.p10 * _SPAN, _LEFT + band.p90 * _SPAN
        middle = top + _BAR / 2
        rows.append(
            _bar(top, band.context, band.median, f"{band.median:.1%}, n={band.n:,}")
            + f'<line class="range" x1="{low:.1f}" x2="{high:.1f}" y1="{middle:.1f}" '
            f'y2="{middle:.1f}"/>'
        )
    return _chart(title, rows)


def bars(title: str, values: Sequence[tuple[str, float, str]]) -> str:
    """Name, size and label of each; the longest fills the width."""
    most = max((value for _, value, _ in values), default=0.0)
    rows = [
        _bar(at * _ROW, name, value / most if most > 0 else 0.0, label)
        for at, (name, value, label) in enumerate(values)
    ]
    return _chart(title, rows)


def _bar(top: float, name: str, share: float, label: str) -> str:
    width = max(0.0, min(1.0, share)) * _SPAN
    base = top + _BAR - 2
    return (
        f'<text x="{_LEFT - 8}" y="{base}" text-anchor="end">{escape(_short(name))}</text>'
        f'<rect class="bar" x="{_LEFT}" y="{top}" width="{width:.1f}" height="{_BAR}" rx="2"/>'
        f'<text x="{_LEFT + width + 6:.1f}" y="{base}">{escape(label)}</text>'
    )


def _chart(title: str, rows: Sequence[str]) -> str:
    if not rows:
        return ""
    height = len(rows) * _ROW + 4
    name = escape(title)
    return (
        f'<figure><figcaption>{name}</figcaption><svg role="img" aria-label="{name}" '
        f'viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}">'
        f"<title>{name}</title>{''.join(rows)}</svg></figure>"
    )


def _short(name: str) -> str:
    return name if len(name) <= 20 else f"{name[:19]}…"


def escape(text: str) -> str:
    """Text of others, for a page."""
    return escape_html(readable(text))
