"""Which providers take a turn of System 1 among turns with thinking: evidence, kept in a file.

Where a model thinks, a provider may want each of its turns back with the thinking and a signature
over it. System 1 has none and makes none up. So such a model is left to System 2, until a replay
test has shown that this provider accepts such histories; `reflexarc replay-test` runs it.
"""

from pathlib import Path

import msgspec

from reflexarc.store.place import locked, write_private

FILE = "replay.json"


class Passed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One test passed: `checks` names the histories that were accepted."""

    upstream: str
    model: str
    dialect: str
    at_unix_s: float
    checks: tuple[str, ...]


def read_passed(directory: Path) -> tuple[Passed, ...]:
    """Nothing passed where the file is absent or cannot be read: the safe side."""
    try:
        return msgspec.json.decode((directory / FILE).read_bytes(), type=tuple[Passed, ...])
    except (OSError, msgspec.DecodeError):
        return ()


def tested_models(directory: Path) -> dict[str, tuple[str, ...]]:
    """By upstream's base URL, the models that passed."""
    found: dict[str, tuple[str, ...]] = {}
    for one in read_passed(directory):
        found[one.upstream] = (*found.get(one.upstream, ()), one.model)
    return found


def note_passed(directory: Path, passed: Passed) -> None:
    """Adds a test, in place of an earlier one of the same model. Raises `OSError`."""
    with locked(directory, FILE):
        kept = [one for one in read_passed(directory) if not _same(one, passed)]
        write_private(directory / FILE, msgspec.json.encode((*kept, passed)))


def note_failed(directory: Path, upstream: str, model: str) -> None:
    """A model that fails is no longer among those that passed. Raises `OSError`."""
    failed = Passed(upstream, model, "chat", 0.0, ())
    with locked(directory, FILE):
        kept = [one for one in read_passed(directory) if not _same(one, failed)]
        write_private(directory / FILE, msgspec.json.encode(kept))


def _same(one: Passed, other: Passed) -> bool:
    return (one.upstream, one.model, one.dialect) == (other.upstream, other.model, other.dialect)
