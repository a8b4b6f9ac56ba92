"""Runs of the fuzzer: which cases, what became of them, and the failures made small."""

import hashlib
import random
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from reflexarc.wire.dialects import NAMES
from tests.wire.fuzzing.checking import check
from tests.wire.fuzzing.mutating import Mutator
from tests.wire.matrix.cells import Input, inputs

_SHRINKING_STEPS = 2_000


class Failure(NamedTuple):
    sort: str
    origin: str
    target: str
    seed: int
    data: bytes
    shrunk: bytes
    what: str

    @property
    def name(self) -> str:
        digest = hashlib.blake2b(self.shrunk, digest_size=4).hexdigest()
        return f"{self.sort}-{self.origin}-to-{self.target}-{digest}"

    def keep(self, where: Path) -> list[Path]:
        """Writes the bytes, the shrunk ones, and what went wrong."""
        where.mkdir(parents=True, exist_ok=True)
        kept = [where / f"{self.name}{ending}" for ending in (".bin", ".shrunk", ".txt")]
        for path, data in zip(kept, (self.data, self.shrunk, self.what.encode()), strict=True):
            path.write_bytes(data)
        return kept


class Fuzzer:
    """Case by case from a seed: the same seed gives the same cases."""

    def __init__(self, seed: int) -> None:
        self.cases = 0
        self.outcomes: Counter[str] = Counter()
        self.failures: list[Failure] = []
        self._seed = seed
        self._inputs = [(given, given.path.read_bytes()) for given in inputs()]
        self._pool: dict[tuple[str, str], list[bytes]] = {}
        for given, data in self._inputs:
            self._pool.setdefault((given.sort, given.origin), []).append(data)

    def one(self) -> None:
        """The next case. A failure of a kind that is known already is passed over."""
        seed = self._seed * 1_000_003 + self.cases
        self.cases += 1
        draw = random.Random(seed)
        given, data = draw.choice(self._inputs)
        # Of its own dialect the gateway passes an answer on as it is, what nobody knows in it too.
        own = given.sort == "requests"
        target = draw.choice([name for name in NAMES if own or name != given.origin])
        mutator = Mutator(draw, self._pool[given.sort, given.origin])
        changed = mutator.stream(data) if given.sort == "streams" else mutator.text(data)
        pieces = mutator.pieces(changed)
        try:
            outcome = check(given.sort, given.origin, target, changed, pieces)
        except Exception as error:  # what it is, is what the fuzzer is for
            self._failed(given, target, seed, changed, error)
            outcome = "FAILED"
        self.outcomes[f"{given.sort} {outcome}"] += 1

    def _failed(self, given: Input, target: str, seed: int, data: bytes, error: Exception) -> None:
        kind = _kind(error)
        if any(_kind_of(known) == kind for known in self.failures):
            return

        def fails(candidate: bytes) -> bool:
            try:
                check(given.sort, given.origin, target, candidate, [candidate])
            except Exception as again:
                return _kind(again) == kind
            return False

        shrunk = _shrunk(data, fails) if fails(data) else data
        what = "".join(traceback.format_exception(error))
        what = f"{kind}\n{given.title} to {target}, seed {seed}\n\n{what}"
        self.failures.append(Failure(given.sort, given.origin, target, seed, data, shrunk, what))

    def summary(self) -> str:
        counted = ", ".join(f"{name} {n}" for name, n in sorted(self.outcomes.items()))
        return f"{self.cases} cases, {len(self.failures)} kinds of failure: {counted}"


def _kind(error: Exception) -> str:
    """Failures of one kind are raised at one place."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}"


def _kind_of(failure: Failure) -> str:
    return failure.what.split("\n", 1)[0]


def _shrunk(data: bytes, fails: Callable[[bytes], bool]) -> bytes:
    """Without whatever can go, in ever smaller pieces."""
    size, steps = max(1, len(data) // 2), 0
    while size and steps < _SHRINKING_STEPS:
        at, less = 0, False
        while at < len(data) and steps < _SHRINKING_STEPS:
            steps += 1
            candidate = data[:at] + data[at + size :]
            if fails(candidate):
                data, less = candidate, True
            else:
                at += size
        if not less or size > len(data):
            size //= 2
    return data
