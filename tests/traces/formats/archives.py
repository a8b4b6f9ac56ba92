"""ZIP files as inspect_ai writes them: deflated, or packed with zstd in several frames."""

import json
import struct
import zlib
from pathlib import Path
from typing import Any

from backports.zstd import compress

STORED, DEFLATED, ZSTD = 0, 8, 93


def pack(data: bytes, method: int, frames: int) -> bytes:
    if method == STORED:
        return data
    if method == DEFLATED:
        packing = zlib.compressobj(wbits=-15)
        return packing.compress(data) + packing.flush()
    step = len(data) // frames + 1
    return b"".join(compress(data[at : at + step]) for at in range(0, len(data), step))


def archive(
    path: Path, members: dict[str, Any], *, method: int = ZSTD, frames: int = 1, crc: int = 0
) -> Path:
    """Members that are not bytes are written as JSON. `crc` is put over the checksums."""
    body, directory = b"", b""
    for name, value in members.items():
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        packed = pack(data, method, frames)
        fields = (
            20, 0, method, 0, 0, zlib.crc32(data) ^ crc, len(packed), len(data), len(name), 0
        )  # fmt: skip
        at = len(body)
        body += b"PK\x03\x04" + struct.pack("<5H3L2H", *fields) + name.encode() + packed
        directory += (
            b"PK\x01\x02"
            + struct.pack("<6H3L5H2L", 20, *fields[:9], 0, 0, 0, 0, 0, at)
            + name.encode()
        )
    count = len(members)
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, count, count, len(directory), len(body), 0)
    path.write_bytes(body + directory + end)
    return path
