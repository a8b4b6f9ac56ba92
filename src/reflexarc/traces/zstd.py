"""Zstandard: one frame or many, never more than asked for. Not for writing."""

from typing import BinaryIO, cast

from backports.zstd import ZstdDecompressor, ZstdError, ZstdFile

MAGIC = b"\x28\xb5\x2f\xfd"


def beginning(data: bytes, max_bytes: int) -> bytes:
    """What the beginning of a packed file unpacks to, as far as it goes; at most `max_bytes`."""
    found = b""
    while data and len(found) < max_bytes:
        frame = ZstdDecompressor()
        try:
            found += frame.decompress(data, max_length=max_bytes - len(found))
        except ZstdError:
            break
        if not frame.eof:
            break
        data = frame.unused_data
    return found


def reading(packed: BinaryIO) -> BinaryIO:
    """A packed file as the file that was packed. Reading it raises `ZstdError` where it is damaged
    and `EOFError` where it breaks off."""
    return cast(BinaryIO, ZstdFile(packed))


__all__ = ["MAGIC", "ZstdError", "beginning", "reading"]
