"""What the records of a candidate say for and against it as an argument, as numbers."""

import numpy as np
from numpy.typing import NDArray

from reflexarc.provenance import Record
from reflexarc.provenance.entries import NO_RECORD
from reflexarc.reflex.candidates import Candidate
from reflexarc.reflex.context import Context
from reflexarc.reflex.cues import Cues
from reflexarc.reflex.sources import Argument

RECORD_FEATURES = ("record_for", "record_against", "record_for_behind", "record_against_behind")
_ENTRIES = 6
_NOTHING = (0.0, 0.0)


def record_columns(
    context: Context, argument: Argument, candidates: list[Candidate], cues: Cues
) -> NDArray[np.float32]:
    """(candidates, `RECORD_FEATURES`): what the words of the newest record it stands in say most
    for, and most against, each candidate (of a list the mean of its parts), and how far behind the
    best it is in both."""
    known = context.recorded.setdefault(cues, {})
    tool, name, index = argument.tool, argument.name, argument.index

    def said(record: Record) -> tuple[float, float]:
        if record is NO_RECORD:
            return _NOTHING
        found = known.get((index, record))
        if found is None:
            found = known[index, record] = cues.of_record(tool, name, record)
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
        entries = candidate.entries
        if len(entries) == 1:
            rows.append(said(entries[0].record))
            continue
        for entry in entries[:_ENTRIES]:
            if entry.record is not NO_RECORD and entry.origin.event >= newest:
                newest, record = entry.origin.event, entry.record
        rows.append(said(record))
    columns = np.array(rows, dtype=np.float32)
    return np.concatenate([columns, columns - columns.max(axis=0)], axis=1)
