"""How a report of waste is told on a terminal: the short answer first, then tables."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape as escape_markup

from reflexarc.bench.readable import readable
from reflexarc.bench.waste import Waste
from reflexarc.bench.waste_figures import Figures
from reflexarc.bench.waste_rows import Row
from reflexarc.bench.waste_verdicts import capital, dollars, percent
from reflexarc.cli.tables import table
from reflexarc.traces.requests import FileReport

ABSENT = "not in log"
_ROWS = 5
_FILES = 8
_NAME_CHARS = 40
_FILE_CHARS = 30
_WHY_CHARS = 120


def show_waste(console: Console, report: Waste) -> None:
    """Verdicts, then what they come from; long lists end with how many more there are."""
    console.print("[bold]What this log says[/bold]")
    for one in report.verdicts:
        console.print(f"- {escape(one)}", soft_wrap=False)
    if not report.totals.requests:
        _files(console, report)
        return
    console.print()
    _savings(console, report)
    _reuse(console, report)
    _breaks(console, report)
    _money(console, report)
    _time(console, report)
    _rows(console, "Models", report.models, _ROWS)
    _rows(console, "Sessions, the costliest first", report.sessions, _ROWS)
    _files(console, report)


def _savings(console: Console, report: Waste) -> None:
    console.print(
        table(
            "What could be saved",
            ("way", "dollars", "seconds", "tokens", "how known"),
            [
                (
                    capital(one.way),
                    _dollars(one.usd),
                    _seconds(one.seconds),
                    _number(one.tokens),
                    "" if one.kind == "absent" else one.kind,
                )
                for one in report.savings
            ],
        )
    )
    assumed = [
        f"{one.way}: {', '.join(one.assumptions)}"
        for one in report.savings
        if one.assumptions and one.way != "System 1"
    ]
    if assumed:
        console.print(escape(f"Assumed: {'; '.join(assumed)}."), style="dim")


def _reuse(console: Console, report: Waste) -> None:
    earlier = {one.context: one for one in report.redundancy_any_earlier_by_context}
    rows = [
        (
            band.context,
            f"{band.n:,}",
            percent(band.median),
            f"{percent(band.p10)} to {percent(band.p90)}",
            percent(earlier[band.context].median) if band.context in earlier else "",
        )
        for band in report.redundancy_by_context
    ]
    if not rows:
        return
    console.print(
        table(
            "Share of each prompt that was sent before, by its length in tokens",
            ("prompt", "turns", "previous turn, median", "p10 to p90", "any earlier, median"),
            rows,
        )
    )
    covers = report.texts.covers
    if covers is not None:
        console.print(
            f"Of prompts that are not whole in this log, about {percent(covers)} of the tokens "
            "are; shares are of those.",
            style="dim",
        )


def _breaks(console: Console, report: Waste) -> None:
    if not report.breaks:
        return
    console.print("[bold]Prefix breaks, the costliest first[/bold]")
    for number, one in enumerate(report.breaks[:_ROWS], 1):
        money = "" if one.usd is None else f", {dollars(one.usd)}"
        seconds = "" if one.seconds is None else f", {_seconds(one.seconds)} s"
        name = escape(_short(one.session, _NAME_CHARS))
        console.print(
            f"  {number}. {name}: {one.cause}, {one.lost_tokens:,} tokens{money}{seconds} "
            f"({one.kind})\n     {escape(_short(one.why, _WHY_CHARS))}"
        )
    _more(console, report.break_totals.count, _ROWS)
    console.print()


def _money(console: Console, report: Waste) -> None:
    money = report.money
    parts = [
        f"{name} {dollars(usd)}"
        for name, usd in (
            ("prompts read anew", money.read_anew_usd),
            ("from caches", money.from_cache_usd),
            ("written to caches", money.to_cache_usd),
            ("answers", money.output_usd),
        )
        if usd is not None
    ]
    if parts:
        of = "" if money.requests == report.totals.requests else f", of {money.requests:,} requests"
        console.print(f"Where money goes, at published prices{of}: {'; '.join(parts)}.")


def _time(console: Console, report: Waste) -> None:
    time = report.time
    if time.model_s is None and time.tools_s is None and time.waiting_s is None:
        return
    said: list[str] = []
    for name, key, seconds in (
        ("the model", "model_s", time.model_s),
        ("tools", "tools_s", time.tools_s),
        ("waiting", "waiting_s", time.waiting_s),
    ):
        if seconds is None:
            said.append(f"{name} {ABSENT}")
            continue
        lacking = time.unknown.get(key, 0)
        part = f", {lacking:,} steps not known" if lacking else ""
        said.append(f"{name} {_seconds(seconds)} s ({time.kinds[key]}{part})")
    console.print(f"Where time goes: {'; '.join(said)}.")
    slowest = [one for one in report.steps if one.model_s is not None or one.tools_s is not None]
    if slowest:
        console.print(
            table(
                "Steps, the costliest first",
                ("session", "model", "prompt", "output", "dollars", "model s", "tools s", "wait s"),
                [
                    (
                        escape(_short(one.session, 12)),
                        escape(_short(one.model, 16)),
                        _number(one.prompt),
                        _number(one.output),
                        _dollars(one.cost_usd),
                        _seconds(one.model_s),
                        _seconds(one.tools_s),
                        _seconds(one.waiting_s),
                    )
                    for one in report.steps[:_ROWS]
                ],
            )
        )


_NAMES = ("", "requests", "prompt", "cached", "output", "dollars", "reused", "earlier")


def _rows(console: Console, title: str, listed: Sequence[Row], most: int) -> None:
    if len(listed) == 1 and title != "Models":
        return
    console.print(table(title, _NAMES, [_row(one.name, one) for one in listed[:most]]))
    _more(console, len(listed), most)


def _row(name: str, one: Row) -> tuple[str, ...]:
    return (
        escape(_short(name, _NAME_CHARS)),
        *_figures(one),
        _share(one.reused_previous),
        _share(one.reused_earlier),
    )


def _figures(one: Figures) -> tuple[str, ...]:
    return (
        f"{one.requests:,}",
        *(
            _number(value) + ("+" if one.unknown.get(name) else "")
            for name, value in (
                ("prompt", one.prompt),
                ("cache_read", one.cache_read),
                ("output", one.output),
            )
        ),
        _dollars(one.cost_usd),
    )


def _files(console: Console, report: Waste) -> None:
    """Each with what was passed over and counted once; the largest first."""
    listed = sorted(report.files, key=lambda one: -(one.prompt or 0))
    if not listed:
        return
    console.print(
        table(
            "Files",
            ("file", "format", "requests", "lines", "what was passed over, counted once, noted"),
            [
                (
                    escape(_short(Path(one.name).name, _FILE_CHARS)),
                    one.format or "unknown",
                    f"{one.requests:,}",
                    f"{one.report.lines:,}",
                    escape(_short("; ".join(_notes(one.report)), _WHY_CHARS)),
                )
                for one in listed[:_FILES]
            ],
        )
    )
    _more(console, len(listed), _FILES)


def _notes(report: FileReport) -> list[str]:
    return [
        *(f"{why}: {number:,}" for why, number in report.skipped.items()),
        *(f"counted once by {rule}: {number:,}" for rule, number in report.duplicates.items()),
        *(["totals are at least"] if report.at_least else []),
        *report.notes,
    ]


def _more(console: Console, number: int, shown: int) -> None:
    if number > shown:
        console.print(f"and {number - shown:,} more (--json, --html)", style="dim")


def escape(text: str) -> str:
    """Text of others: no markup, nothing that a terminal obeys."""
    return escape_markup(readable(text))


def _short(text: str, chars: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= chars else f"{line[: chars - 1]}…"


def _number(value: int | None) -> str:
    return ABSENT if value is None else f"{value:,}"


def _seconds(value: float | None) -> str:
    return ABSENT if value is None else f"{value:,.1f}"


def _dollars(value: float | None) -> str:
    return "not known" if value is None else dollars(value)


def _share(value: float | None) -> str:
    return "" if value is None else percent(value)
