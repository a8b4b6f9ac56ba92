"""Logs that are JSON values, one a file or one a line: each value once, copies left out.

What a value means is its format's business. Also the counts of a report, from the requests kept.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import xxhash

from reflexarc.steps.errors import InputError
from reflexarc.traces.lines import read_lines
from reflexarc.traces.logs import FIRST_LINES, whole
from reflexarc.traces.loose import decoded
from reflexarc.traces.requests import FileReport, RecordedRequest

MAX_DOCUMENT_BYTES = 256 * 1024 * 1024
"""A JSON value longer than this, unpacked, is not read and its file says so."""

BAD_JSON = "not JSON"
COPY = "byte for byte the same as another"


class Document(msgspec.Struct, frozen=True):
    """One JSON value of a file. `digest` tells it from all values that are not its copies."""

    path: Path
    report: FileReport
    digest: str
    value: Any


def documents(
    paths: Sequence[Path],
    reports: Mapping[Path, FileReport],
    *,
    max_bytes: int = MAX_DOCUMENT_BYTES,
    keep_copies: bool = False,
) -> Iterator[Document]:
    """The values of these files, those of the first name first whatever the order given.

    A value that stands in two files, or twice in one, counts where it stands first (unless its
    format tells copies itself: `keep_copies`). What cannot be read is counted in the report of its
    file.
    """
    seen: set[str] = set()
    for path in sorted(paths):
        report = reports[path]
        try:
            for data, value in _values(path, report, max_bytes):
                digest = xxhash.xxh3_128_hexdigest(data)
                if digest in seen and not keep_copies:
                    report.duplicate(COPY)
                    continue
                seen.add(digest)
                yield Document(path, report, digest, value)
        except InputError as error:
            report.notes.append(str(error))
            report.at_least = True


def values(path: Path, report: FileReport, *, max_bytes: int = MAX_DOCUMENT_BYTES) -> Iterator[Any]:
    """The values of one file, copies too. Raises nothing: what cannot be read, its report says."""
    try:
        for _, value in _values(path, report, max_bytes):
            yield value
    except InputError as error:
        report.notes.append(str(error))
        report.at_least = True


def _values(path: Path, report: FileReport, max_bytes: int) -> Iterator[tuple[bytes, Any]]:
    """Lines where one of the first is a value, else the one value that the file is."""
    bad: list[str] = []
    good = 0
    for line in read_lines(path, max_line_bytes=max_bytes):
        report.lines += 1
        try:
            if line.why:
                raise ValueError(line.why)
            value = decoded(line.data)
        except ValueError:
            if report.lines == 1:
                found = _one(path, max_bytes)
                if found is not None:
                    report.lines = found[0].count(b"\n") + 1
                    yield found
                    return
                if line.data.strip() in (b"{", b"["):
                    # one value over many lines, which breaks off: its lines are no values
                    break
            elif report.lines == FIRST_LINES and not good:
                break
            bad.append(line.why or BAD_JSON)
            report.skip(line.why or BAD_JSON)
            continue
        if bad:
            # a bad last line may be one that is being written; one in the middle is a loss
            report.at_least = True
            bad.clear()
        good += 1
        yield line.data, value
    if not good and report.lines:
        report.skipped.clear()
        report.skip(bad[0] if report.lines == 1 and bad else BAD_JSON)
        report.notes.append("not JSON, neither as a whole nor by its lines")
        report.at_least = True
    elif len(bad) == 1:
        report.notes.append("the last line breaks off")
    elif bad:
        report.at_least = True


def _one(path: Path, max_bytes: int) -> tuple[bytes, Any] | None:
    """The value that a whole file is. Raises `InputError` where it is too long."""
    data = whole(path, max_bytes)
    try:
        return data, decoded(data)
    except ValueError:
        return None


def tally(
    requests: Iterable[RecordedRequest], reports: Mapping[Path, FileReport], *, dated: bool = True
) -> None:
    """Counts requests and errors into the reports of their files, and, where times are dates,
    the oldest and newest of them."""
    by_file = {str(path): report for path, report in reports.items()}
    for request in requests:
        report = by_file[request.file]
        if request.failed:
            report.errors += 1
        else:
            report.requests += 1
        if not dated:
            continue
        for moment in (request.began_s.value, request.ended_s.value):
            if moment is None:
                continue
            if report.oldest_s is None or moment < report.oldest_s:
                report.oldest_s = moment
            if report.newest_s is None or moment > report.newest_s:
                report.newest_s = moment
