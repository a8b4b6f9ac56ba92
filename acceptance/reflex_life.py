"""A reflex in production: flips, changes, audits, promotion, rollback.

Writes results/reflex_life.json.

python -m acceptance.reflex_life [--seeds N] [--only lives|gateway]

*Lives* drives the code that watches a reflex (`lifecycle.oversight`) through many simulated lives:
the limit on unaudited wrong acts is about their mean. *Gateway* starts `reflexarc serve` and a
simulated System 2 whose policy can be flipped, and does the same to them a few times.
"""

import argparse
import os
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from acceptance import reflex_life_gateway
from acceptance.lines import Lines
from reflexarc.lifecycle.simulated import Life, World, live
from reflexarc.lifecycle.watched import FALSE_DEMOTIONS

LIMIT = 20.0
SEEDS = 100
_NULL_LIVES = 200

_BASE = World(14_000, flips_at=3_000)
_LATE = msgspec.structs.replace(_BASE, acts=40_000, flips_at=15_000)
FLIPS = {
    "right after promotion": msgspec.structs.replace(_BASE, flips_at=1),
    "after 3,000 acts": _BASE,
    "after 15,000 acts": _LATE,
    "certified at 2%": msgspec.structs.replace(_LATE, level=0.02, error=0.004),
    "certified at 10%, and 4% were wrong before": msgspec.structs.replace(
        _BASE, level=0.1, error=0.04, together=0.3
    ),
    "100 acts are made while an audit is answered": msgspec.structs.replace(_BASE, delay=100),
    "half of the audits are never answered": msgspec.structs.replace(_BASE, unanswered=0.5),
    "one session, all acts in it": msgspec.structs.replace(_BASE, sessions=1, session_acts=1e9),
}
PARTS_OF_A_FLIP = {
    "half of its acts wrong": msgspec.structs.replace(_BASE, wrong_after=0.5),
    "three in ten wrong": msgspec.structs.replace(_BASE, wrong_after=0.3),
    "all tools drift to 30% over 4,000 acts": msgspec.structs.replace(
        _BASE, wrong_after=0.3, spread=True, over=4_000
    ),
}
WITHIN = msgspec.structs.replace(_BASE, wrong_after=0.2)
"""One in five acts of one of five tools: 4.8% of all acts are wrong then, so that a certificate of
5% over all reads is kept."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m acceptance.reflex_life")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="lives per setting")
    parser.add_argument("--only", choices=("lives", "gateway"), help="measure this part only")
    arguments = parser.parse_args()
    lines = Lines("reflex_life", os.cpu_count() or 1)
    measure(lines, arguments.seeds, arguments.only)
    return lines.finish()


def measure(lines: Lines, seeds: int = SEEDS, only: str | None = None) -> None:
    """Adds the lines of a life in production; `only`: lives, or gateway."""
    if only in (None, "lives"):
        lines.part("1", "Lives: silent flips", lambda: _flips(lines, seeds))
        lines.part("2", "Lives: flips in part, and drift", lambda: _in_part(lines, seeds))
        lines.part("3", "Lives in which nothing changes", lambda: _unchanged(lines))
    else:
        lines.skip("lives", asked=True)
    if only in (None, "gateway"):
        with tempfile.TemporaryDirectory(prefix="reflexarc-life-") as folder:
            reflex_life_gateway.measure(lines, Path(folder))
    else:
        lines.skip("gateway", asked=True)


def _flips(lines: Lines, seeds: int) -> None:
    """Every act of one of five tools is wrong from then on."""
    for number, (name, world) in enumerate(FLIPS.items(), 1):
        lives = [live(world, seed) for seed in range(seeds)]
        unaudited = [one.unaudited_wrong for one in lives]
        mean = statistics.fmean(unaudited)
        found = sum(bool(one.demoted) for one in lives)
        lines.add(
            f"1.{number}", f"a tool's policy flips, {name}: unaudited wrong acts, mean",
            f"<= {LIMIT:g}, demoted in every life",
            f"{mean:.1f} (most {max(unaudited)}), demoted in {found} of {seeds}; {_told(lives)}",
            mean <= LIMIT and found == seeds,
        )  # fmt: skip
    fixed = [live(_BASE, seed, share=0.02) for seed in range(seeds)]
    mean = statistics.fmean(one.unaudited_wrong for one in fixed)
    lines.add(
        "1.0", "control: the same with a fixed share of .02", f"> {LIMIT:g}", f"{mean:.1f}",
        mean > LIMIT,
    )  # fmt: skip


def _in_part(lines: Lines, seeds: int) -> None:
    """What is promised of these is only that they are found; how late is what is measured."""
    for number, (name, world) in enumerate(PARTS_OF_A_FLIP.items(), 1):
        lives = [live(world, seed) for seed in range(seeds)]
        unaudited = [one.unaudited_wrong for one in lives]
        found = sum(bool(one.demoted) for one in lives)
        lines.add(
            f"2.{number}", f"{name}: demoted", f"in >= {0.95 * seeds:g} of {seeds} lives",
            f"{found}; unaudited wrong acts {statistics.fmean(unaudited):.1f} "
            f"(most {max(unaudited)}); {_told(lives)}",
            found >= 0.95 * seeds,
        )  # fmt: skip

    lives = [live(WITHIN, seed) for seed in range(seeds)]
    found = sum(bool(one.demoted) for one in lives)
    wrong = statistics.fmean(one.unaudited_wrong / one.lasted for one in lives)
    lines.say(
        f"   one in five acts of one tool wrong, 4.8% of all, for 11,000 acts: demoted in {found} "
        f"of {seeds} lives (nothing is promised: the certificate of 5% over all is kept); of the "
        f"tool's acts {wrong:.0%} were wrong and unaudited"
    )


def _unchanged(lines: Lines) -> None:
    """Errors exactly as many as certified, to the end of the life."""
    number = 0
    for level, correlations in ((0.05, (0.0, 0.3, 0.5)), (0.1, (0.3,))):
        for together in correlations:
            number += 1
            world = World(8_000, error=level, together=together, level=level)
            lives = [live(world, seed) for seed in range(_NULL_LIVES)]
            found = sum(bool(one.demoted) for one in lives) / _NULL_LIVES
            spread = (FALSE_DEMOTIONS * (1 - FALSE_DEMOTIONS) / _NULL_LIVES) ** 0.5
            lines.add(
                f"3.{number}",
                f"as wrong as certified ({level:.0%}), correlation within sessions {together:g}: "
                f"demoted in {_NULL_LIVES} lives",
                f"<= {FALSE_DEMOTIONS:g} (+ {2 * spread:.3f} by chance)",
                f"{found:.3f}; {_told(lives)}",
                found <= FALSE_DEMOTIONS + 2 * spread,
            )


def _told(lives: Sequence[Life]) -> str:
    acts, audited = sum(one.acts for one in lives), sum(one.audited for one in lives)
    mean = statistics.fmean(one.audited_wrong for one in lives)
    return f"{mean:.1f} wrong and audited, {audited / acts:.0%} of all acts audited"


if __name__ == "__main__":
    raise SystemExit(main())
