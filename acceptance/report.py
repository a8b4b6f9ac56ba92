"""docs/results.md from results/*.json; `--check` only says whether it is up to date."""

import json
import sys
from pathlib import Path
from typing import Any, cast

import msgspec

from acceptance.lines import RESULTS, Run

TARGET = RESULTS.parent / "docs" / "results.md"
_HEAD = """# Results

Written by `make results` from the files in `results/`, which the programs in `acceptance/` and the
benchmarks leave. Do not edit.
"""


def render(folder: Path = RESULTS) -> str:
    """The whole page; runs of acceptance programs as required beside measured, other files as
    their figures."""
    sections = [_HEAD]
    for path in sorted(folder.glob("*.json")):
        data = path.read_bytes()
        try:
            sections.append(_run(msgspec.json.decode(data, type=Run)))
        except msgspec.ValidationError:
            sections.append(_figures(path.stem, cast(dict[str, Any], json.loads(data))))
    return "\n".join(sections)


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


def main() -> int:
    text = render()
    if "--check" in sys.argv[1:]:
        current = TARGET.read_text("utf-8") if TARGET.exists() else ""
        if current != text:
            print("docs/results.md is not what results/*.json say: run make results")
            return 1
        return 0
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(text, "utf-8")
    print(f"written: docs/{TARGET.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
