"""Exports that are rows: JSON Lines, a JSON list, an object with a list in it, or CSV.

What a row means is its format's business. A row that stands in two files is one.
"""

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import xxhash

from reflexarc.steps.errors import InputError
from reflexarc.traces.documents import MAX_DOCUMENT_BYTES, values
from reflexarc.traces.formats.fields import is_list, is_table
from reflexarc.traces.logs import Head, head_of, whole
from reflexarc.traces.loose import Table, encoded, listed, table
from reflexarc.traces.peek import top_of
from reflexarc.traces.requests import FileReport, RecordedRequest

_LISTS = ("data", "rows", "results", "items", "logs", "records", "entries", "runs", "requests")
_MAX_CELL_BYTES = 64 * 1024 * 1024
NOT_A_ROW = "a value that is no object"


class Row(msgspec.Struct, frozen=True):
    """`fields` of one row; `outer` those of the object that its list stands in. `mark` is the same
    for the same row in another file, and differs for the same row again in one file."""

    path: Path
    report: FileReport
    fields: Table
    outer: Table
    mark: str


class Keeping:
    """Each request once, by its id: whichever file comes first has it, whatever the order given,
    unless another tells more of its tokens (a line written before the answer was whole)."""

    def __init__(self) -> None:
        self._found: dict[str, RecordedRequest] = {}

    def keep(self, request: RecordedRequest, report: FileReport, rule: str) -> None:
        known = self._found.get(request.id)
        if known is not None:
            report.duplicate(rule)
        if known is None or _told(request) > _told(known):
            self._found[request.id] = request

    @property
    def requests(self) -> list[RecordedRequest]:
        return list(self._found.values())


def _told(request: RecordedRequest) -> int:
    counts = request.counts
    figures = (counts.prompt, counts.output, counts.cache_read, counts.cache_write)
    return sum(figure.kind in ("measured", "derived") for figure in figures)


def rows(
    paths: Sequence[Path], reports: Mapping[Path, FileReport], *, lists: tuple[str, ...] = _LISTS
) -> Iterator[Row]:
    """The rows of these files. `lists`: members whose list of objects are the rows."""
    for path in sorted(paths):
        report = reports[path]
        seen: dict[str, int] = {}
        for fields, outer in _tables(path, report, lists):
            digest = xxhash.xxh3_128_hexdigest(encoded(fields))
            seen[digest] = seen.get(digest, 0) + 1
            yield Row(path, report, fields, outer, f"{digest}:{seen[digest]}")


def first_row(head: Head, lists: tuple[str, ...] = _LISTS) -> Table:
    """The first row of a file, for telling formats apart; its keys alone where it is too long."""
    if is_table(head.first):
        first = table(head.first)
        inner = _inner(first, lists)
        return table(inner[0]) if inner else first
    top = top_of(head)
    if top.element:
        return top.element
    return dict.fromkeys(top.keys) or _csv_row(head.data)


def _inner(value: Table, lists: tuple[str, ...]) -> list[object]:
    for key in lists:
        if key == "log" and is_table(value.get(key)):
            return _inner(table(value[key]), lists)
        found = listed(value.get(key))
        if found and is_table(found[0]):
            return found
    return []


def _tables(
    path: Path, report: FileReport, lists: tuple[str, ...]
) -> Iterator[tuple[Table, Table]]:
    if _is_csv(path):
        yield from ((row, {}) for row in _csv(path, report))
        return
    for value in values(path, report):
        outer = table(value)
        inner = _inner(outer, lists) if outer else listed(value)
        if outer and not inner:
            yield outer, {}
            continue
        if not outer and not is_list(value):
            report.skip(NOT_A_ROW)
        for one in inner:
            if is_table(one):
                yield table(one), outer
            else:
                report.skip(NOT_A_ROW)


def _is_csv(path: Path) -> bool:
    try:
        start = head_of(path).data.lstrip(b"\xef\xbb\xbf \t\r\n")
    except InputError:
        return False
    return not start.startswith((b"{", b"[")) and b"," in start.split(b"\n", 1)[0]


def _csv(path: Path, report: FileReport) -> Iterator[Table]:
    try:
        data = whole(path, MAX_DOCUMENT_BYTES).decode("utf-8-sig", "replace")
    except InputError as error:
        report.notes.append(str(error))
        report.at_least = True
        return
    for row in _csv_rows(data, lambda why: _broken(report, why)):
        report.lines += 1
        yield row


def _broken(report: FileReport, why: str) -> None:
    report.skip(f"a line of CSV that cannot be read ({why})")
    report.at_least = True


def _csv_row(data: bytes) -> Table:
    text = data.decode("utf-8-sig", "replace")
    if "," not in text.partition("\n")[0]:
        return {}
    none: Table = {}
    return next(_csv_rows(text, lambda _: None), none)


def _csv_rows(text: str, broken: Callable[[str], None]) -> Iterator[Table]:
    """Cells that are empty are absent. Prompts are longer than the reader's own limit of a cell."""
    before = csv.field_size_limit(_MAX_CELL_BYTES)
    try:
        reader = csv.DictReader(io.StringIO(text.replace("\0", ""), newline=""))
        while True:
            try:
                row = next(reader, None)
            except csv.Error as error:
                broken(str(error))
                continue
            if row is None:
                return
            # a row that is longer than the header has its rest under None
            yield {key: one for key, one in row.items() if isinstance(key, str) and one}
    finally:
        csv.field_size_limit(before)
