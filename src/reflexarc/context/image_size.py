"""How many tokens an image costs, by its size in pixels. An estimate; no image is decoded."""

import base64
import binascii
import struct

UNKNOWN_TOKENS = 1_000
"""Of an image whose size cannot be read: a link, another format."""
PIXELS_PER_TOKEN = 750
"""As Anthropic documents it for its models; others' tiles and patches come near."""
MOST_TOKENS = 1_600
LEAST_TOKENS = 64
_HEAD_CHARS = 64 * 1024 // 3 * 4


def image_tokens(data: str) -> int:
    """`data` is base64; empty for a link."""
    size = pixels(data)
    if size is None:
        return UNKNOWN_TOKENS
    width, height = size
    return min(MOST_TOKENS, max(LEAST_TOKENS, -(-width * height // PIXELS_PER_TOKEN)))


def pixels(data: str) -> tuple[int, int] | None:
    """Width and height of a PNG, GIF, WebP or JPEG image; None where they cannot be read."""
    try:
        head = base64.b64decode(data[:_HEAD_CHARS] + "==")
    except (binascii.Error, ValueError):
        return None
    try:
        size = _of(head)
    except struct.error:
        return None
    return size if size is not None and min(size) > 0 else None


def _of(head: bytes) -> tuple[int, int] | None:
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return struct.unpack_from(">II", head, 16)
    if head[:6] in (b"GIF87a", b"GIF89a"):
        return struct.unpack_from("<HH", head, 6)
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return _webp(head)
    if head.startswith(b"\xff\xd8"):
        return _jpeg(head)
    return None


def _webp(head: bytes) -> tuple[int, int] | None:
    kind = head[12:16]
    if kind == b"VP8X":
        width, high, height, tall = struct.unpack_from("<HBHB", head, 24)
        return (width | high << 16) + 1, (height | tall << 16) + 1
    if kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", head, 21)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", head, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None


def _jpeg(head: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 <= len(head) and head[at] == 0xFF:
        marker = head[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", head, at + 5)
            return width, height
        (length,) = struct.unpack_from(">H", head, at + 2)
        at += 2 + length
    return None
