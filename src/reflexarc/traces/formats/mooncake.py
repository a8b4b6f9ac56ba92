"""Mooncake's block traces: `{timestamp, input_length, output_length, hash_ids}`, a line a request.

Blocks hold 512 tokens; the time is milliseconds from the trace's begin. No text, no sessions: all
prompts of a file are in one, in which each goes on from whichever earlier one it begins like.
"""

from array import array
from collections.abc import Sequence
from pathlib import Path

from reflexarc.steps.prompt import Blocks
from reflexarc.traces.documents import tally
from reflexarc.traces.formats.rows import Keeping, first_row, rows
from reflexarc.traces.logs import Head
from reflexarc.traces.loose import Table, amount, listed, text
from reflexarc.traces.requests import Counts, FileReport, RecordedRequest, measured

COPY = "a line of another file again"
NO_LENGTH = "a line without its length"
BLOCK_TOKENS = 512
_KEYS = frozenset({"input_length", "output_length", "hash_ids"})
_MAX_BLOCKS = 1_000_000


class Mooncake:
    name = "mooncake"

    def recognises(self, head: Head) -> bool:
        return first_row(head).keys() >= _KEYS

    def read(self, paths: Sequence[Path], reports: dict[Path, FileReport]) -> list[RecordedRequest]:
        keeping = Keeping()
        for row in rows(paths, reports):
            length = amount(row.fields.get("input_length"))
            if length is None:
                row.report.skip(NO_LENGTH)
                continue
            keeping.keep(_request(row.fields, row.path, row.mark, length), row.report, COPY)
        # times count from the begin of the trace: they are no dates
        tally(keeping.requests, reports, dated=False)
        return keeping.requests


def _request(fields: Table, path: Path, mark: str, length: float) -> RecordedRequest:
    at = amount(fields.get("timestamp"))
    stem = path.name.partition(".")[0]
    return RecordedRequest(
        id=mark,
        session=text(fields.get("session_id")) or stem,
        file=str(path),
        began_s=measured(None if at is None else at / 1000),
        counts=Counts(prompt=measured(length), output=measured(_length(fields))),
        prompt=_blocks(fields, stem),
    )


def _length(fields: Table) -> float | None:
    return amount(fields.get("output_length"))


def _blocks(fields: Table, scope: str) -> Blocks | None:
    given = listed(fields.get("hash_ids"))[:_MAX_BLOCKS]
    ids = [one for one in given if isinstance(one, int) and 0 <= one < 2**63]
    if not ids or len(ids) != len(given):
        return None
    return Blocks(BLOCK_TOKENS, array("q", ids), scope)
