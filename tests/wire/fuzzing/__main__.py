"""`python -m tests.wire.fuzzing --seconds 600 --seed 1`: prints what it ran, and exits with 1 where
it found something. Ctrl-C ends it early."""

import argparse
import sys
import time
from pathlib import Path

from tests.wire.fuzzing.growing import growths, too_fast
from tests.wire.fuzzing.running import Fuzzer

_EVERY_S = 10.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="fuzzing")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--keep", type=Path, default=Path("fuzz-failures"))
    parser.add_argument("--no-growth", action="store_true", help="only the mutations")
    options = parser.parse_args()
    fuzzer, began_s = Fuzzer(options.seed), time.monotonic()
    print(f"seed {options.seed}, {options.seconds:g} s", flush=True)
    grew: list[str] = []
    try:
        if not options.no_growth:
            grew = _grow()
        _run(fuzzer, began_s + options.seconds)
    except KeyboardInterrupt:
        print("stopped", flush=True)
    print(fuzzer.summary(), flush=True)
    for failure in fuzzer.failures:
        paths = ", ".join(str(path) for path in failure.keep(options.keep))
        print(f"\n{failure.what}\nshrunk: {failure.shrunk!r}\nkept: {paths}", flush=True)
    return 1 if fuzzer.failures or grew else 0


def _grow() -> list[str]:
    """Prints and gives what grew too fast."""
    tried, found = 0, list[str]()
    for name, growth in growths():
        tried += 1
        if too_fast(growth):
            found.append(name)
            print(f"GROWS TOO FAST: {name}: twice the input, {growth:.1f} times the work")
    print(f"growth: {tried} tried, {len(found)} too fast", flush=True)
    return found


def _run(fuzzer: Fuzzer, until_s: float) -> None:
    told_s = time.monotonic()
    while (now_s := time.monotonic()) < until_s:
        for _ in range(50):
            fuzzer.one()
        if now_s - told_s >= _EVERY_S:
            told_s = now_s
            print(f"{until_s - now_s:5.0f} s left: {fuzzer.summary()}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
