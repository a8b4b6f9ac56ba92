"""`make accept-reflex`: a reflex worth trusting, measured. Writes results/reflex.json.

python -m acceptance.reflex [--only PART]... [--set SET] [--processes N]

The statistical half, `make validity`, is a program of its own (results/validity.json). The exit
status is 0 where every line holds and everything was measured.
"""

import argparse
import os
from collections.abc import Callable

from acceptance import reflex_life, reflex_quality, reflex_speed
from acceptance.lines import Lines
from acceptance.quality import SESSIONS

PARTS = ("quality", "life", "speed")
_NEED_DATA = ("quality", "speed")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m acceptance.reflex")
    parser.add_argument("--only", action="append", choices=PARTS, help="measure this part only")
    parser.add_argument("--set", help="of the quality: this set only, and write nothing")
    parser.add_argument("--processes", type=int, default=2, help="learn so many at a time")
    arguments = parser.parse_args()
    wanted = arguments.only or (("quality",) if arguments.set else PARTS)
    lines = Lines("reflex", os.cpu_count() or 1)
    parts: dict[str, tuple[str, str, Callable[[], None]]] = {
        "speed": ("4", "Speed and size", lambda: reflex_speed.measure(lines)),
        "quality": (
            "1",
            f"Public recordings, splits {reflex_quality.SEEDS}",
            lambda: reflex_quality.measure_quality(lines, arguments.processes, arguments.set),
        ),
        "life": ("3", "Life in production", lambda: _life(lines)),
    }
    for name, (identity, title, measured) in parts.items():
        if name not in wanted:
            lines.skip(name, asked=True)
        elif name in _NEED_DATA and not SESSIONS.is_dir():
            lines.skip(f"{name} (the public recordings are not beside this checkout)")
        else:
            lines.part(identity, title, measured)
    return lines.finish(write=arguments.set is None)


def _life(lines: Lines) -> None:
    with lines.within("3"):
        reflex_life.measure(lines)


if __name__ == "__main__":
    raise SystemExit(main())
