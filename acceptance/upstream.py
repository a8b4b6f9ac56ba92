"""`make accept-upstream`: System 2, well driven, measured. Writes results/upstream.json.

python -m acceptance.upstream [--only PART]...

The exit status is 0 where every line holds and everything was measured.
"""

import argparse
import importlib.util
import os
from collections.abc import Callable

from acceptance import (
    upstream_budget,
    upstream_chaos,
    upstream_leaks,
    upstream_placement,
    upstream_price,
)
from acceptance.lines import Lines

PARTS = ("chaos", "leaks", "price", "placement", "budget", "engine")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m acceptance.upstream")
    parser.add_argument("--only", action="append", choices=PARTS, help="measure this part only")
    wanted = parser.parse_args().only or PARTS
    lines = Lines("upstream", os.cpu_count() or 1)
    parts: dict[str, tuple[str, str, Callable[[], None]]] = {
        "chaos": ("1", "Scripted failures", lambda: upstream_chaos.measure(lines)),
        "leaks": (
            "1.92",
            "10,000 random requests with random faults",
            lambda: upstream_leaks.measure(lines),
        ),
        "price": ("2", "Anthropic's example", lambda: upstream_price.measure(lines)),
        "placement": (
            "3",
            "One of two turns slow; batch yields; what must not leave",
            lambda: upstream_placement.measure(lines),
        ),
        "budget": ("4", "Budgets, and clients that leave", lambda: upstream_budget.measure(lines)),
        "engine": ("5", "The embedded engine", lambda: _engine(lines)),
    }
    for name, (identity, title, measured) in parts.items():
        if name not in wanted:
            lines.skip(name, asked=True)
        elif name == "engine" and importlib.util.find_spec("xllamacpp") is None:
            lines.skip("engine (the extra [local] is not installed)")
        else:
            lines.part(identity, title, measured)
    return lines.finish()


def _engine(lines: Lines) -> None:
    from acceptance import upstream_engine

    upstream_engine.measure(lines)


if __name__ == "__main__":
    raise SystemExit(main())
