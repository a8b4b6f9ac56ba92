"""Finding and reading logs of any known format: which file is which, and what it was good for.

A format reads all its files at once, for copies are told across files. What nothing recognises is
reported, never an error by itself.
"""

import gzip
import os
import zlib
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Protocol, cast

import msgspec

from reflexarc.steps.errors import InputError
from reflexarc.traces import zstd
from reflexarc.traces.loose import decoded
from reflexarc.traces.peek import Top, seen
from reflexarc.traces.requests import FileReport, RecordedRequest

HEAD_BYTES = 256 * 1024
FIRST_LINES = 10
"""So many lines of a file are looked at to tell what it is, where the first ones are damaged."""

MAX_FILES = 200_000
UNKNOWN, EMPTY = "not a log of a known format", "an empty file"
_GZIP_MAGIC = b"\x1f\x8b"


class Head(msgspec.Struct, frozen=True, dict=True):
    """The beginning of a file, unpacked where it is gzip or zstd: what a format is told by.
    `first` is its first line as JSON, or all of it where that is one JSON value and short; None
    where neither is. `size` in bytes on disk."""

    path: Path
    data: bytes
    first: object
    size: int

    @cached_property
    def top(self) -> Top:
        """What stands at its top, also where `first` is None. Worked out once for all formats."""
        return seen(self.first, self.data)


class Format(Protocol):
    """`recognises` looks at the beginning of one file alone. `read` is given all files that were
    recognised, in order of their names, with a report for each, which it fills in; what it cannot
    read it says there. It raises nothing for what is in a file."""

    @property
    def name(self) -> str: ...

    def recognises(self, head: Head) -> bool: ...

    def read(
        self, paths: Sequence[Path], reports: dict[Path, FileReport]
    ) -> list[RecordedRequest]: ...


class Logs(msgspec.Struct, frozen=True):
    """What was read: requests in order of time, a report for each file (those that nothing
    recognised have no format)."""

    requests: list[RecordedRequest]
    files: list[FileReport]


def read_logs(
    paths: Iterable[str | Path],
    formats: Sequence[Format],
    *,
    on_file: Callable[[Path], None] | None = None,
) -> Logs:
    """Everything under these paths, folders with all below them.

    Raises `InputError` for a path that there is not or that cannot be read. What cannot be read in
    a folder has a report that says so.
    """
    reports: dict[Path, FileReport] = {}
    by_format: dict[str, list[Path]] = {}
    for path, by_name in _files(paths, reports).items():
        if on_file is not None:
            on_file(path)
        report = reports[path] = FileReport(str(path))
        try:
            head = head_of(path)
        except InputError as error:
            if by_name:
                raise
            # One that is closed, or gone again, takes nothing from the others in its folder.
            _unread(report, getattr(error.__cause__, "strerror", error))
            continue
        found = next((one for one in formats if one.recognises(head)), None)
        if found is None:
            report.notes.append(UNKNOWN if head.size else EMPTY)
            continue
        report.format = found.name
        by_format.setdefault(found.name, []).append(path)
    requests: list[RecordedRequest] = []
    for format in formats:
        if format.name in by_format:
            requests += format.read(sorted(by_format[format.name]), reports)
    requests.sort(key=_order)
    return Logs(requests, list(reports.values()))


def head_of(path: Path) -> Head:
    """Raises `InputError` for a file that cannot be read."""
    try:
        with path.open("rb") as file:
            data = file.read(HEAD_BYTES)
            size = path.stat().st_size
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    if data.startswith(_GZIP_MAGIC):
        unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16)
        try:
            data = unpacking.decompress(data, HEAD_BYTES)
        except zlib.error:
            data = b""
    elif data.startswith(zstd.MAGIC):
        data = zstd.beginning(data, HEAD_BYTES)
    return Head(path, data, _first(data), size)


def whole(path: Path, max_bytes: int) -> bytes:
    """A file's bytes, unpacked where it is gzip or zstd. Raises `InputError` where it cannot be
    read or is larger than `max_bytes`."""
    try:
        with path.open("rb") as file:
            magic = file.read(4)
            file.seek(0)
            if magic == zstd.MAGIC:
                data = zstd.reading(file).read(max_bytes + 1)
            elif magic.startswith(_GZIP_MAGIC):
                data = gzip.GzipFile(fileobj=file).read(max_bytes + 1)
            else:
                data = file.read(max_bytes + 1)
    except (OSError, EOFError, zlib.error, zstd.ZstdError) as error:
        raise InputError(f"{path}: cannot be read ({error})") from error
    if len(data) > max_bytes:
        raise InputError(f"{path}: larger than {max_bytes} bytes")
    return data


def _files(paths: Iterable[str | Path], reports: dict[Path, FileReport]) -> dict[Path, bool]:
    """Those given and those in the folders given; whether each was given itself. Of a folder that
    cannot be read, a report."""
    found: dict[Path, bool] = {}

    def closed(error: OSError) -> None:
        path = Path(error.filename)
        reports[path] = FileReport(str(path))
        _unread(reports[path], error.strerror)

    for given in paths:
        path = Path(given)
        if path.is_dir():
            inside = [
                Path(at, name) for at, _, names in os.walk(path, onerror=closed) for name in names
            ]
            for one in sorted(inside):
                if one.is_file():
                    found.setdefault(one, False)
        elif path.is_file():
            found[path] = True
        elif path.exists():
            raise InputError(f"{path}: neither a file nor a folder; logs are read more than once")
        else:
            raise InputError(f"{path}: there is no such file or folder")
        if len(found) > MAX_FILES:
            raise InputError(f"{path}: more than {MAX_FILES} files")
    return found


def _unread(report: FileReport, why: object) -> None:
    report.notes.append(f"cannot be read ({why})")
    report.at_least = True


def _first(data: bytes) -> object:
    """The first line as a value, else all of it, else one of the next (the first is damaged)."""
    lines = data.lstrip(b"\xef\xbb\xbf \t\r\n").split(b"\n", FIRST_LINES)
    for text in (lines[0], data):
        try:
            return decoded(text)
        except ValueError:
            continue
    if lines[0].strip() in (b"{", b"["):
        return None
    for line in lines[1:FIRST_LINES]:
        try:
            found = decoded(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            return cast(object, found)
    return None


def _order(request: RecordedRequest) -> tuple[float, str]:
    """By time, then session; in the order in which they were read where a log has no times."""
    for moment in (request.began_s, request.ended_s):
        if moment.value is not None:
            return moment.value, request.session
    return float("inf"), request.session
