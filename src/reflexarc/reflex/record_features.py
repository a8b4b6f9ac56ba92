"""What the records of a candidate say for and against it as an argument, as numbers."""

import numpy as np
from numpy.typing import NDArray

from reflexarc.provenance import Record
from reflexarc.provenance.entries import NO_RECORD
from reflexarc.reflex.candidates import Candidate
from reflexarc.reflex.cues import Cues
from reflexarc.reflex.sources import Argument

RECORD_FEATURES = ("record_for", "record_against", "record_for_behind", "record_against_behind")
_ENTRIES = 6
_NOTHING = (0.0, 0.0)


def record_columns(
    argument: Argument, candidates: list[Candidate], cues: Cues
) -> NDArray[np.float32]:
    """(candidates, `RECORD_FEATURES`): what the words of the newest record it stands in say most
    for, and most against, each candidate (of a list the mean of its parts), and how far behind the
    best it is in both."""
    known: dict[Record, tuple[float, float]] = {}
    tool, name = argument.tool, argument.name

    def said(record: Record) -> tuple[float, float]:
        found = known.get(record)
        if found is None:
            found = known[record] = cues.of_record(tool, name, record)
        return found

    rows: list[tuple[float, float]] = []
    for candidate in candidates:
        parts = candidate.parts
        if len(parts) > 1:
            each = [said(entry.record) for entry in parts]
            count = len(each)
            rows.append(
                (sum([one[0] for one in each]) / count, sum([one[1] for one in each]) / count)
            )
            continue
        newest, record = -1, NO_RECORD
        for entry in candidate.entries[:_ENTRIES]:
            if entry.record is not NO_RECORD and entry.origin.event >= newest:
                newest, record = entry.origin.event, entry.record
        rows.append(said(record) if record is not NO_RECORD else _NOTHING)
    columns = np.array(rows, dtype=np.float32)
    return np.concatenate([columns, columns - columns.max(axis=0)], axis=1)
