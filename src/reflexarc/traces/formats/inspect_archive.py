"""The members of a `.eval` file: a ZIP whose members are deflated or packed with zstd (method 93,
often in several frames), which Python's own `zipfile` reads only from 3.14 on.

Every size is bounded before it is in memory. What the members mean is `inspect_ai`'s business.
"""

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from reflexarc.steps.errors import InputError
from reflexarc.traces import zstd

MAX_MEMBERS = 500_000
MAX_MEMBER_BYTES = 256 * 1024 * 1024
MAX_ARCHIVE_BYTES = 4 * 1024 * 1024 * 1024
"""Limits on what is unpacked: more members, a longer one, or more in all are not read."""

_ZSTD_METHOD = 93
_LOCAL_HEADER = struct.Struct("<4s22xHH")
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    zstd.ZstdError,
    struct.error,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    OverflowError,
)


class Archive:
    """One `.eval` file. Raises `InputError` where it is no readable ZIP or has too many members."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._left_bytes = MAX_ARCHIVE_BYTES
        try:
            with zipfile.ZipFile(path) as opened:
                # of two members with one name the later one counts
                self._members = {one.filename: one for one in opened.infolist()}
        except _DAMAGE as error:
            raise InputError(f"{path}: cannot be read as a ZIP file ({error})") from error
        if len(self._members) > MAX_MEMBERS:
            raise InputError(f"{path}: more than {MAX_MEMBERS} members")

    def names(self, under: str = "") -> Iterator[str]:
        """Names of members in the order of names."""
        yield from sorted(name for name in self._members if name.startswith(under))

    def member(self, name: str) -> bytes:
        """A member's bytes. Raises `InputError` where there is none, where it is damaged, and at
        the limits of this module."""
        found = self._members.get(name)
        if found is None:
            raise InputError(f"{self._path}: has no {name}")
        most = min(MAX_MEMBER_BYTES, self._left_bytes)
        try:
            if found.compress_type == _ZSTD_METHOD:
                data = self._unpacked(found, most + 1)
            else:
                with zipfile.ZipFile(self._path) as opened, opened.open(found) as stream:
                    data = stream.read(most + 1)
        except _DAMAGE as error:
            raise InputError(f"{self._path}: {name} cannot be read ({error})") from error
        self._left_bytes -= min(len(data), most)
        if len(data) > most:
            raise InputError(f"{self._path}: {name} is longer than {most} bytes unpacked")
        return data

    def _unpacked(self, member: zipfile.ZipInfo, most: int) -> bytes:
        if member.flag_bits & 1:
            raise ValueError("it is encrypted")
        with self._path.open("rb") as file:
            file.seek(member.header_offset)
            magic, name_bytes, extra_bytes = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
            if magic != b"PK\x03\x04":
                raise ValueError("its header is not where the list of members says")
            file.seek(name_bytes + extra_bytes, io.SEEK_CUR)
            packed = file.read(member.compress_size)
        data = zstd.reading(io.BytesIO(packed)).read(most)
        if len(data) < most and zlib.crc32(data) != member.CRC:
            raise ValueError("its checksum does not fit")
        return data
