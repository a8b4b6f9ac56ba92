"""The report as one HTML page that holds all it needs: no network, no script, light and dark."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from reflexarc.bench.waste import Waste
from reflexarc.bench.waste_breaks import BreakFound
from reflexarc.bench.waste_charts import bars, escape, shares
from reflexarc.bench.waste_rows import Row
from reflexarc.bench.waste_verdicts import capital, dollars, percent

ABSENT = "not in this log"
_ROWS = 100

_STYLE = """
:root{color-scheme:light dark;
--ink:#1d2330;--soft:#5b6472;--paper:#fff;--line:#d9dee6;--bar:#3b6fd4}
@media (prefers-color-scheme:dark){
:root{--ink:#e6e9ef;--soft:#a0a8b5;--paper:#14171d;--line:#333a46;--bar:#7aa2f7}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);
max-width:70rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.9rem}
th,td{text-align:left;padding:.25rem .6rem;border-bottom:1px solid var(--line);vertical-align:top}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.soft{color:var(--soft)}figure{margin:1rem 0}figcaption{font-weight:600;margin-bottom:.4rem}
svg{max-width:100%;height:auto}svg text{font-size:12px;fill:var(--ink)}
.bar{fill:var(--bar)}.range{stroke:var(--ink);stroke-width:2}
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(report: Waste, title: str) -> str:
    """HTML text; whatever comes from a log is escaped."""
    body = "".join(
        (
            f"<h1>{escape(title)}</h1><ul>",
            *(f"<li>{escape(one)}</li>" for one in report.verdicts),
            "</ul>",
            _savings(report),
            _reuse(report),
            _breaks(report.breaks, report.break_totals.count),
            _time(report),
            _rows("Models", report.models),
            _rows("Sessions", report.sessions),
            _steps(report),
            _files(report),
        )
    )
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><main>{body}"
        "</main></body></html>\n"
    )


def _savings(report: Waste) -> str:
    rows = [
        (
            capital(one.way),
            _dollars(one.usd),
            _seconds(one.seconds),
            _number(one.tokens),
            "" if one.kind == "absent" else one.kind,
            one.because
            + ("" if not one.assumptions else f". Assumed: {'; '.join(one.assumptions)}"),
        )
        for one in report.savings
    ]
    return _section("What could be saved", _table(
        ("way", "dollars", "seconds", "tokens", "how known", "why"), rows, (1, 2, 3)
    ))  # fmt: skip


def _reuse(report: Waste) -> str:
    expiry = bars(
        "Prompt tokens that a cache misses, by how long it keeps a prefix",
        [
            (f"{one.ttl_s / 60:g} minutes", one.share, percent(one.share))
            for one in report.cache_expiry
        ],
    )
    charts = (
        shares(
            "Of each prompt, the share that the previous turn's began with (median, p10 to p90)",
            report.redundancy_by_context,
        ),
        shares(
            "Of each prompt, the share that any earlier one began with",
            report.redundancy_any_earlier_by_context,
        ),
        expiry,
    )
    covers = report.texts.covers
    note = "" if covers is None else (
        f'<p class="soft">Of the prompts that are not whole in this log, about {percent(covers)} '
        "of the tokens are.</p>"
    )  # fmt: skip
    return _section("What is sent again", "".join(charts) + note if any(charts) else "")


def _breaks(broken: Sequence[BreakFound], count: int) -> str:
    by_cause: defaultdict[str, int] = defaultdict(int)
    for one in broken:
        by_cause[one.cause] += one.lost_tokens
    chart = bars(
        "Tokens read anew, by cause",
        [(cause, tokens, f"{tokens:,}") for cause, tokens in _largest(by_cause)],
    )
    rows = [
        (
            one.session,
            one.request,
            one.cause,
            _number(one.lost_tokens),
            _dollars(one.usd),
            _seconds(one.seconds),
            one.kind,
            one.why,
        )
        for one in broken[:_ROWS]
    ]
    names = ("session", "request", "cause", "lost tokens", "dollars", "seconds", "how known", "why")
    return _section(
        "Prefix breaks", chart + _table(names, rows, (3, 4, 5)) + _more(count, len(rows))
    )


def _time(report: Waste) -> str:
    known = [
        (name, seconds, f"{seconds:,.0f} s ({report.time.kinds[key]})")
        for name, key, seconds in (
            ("the model", "model_s", report.time.model_s),
            ("tools", "tools_s", report.time.tools_s),
            ("waiting", "waiting_s", report.time.waiting_s),
        )
        if seconds is not None
    ]
    money = [
        (name, usd, dollars(usd))
        for name, usd in (
            ("prompts read anew", report.money.read_anew_usd),
            ("from caches", report.money.from_cache_usd),
            ("written to caches", report.money.to_cache_usd),
            ("answers", report.money.output_usd),
        )
        if usd is not None
    ]
    charts = bars("Seconds of all steps together", known) + bars(
        f"Dollars at published prices, of {report.money.requests:,} requests", money
    )
    return _section("Where time and money go", charts)


def _rows(title: str, listed: Sequence[Row]) -> str:
    rows = [_row(one) for one in listed[:_ROWS]]
    return _section(title, _table(_NAMES, rows, _NUMBERS) + _more(len(listed), len(rows)))


_NAMES = ("", "requests", "prompt", "cached", "output", "dollars", "model s", "reused", "earlier")
_NUMBERS = tuple(range(1, len(_NAMES)))


def _row(one: Row) -> tuple[str, ...]:
    return (
        one.name,
        _number(one.requests),
        _number(one.prompt),
        _number(one.cache_read),
        _number(one.output),
        _dollars(one.cost_usd),
        _seconds(one.time.model_s),
        _share(one.reused_previous),
        _share(one.reused_earlier),
    )


def _steps(report: Waste) -> str:
    rows = [
        (
            one.session,
            one.request,
            one.model,
            _number(one.prompt),
            _number(one.output),
            _dollars(one.cost_usd),
            _seconds(one.model_s),
            _seconds(one.tools_s),
            _seconds(one.waiting_s),
            ", ".join(one.tools),
        )
        for one in report.steps[:_ROWS]
    ]
    names = (
        "session", "request", "model", "prompt", "output", "dollars", "model s", "tools s",
        "waiting s", "tools",
    )  # fmt: skip
    total = report.totals.requests
    return _section(
        "The costliest steps", _table(names, rows, tuple(range(3, 9))) + _more(total, len(rows))
    )


def _files(report: Waste) -> str:
    rows = [
        (
            *_row(one),
            one.format or "unknown",
            _number(one.report.lines),
            "; ".join(f"{why}: {number:,}" for why, number in one.report.skipped.items()),
            "; ".join(f"{rule}: {number:,}" for rule, number in one.report.duplicates.items()),
            "; ".join(
                [*one.report.notes, *(["totals are at least"] if one.report.at_least else [])]
            ),
        )
        for one in report.files[:_ROWS]
    ]
    names = (*_NAMES, "format", "lines", "passed over", "counted once", "notes")
    return _section(
        "Files", _table(names, rows, (*_NUMBERS, 10)) + _more(len(report.files), len(rows))
    )


def _section(title: str, content: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{content}</section>" if content else ""


def _table(names: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[int]) -> str:
    if not rows:
        return ""

    def cells(tag: str, values: Iterable[str]) -> str:
        return "".join(
            f"<{tag}{' class=n' if at in numeric else ''}>{escape(value)}</{tag}>"
            for at, value in enumerate(values)
        )

    lines = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return (
        f'<div class="wide"><table><thead><tr>{cells("th", names)}</tr></thead>'
        f"<tbody>{lines}</tbody></table></div>"
    )


def _more(number: int, shown: int) -> str:
    return f'<p class="soft">and {number - shown:,} more</p>' if number > shown else ""


def _largest(by_name: dict[str, int]) -> list[tuple[str, int]]:
    return sorted(by_name.items(), key=lambda one: -one[1])


def _number(value: int | None) -> str:
    return ABSENT if value is None else f"{value:,}"


def _seconds(value: float | None) -> str:
    return ABSENT if value is None else f"{value:,.1f}"


def _dollars(value: float | None) -> str:
    return "not known" if value is None else dollars(value)


def _share(value: float | None) -> str:
    return ABSENT if value is None else percent(value)
