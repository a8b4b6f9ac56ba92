"""Which of several objects was meant: what distinguishes them, beside what was said of them."""

import numpy as np
from numpy.typing import NDArray

from reflexarc.provenance import Origin, Record
from reflexarc.provenance.entries import NO_RECORD
from reflexarc.reflex.candidates import Candidate
from reflexarc.reflex.context import Context
from reflexarc.reflex.said import Told

TOLD_FEATURES = (
    "told_user", "told_talk", "told_assistant", "told_of_late", "behind_user", "behind_talk",
    "behind_assistant", "behind_of_late",
)  # fmt: skip
_UNTOLD: Told = (0.0, 0.0, 0.0, 0.0)


def told_columns(context: Context, candidates: list[Candidate]) -> NDArray[np.float32] | None:
    """(candidates, `TOLD_FEATURES`): how well each fits what was said, among those of its message,
    and how far behind the best it stands; of a list the mean of its parts. None where no candidate
    has a record."""
    records: dict[Origin, dict[Record, None]] = {}
    seen: set[int] = set()
    for candidate in candidates:
        for entry in candidate.parts or candidate.entries[-1:]:
            # The same values make many lists.
            if id(entry) not in seen:
                seen.add(id(entry))
                if entry.record is not NO_RECORD:
                    records.setdefault(entry.origin, {})[entry.record] = None
    if not records:
        return None
    said = context.said_now()
    scores: dict[Record, Told] = {}
    for found in records.values():
        scores.update(said.told(tuple(found)))
    rows: list[Told] = []
    for candidate in candidates:
        if candidate.parts:
            parts = [scores.get(entry.record, _UNTOLD) for entry in candidate.parts]
            count = len(parts)
            rows.append((
                sum([part[0] for part in parts]) / count,
                sum([part[1] for part in parts]) / count,
                sum([part[2] for part in parts]) / count,
                sum([part[3] for part in parts]) / count,
            ))  # fmt: skip
        elif candidate.entries:
            rows.append(scores.get(candidate.entries[-1].record, _UNTOLD))
        else:
            rows.append(_UNTOLD)
    told = np.array(rows, dtype=np.float32)
    return np.concatenate([told, told - told.max(axis=0)], axis=1)
