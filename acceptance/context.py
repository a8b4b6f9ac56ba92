"""`make accept-context`: what an agent wastes, and what is done about it, measured. Writes
results/context.json.

python -m acceptance.context [--only PART]...

The exit status is 0 where every line holds and everything was measured.
"""

import argparse
import importlib
import importlib.util
import os

from acceptance.lines import Lines

PARTS = {
    "logs": ("1", "Logs of any kind: totals, redundancy, breaks", "context_logs"),
    "growing": ("2", "A session of 500 turns that grows to 115,000 tokens", "context_growing"),
    "breaks": ("3", "Prefix breaks: found, named, priced", "context_breaks"),
    "pruning": ("4", "Pruning against never and always", "context_pruning"),
    "placement": ("5", "Sessions go where their prefix is", "context_placement"),
}
"""By name: the number of its lines, its title, its module."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m acceptance.context")
    parser.add_argument("--only", action="append", choices=tuple(PARTS), help="this part only")
    wanted = parser.parse_args().only or tuple(PARTS)
    lines = Lines("context", os.cpu_count() or 1)
    for name, (identity, title, module) in PARTS.items():
        if name not in wanted:
            lines.skip(name, asked=True)
        elif name == "placement" and importlib.util.find_spec("xllamacpp") is None:
            lines.skip("placement (the extra [local] is not installed)")
        else:
            measured = importlib.import_module(f"acceptance.{module}").measure
            lines.part(identity, title, lambda measured=measured: measured(lines))
    return lines.finish()


if __name__ == "__main__":
    raise SystemExit(main())
