"""Required beside measured, line by line, and the file a run leaves in results/."""

import platform
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

RESULTS = Path(__file__).resolve().parents[1] / "results"


class Line(msgspec.Struct, frozen=True):
    """One promise: what it says, what is required, what was measured, whether that is enough."""

    id: str
    what: str
    required: str
    measured: str
    passed: bool


class Run(msgspec.Struct, frozen=True):
    """One run of an acceptance program. `skipped` names parts that were left out."""

    name: str
    date: str
    seconds: float
    python: str
    cores: int
    lines: list[Line]
    skipped: list[str]

    @property
    def passed(self) -> bool:
        return all(line.passed for line in self.lines)


class Lines:
    """Collects lines and prints each as it is measured."""

    def __init__(self, name: str, cores: int) -> None:
        self._name = name
        self._cores = cores
        self._start = time.monotonic()
        self._lines: list[Line] = []
        self._skipped: list[str] = []
        self._missing: list[str] = []
        self._within = ""

    @contextmanager
    def within(self, identity: str) -> Generator[None]:
        """What is added meanwhile stands under a line of the whole: 1.2 within 3 is 3.1.2."""
        before, self._within = self._within, f"{self._within}{identity}."
        try:
            yield
        finally:
            self._within = before

    def say(self, text: str) -> None:
        print(text, flush=True)

    def add(self, identity: str, what: str, required: str, measured: str, passed: bool) -> None:
        identity = f"{self._within}{identity}"
        line = Line(identity, what, required, measured, passed)
        self._lines.append(line)
        mark = "ok   " if passed else "SHORT"
        self.say(f"{mark} {identity:<7} {what}: required {required}; measured {measured}")

    def at_least(self, identity: str, what: str, measured: float, bound: float) -> None:
        self.add(identity, what, f">= {bound:g}", f"{measured:.4g}", measured >= bound)

    def at_most(
        self, identity: str, what: str, measured: float, bound: float, unit: str = ""
    ) -> None:
        self.add(identity, what, f"<= {bound:g}{unit}", f"{measured:.4g}{unit}", measured <= bound)

    def skip(self, part: str, *, asked: bool = False) -> None:
        """Leave a part out. Unless an option asked for that, the run is not passed."""
        self._skipped.append(part)
        self._missing += [] if asked else [part]
        self.say(f"left out: {part}")

    def part(self, identity: str, title: str, measure: Callable[[], None]) -> None:
        """Run one part. An error in it is a line that is short; the other parts still run."""
        self.say(f"\n{title}")
        try:
            measure()
        except Exception as error:
            self.add(identity, title, "to be measured", f"{type(error).__name__}: {error}", False)

    def finish(self, *, write: bool = True) -> int:
        """Print the sum and, where asked, write results/NAME.json; the exit status: 0 where every
        line holds and nothing is missing.

        A run with parts left out is never written over a whole one.
        """
        run = Run(
            name=self._name,
            date=datetime.now(UTC).date().isoformat(),
            seconds=round(time.monotonic() - self._start, 1),
            python=platform.python_version(),
            cores=self._cores,
            lines=self._lines,
            skipped=self._skipped,
        )
        written = self._write(run) if write else "not written"
        short = [line.id for line in self._lines if not line.passed]
        self.say(
            f"\n{len(self._lines) - len(short)} of {len(self._lines)} lines hold"
            + (f"; short: {', '.join(short)}" if short else "")
            + (f"; not measured: {', '.join(self._missing)}" if self._missing else "")
            + f"; {run.seconds:.0f} s; {written}"
        )
        return 1 if short or self._missing or not self._lines else 0

    def _write(self, run: Run) -> str:
        """Write the run, and say so or why not."""
        path = RESULTS / f"{self._name}.json"
        if run.skipped and _is_whole(path):
            return f"not written: results/{path.name} is of a run that left nothing out"
        RESULTS.mkdir(exist_ok=True)
        path.write_bytes(msgspec.json.format(msgspec.json.encode(run), indent=2) + b"\n")
        return f"written to results/{path.name}"


def _is_whole(path: Path) -> bool:
    try:
        return not msgspec.json.decode(path.read_bytes(), type=Run).skipped
    except (FileNotFoundError, msgspec.DecodeError):
        return False
