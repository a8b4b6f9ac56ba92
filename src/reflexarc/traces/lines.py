"""Lines of files that may be packed, damaged or endless: each line with its number, or why not.

What a line means is not known here. Whether a file is gzip or zstd is seen from its first bytes,
not from its name. Memory stays under one line, and a line under `MAX_LINE_BYTES`.
"""

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

import msgspec

from reflexarc.steps.errors import InputError
from reflexarc.traces import zstd

MAX_LINE_BYTES = 64 * 1024 * 1024
_GZIP_MAGIC = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"


class Line(msgspec.Struct, frozen=True):
    """One line of a file without its line end. `why` says why it cannot be used, else it is
    empty. Numbers count from 1."""

    file: str
    number: int
    data: bytes
    why: str = ""

    @property
    def where(self) -> str:
        return f"{self.file}:{self.number}"


def read_lines(path: str | Path, *, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[Line]:
    """The lines of a file that are not blank, in order.

    A line that is too long, and the place where a packed stream breaks off, are lines with a `why`.
    Raises `InputError` for a file that cannot be opened.
    """
    name = str(path)
    with _opened(name) as file:
        magic = file.read(4)
        file.seek(0)
        stream = file
        if magic.startswith(_GZIP_MAGIC):
            # GzipFile reads like a binary file; its stubs only do not say so
            stream = cast(BinaryIO, gzip.GzipFile(fileobj=file))
        elif magic == zstd.MAGIC:
            stream = zstd.reading(file)
        yield from _lines(name, stream, max_line_bytes)


def _opened(name: str) -> BinaryIO:
    try:
        return Path(name).open("rb")
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({_reason(error)})") from error


def _lines(name: str, stream: BinaryIO, max_line_bytes: int) -> Iterator[Line]:
    number = 0
    while True:
        number += 1
        try:
            data, whole = _one_line(stream, max_line_bytes)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            yield Line(name, number, b"", f"the gzip stream is damaged here ({_reason(error)})")
            return
        except zstd.ZstdError as error:
            yield Line(name, number, b"", f"the zstd stream is damaged here ({_reason(error)})")
            return
        except OSError as error:
            raise InputError(f"{name}:{number}: cannot be read ({_reason(error)})") from error
        if not data:
            return
        if not whole:
            limit = f"{max_line_bytes / 2**20:g} MiB" if max_line_bytes >= 2**20 else ""
            yield Line(
                name, number, b"", f"the line is longer than {limit or f'{max_line_bytes} bytes'}"
            )
            continue
        if number == 1:
            data = data.removeprefix(_BOM)
        data = data.rstrip(b"\r\n")
        if data.strip():
            yield Line(name, number, data)


def _one_line(stream: BinaryIO, max_line_bytes: int) -> tuple[bytes, bool]:
    """The next line, and whether it is whole; the rest of one that is too long is passed over."""
    data = stream.readline(max_line_bytes + 1)
    if len(data) <= max_line_bytes or data.endswith(b"\n"):
        return data, True
    while True:
        rest = stream.readline(io.DEFAULT_BUFFER_SIZE)
        if not rest or rest.endswith(b"\n"):
            return data[:1], False


def _reason(error: Exception) -> str:
    if isinstance(error, EOFError):
        return "it ends too early"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
