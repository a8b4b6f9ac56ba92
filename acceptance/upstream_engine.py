"""The embedded engine's levers, each measured on the real thing.

python -m acceptance.upstream_engine [--repetitions N]

A prefix that is found again (in a slot, or on disk after a restart), q8_0 for the cache, drafts by
n-gram, sessions at once. About ten minutes of one core, niced.

CPU is user and system time of all threads of the engine's process, by its CPU clock. Only ratios
measured in one run are judged. Memory is what the process has resident, its model mapped; nearly
all of the caches is taken at the start. What is told of a row is the median over its repetitions.
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from acceptance.lines import Lines
from acceptance.tables import Table, write_table
from acceptance.upstream_engine_asking import Messages, Spent, ask, at_once, counted, orders
from reflexarc.upstream.embedded import Embedded, EngineOptions
from reflexarc.upstream.embedded.saved import DIRECTORY, Manifest

REPETITIONS = 3
BOUND = 5.0
FIRST_TURN_TOKENS, SHARED = 4100, 0.95
PARALLEL_READ_TOKENS = 500
WRITTEN = 128
TABLE = "engine"
_SYSTEM = {"role": "system", "content": "You are the assistant of a shop. Be brief."}


class Row(NamedTuple):
    """One setting: `at_once` sessions, each of about `tokens`."""

    name: str
    options: EngineOptions
    at_once: int
    tokens: int


ONE = EngineOptions(threads=1)
FOUR = EngineOptions(threads=1, slots=4, context_tokens=2048)
ROWS = (
    Row("f16 (as it comes)", ONE, 1, FIRST_TURN_TOKENS),
    Row("q8_0", EngineOptions(threads=1, kv_type="q8_0"), 1, FIRST_TURN_TOKENS),
    Row("f16, n-gram drafts", EngineOptions(threads=1, ngram=True), 1, FIRST_TURN_TOKENS),
    Row("4 slots of 2,048 tokens", FOUR, 1, PARALLEL_READ_TOKENS),
    Row("4 slots of 2,048 tokens", FOUR, 2, PARALLEL_READ_TOKENS),
    Row("4 slots of 2,048 tokens", FOUR, 4, PARALLEL_READ_TOKENS),
)


class Figures(NamedTuple):
    """Of one row, each over its repetitions. CPU-seconds for 1,000 tokens read, for 100 written;
    tokens a second of all sessions together; shares of drafts that were right, none where nothing
    was drafted."""

    read_cpu_s: list[float]
    read_per_s: list[float]
    prose_cpu_s: list[float]
    prose_per_s: list[float]
    copy_cpu_s: list[float]
    copy_per_s: list[float]
    accepted: list[float]
    drafted: bool
    memory_mib: float
    state_bytes_per_token: float


def measure(lines: Lines, repetitions: int = REPETITIONS) -> None:
    """Lines 5.1 to 5.3, and results/engine.json."""
    _prefixes(lines, repetitions)
    rows: list[list[str]] = []
    for row in ROWS:
        figures = _figures(row, repetitions)
        cells = _cells(row, figures)
        lines.say("      " + ", ".join(map(" ".join, zip(cells, COLUMNS, strict=True))))
        rows.append(cells)
    missing = [cell for cells in rows for cell in cells if not cell or "nan" in cell]
    whole = [cells for cells in rows if len(cells) == len(COLUMNS)]
    lines.add(
        "5.3",
        "the engine's levers in one table: results/engine.json",
        f"{len(ROWS)} settings, {len(COLUMNS)} columns each, none missing",
        f"{len(whole)} settings, {len(COLUMNS)} columns each, {len(missing)} missing",
        len(whole) == len(ROWS) and not missing,
    )
    if not missing:
        write_table(TABLE, Table("engine", _about(repetitions), list(COLUMNS), rows))


def _prefixes(lines: Lines, repetitions: int) -> None:
    """The same second turn: read whole, with its first turn in the slot, and with that on disk."""
    found: dict[str, list[float]] = {"cold": [], "warm": [], "restored": []}
    tokens: set[int] = set()
    shares: list[float] = []
    for number in range(repetitions):
        with tempfile.TemporaryDirectory(prefix="reflexarc-engine-") as name:
            with Embedded(options=ONE, state_directory=Path(name)) as engine:
                first, second = _turns(engine, number)
                cold = ask(engine, second, "s", 1)
                # All of it is in the cache: read again up to its end, the slot holds no more.
                ask(engine, first, "s", 1)
                warm = ask(engine, second, "s", 1)
                ask(engine, first, "s", 1)
            with Embedded(options=ONE, state_directory=Path(name)) as engine:
                restored = ask(engine, second, "s", 1)
        tokens.add(cold.prompt)
        shares += [warm.cached / warm.prompt, restored.cached / restored.prompt]
        for key, took in (("cold", cold), ("warm", warm), ("restored", restored)):
            found[key].append(took.first_cpu_s)
        lines.say(
            f"      {number + 1} of {repetitions}: {cold.prompt} tokens, {cold.cached} cached: "
            f"{cold.first_cpu_s:.1f} CPU-s; {warm.cached} cached: {warm.first_cpu_s:.2f}; after a "
            f"restart {restored.cached} cached: {restored.first_cpu_s:.2f}"
        )
    for identity, key, what in (
        ("5.1", "warm", "second turn of a session in its slot"),
        ("5.2", "restored", "the same after a restart, its state restored"),
    ):
        ratio = statistics.median(
            cold / other for cold, other in zip(found["cold"], found[key], strict=True)
        )
        cpu_s = {name: statistics.median(values) for name, values in found.items()}
        lines.add(
            identity,
            f"{what}: CPU-seconds to the first token, cold beside it ({min(tokens):,} tokens, "
            f"{100 * min(shares):.0f}% shared)",
            f">= {BOUND:g} times lower",
            f"{ratio:.1f} times: {cpu_s['cold']:.1f} to {cpu_s[key]:.2f} (least of "
            f"{repetitions}: {_least(found['cold'], found[key]):.1f})",
            ratio >= BOUND and min(shares) >= SHARED - 0.01,
        )


def _least(cold: Sequence[float], other: Sequence[float]) -> float:
    return min(a / b for a, b in zip(cold, other, strict=True))


def _turns(engine: Embedded, seed: int) -> tuple[Messages, Messages]:
    """A first turn of so many tokens, and the second, whose prompt it is 95% of."""
    first = _long(engine, seed, FIRST_TURN_TOKENS)
    begun = [*first, {"role": "assistant", "content": "Noted. What do you want to know of them?"}]
    wanted = round(counted(engine, first) / SHARED)
    second = _grown(
        engine, wanted, lambda n: [*begun, {"role": "user", "content": orders(seed + 1000, n)}]
    )
    return first, second


def _long(engine: Embedded, seed: int, tokens: int) -> Messages:
    return _grown(engine, tokens, lambda n: [_SYSTEM, {"role": "user", "content": orders(seed, n)}])


def _grown(engine: Embedded, tokens: int, made: Callable[[int], Messages]) -> Messages:
    """The first of growing ones that has so many tokens."""
    number = 1
    while counted(engine, made(number)) < tokens:
        number += 1
    return made(number)


def _prose(number: int) -> Messages:
    asked = f"Write a long story about {('a dog', 'a ship', 'a king', 'a tree')[number % 4]}."
    return [_SYSTEM, {"role": "user", "content": asked}]


def _copying(number: int) -> Messages:
    return [
        {"role": "system", "content": "You repeat what you are told, word for word."},
        {"role": "user", "content": f"Repeat this list exactly:\n{orders(77 + number, 6)}"},
    ]


def _figures(row: Row, repetitions: int) -> Figures:
    with tempfile.TemporaryDirectory(prefix="reflexarc-engine-") as name:
        with Embedded(options=row.options, state_directory=Path(name)) as engine:
            prose = _writing(engine, row, _prose, repetitions)
            copies = _writing(engine, row, _copying, repetitions)
            read: list[Spent] = []
            for number in range(repetitions):
                seeds = [100 * (number + 1) + i for i in range(row.at_once)]
                read.append(at_once(engine, [_long(engine, seed, row.tokens) for seed in seeds], 1))
            memory_mib = _resident_mib(engine.pid)
        state = _state_bytes_per_token(Path(name) / DIRECTORY)
    answers = [took for spent in (*prose, *copies) for took in spent.answers]
    drafted = sum(took.accepted + took.rejected for took in answers)
    accepted = sum(took.accepted for took in answers)
    return Figures(
        [1000 * spent.cpu_s / spent.read for spent in read],
        [spent.read / spent.seconds for spent in read],
        [100 * spent.cpu_s / spent.written for spent in prose],
        [spent.written / spent.seconds for spent in prose],
        [100 * spent.cpu_s / spent.written for spent in copies],
        [spent.written / spent.seconds for spent in copies],
        [accepted / drafted] if drafted else [],
        bool(drafted),
        memory_mib,
        state,
    )


def _writing(
    engine: Embedded, row: Row, made: Callable[[int], Messages], repetitions: int
) -> list[Spent]:
    """Prompts are read before: what is measured is writing."""
    asked = [made(number) for number in range(row.at_once)]
    at_once(engine, asked, 1)
    return [at_once(engine, asked, WRITTEN) for _ in range(repetitions)]


def _resident_mib(pid: int | None) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (kib,) = (line.split()[1] for line in lines if line.startswith("VmRSS:"))
    return int(kib) / 1024


def _state_bytes_per_token(directory: Path) -> float:
    """Of the largest state that was saved."""
    kept = [
        msgspec.json.decode(path.read_bytes(), type=Manifest) for path in directory.glob("*.json")
    ]
    largest = max(kept, key=lambda manifest: manifest.tokens)
    return largest.size_bytes / largest.tokens


COLUMNS = (
    "setting", "sessions at once", "tokens read", "reading: CPU-s per 1,000", "tokens/s",
    "writing prose: CPU-s per 100", "tokens/s", "writing copies: CPU-s per 100", "tokens/s",
    "drafts that were right", "memory, MiB", "state, bytes a token",
)  # fmt: skip


def _cells(row: Row, figures: Figures) -> list[str]:
    middle: Any = statistics.median
    return [
        row.name,
        str(row.at_once),
        f"{row.tokens:,}" if row.at_once == 1 else f"{row.at_once} x {row.tokens:,}",
        f"{middle(figures.read_cpu_s):.2f}",
        f"{middle(figures.read_per_s):.0f}",
        f"{middle(figures.prose_cpu_s):.2f}",
        f"{middle(figures.prose_per_s):.0f}",
        f"{middle(figures.copy_cpu_s):.2f}",
        f"{middle(figures.copy_per_s):.0f}",
        _drafts(row, figures),
        f"{figures.memory_mib:.0f}",
        f"{figures.state_bytes_per_token:,.0f}",
    ]


def _drafts(row: Row, figures: Figures) -> str:
    """Empty where drafts were to be measured and none came."""
    if figures.drafted:
        return f"{100 * statistics.median(figures.accepted):.0f}%"
    return "" if row.options.ngram else "none drafted"


def _about(repetitions: int) -> str:
    return (
        "The embedded engine (SmolLM2-135M, llama.cpp) on one thread, by `make accept-upstream`. "
        f"Medians of {repetitions} repetitions; tokens a second are those of all sessions "
        f"together. Prose: up to {WRITTEN} tokens of a story; copies: of a list that stands in the "
        "prompt. Sessions at once are decoded in one batch. What is read again where its prefix is "
        "found stands in the lines of `upstream`."
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    given = parser.parse_args()
    lines = Lines("engine", 1)
    measure(lines, given.repetitions)
    return lines.finish(write=False)


if __name__ == "__main__":
    sys.exit(main())
