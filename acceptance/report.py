"""docs/results.md and the README's numbers from results/*.json; `--check` only compares."""

import contextlib
import json
import re
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any, cast

import msgspec

from acceptance.lines import RESULTS, Run
from acceptance.tables import Table

TARGET = RESULTS.parent / "docs" / "results.md"
README = RESULTS.parent / "README.md"
_NUMBERS = re.compile(r"(?<=<!-- numbers -->\n).*?(?=<!-- /numbers -->)", re.DOTALL)
_HEADLINES = {
    "context": (
        "1.1.1", "1.1.2", "1.1.6", "1.1.8", "1.2.2", "2.11", "2.21", "2.31", "3.2", "3.8", "3.9",
        "4.1.6", "4.1.15", "4.2.15", "5.1",
    ),
    "spine": ("size", "5.1", "5.2", "6.1"),
    "reflex": (
        "1.1", "1.2", "1.3", "1.4", "1.5", "1.8", "1.10", "1.11", "1.13c", "1.16c", "1.18b",
        "3.1.3", "3.7.1", "4.1a", "4.1b", "4.3",
    ),
    "upstream": (
        "1.91", "1.92", "1.93", "1.95", "1.97", "2.1", "3.1", "3.2", "3.4", "3.6", "4.1", "4.4",
        "4.11", "4.12", "4.13", "5.1", "5.2",
    ),
    "wire": ("1.2", "2.1", "2.2", "2.3", "2.6", "3.1 chat", "3.1 messages", "3.2"),
}  # fmt: skip
_HEAD = """# Results

Written by `make results` from the files in `results/`, which the programs in `acceptance/` and the
benchmarks leave. Do not edit.
"""


def render(folder: Path = RESULTS) -> str:
    """The whole page; runs of acceptance programs as required beside measured, tables as such,
    other files as their figures."""
    paths = sorted(folder.glob("*.json"))
    return "\n".join([_HEAD, *(_section(path.stem, path.read_bytes()) for path in paths)])


def _section(name: str, data: bytes) -> str:
    with contextlib.suppress(msgspec.ValidationError):
        return _run(msgspec.json.decode(data, type=Run))
    with contextlib.suppress(msgspec.ValidationError):
        return msgspec.json.decode(data, type=Table).as_markdown()
    return _figures(name, cast(dict[str, Any], json.loads(data)))


def _run(run: Run) -> str:
    short = [line.id for line in run.lines if not line.passed]
    verdict = f"short: {', '.join(short)}" if short else "every line holds"
    rows = [
        f"| {line.id} | {line.what} | {line.required} | {line.measured} | "
        f"{'yes' if line.passed else '**no**'} |"
        for line in run.lines
    ]
    skipped = f"\nLeft out of this run: {'; '.join(run.skipped)}.\n" if run.skipped else ""
    return (
        f"## {run.name}\n\n"
        f"{run.date}, Python {run.python}, {run.cores} cores, {run.seconds:.0f} s; {verdict}.\n\n"
        "| line | what | required | measured | holds |\n| --- | --- | --- | --- | --- |\n"
        + "\n".join(rows)
        + f"\n{skipped}"
    )


def _figures(name: str, figures: dict[str, Any]) -> str:
    rows = [f"| {key} | {value} |" for key, value in _flat(figures, "")]
    return f"## {name}\n\n| figure | value |\n| --- | --- |\n" + "\n".join(rows) + "\n"


def _flat(value: Any, prefix: str) -> list[tuple[str, str]]:
    if isinstance(value, dict):
        members = cast(dict[str, Any], value)
        return [
            pair
            for key, inner in members.items()
            for pair in _flat(inner, f"{prefix}.{key}" if prefix else key)
        ]
    if isinstance(value, list):
        entries = cast(list[Any], value)
        return [
            pair for at, inner in enumerate(entries) for pair in _flat(inner, f"{prefix}[{at}]")
        ]
    return [(prefix, f"{value:.4g}" if isinstance(value, float) else str(value))]


def numbers(folder: Path = RESULTS) -> str:
    """The README's tables: the headlines of the acceptance runs that have any, short ones too."""
    tables = [
        _headlines(msgspec.json.decode(path.read_bytes(), type=Run), lines)
        for name, lines in _HEADLINES.items()
        if (path := folder / f"{name}.json").exists()
    ]
    return "\n".join(tables) or "Not measured yet: `make accept-spine`, then `make results`.\n"


def _headlines(run: Run, headlines: Collection[str]) -> str:
    rows = [
        f"| {line.what} | {line.required} | {line.measured}{'' if line.passed else ' (short)'} |"
        for line in run.lines
        if line.id in headlines
    ]
    return (
        f"`make accept-{run.name}`, measured {run.date} on {run.cores} cores, Python {run.python}."
        + (f" Left out of this run: {'; '.join(run.skipped)}." if run.skipped else "")
        + "\n\n"
        "| what | required | measured |\n| --- | --- | --- |\n" + "\n".join(rows) + "\n"
    )


def main() -> int:
    readme = README.read_text("utf-8")
    table = numbers()
    pages = {TARGET: render(), README: _NUMBERS.sub(lambda _: table, readme)}
    stale = [
        page for page, text in pages.items() if not page.exists() or page.read_text("utf-8") != text
    ]
    if "--check" in sys.argv[1:]:
        for page in stale:
            print(f"{page.name} is not what results/*.json say: run make results")
        return 1 if stale else 0
    for page in stale:
        page.write_text(pages[page], "utf-8")
        print(f"written: {page.relative_to(RESULTS.parent)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
