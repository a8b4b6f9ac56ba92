"""Pictures and documents within a piece of a prompt: whether one is the same in other bytes.

Nothing is decoded but the few bytes that say how large it is.
"""

import base64
import re
from typing import Any, cast
from urllib.parse import urlsplit

from reflexarc.steps.forms import DATA

FLAT_BYTES = 4_000
"""What a picture weighs beside text: its bytes say nothing of what it costs."""

_HOLDERS = frozenset(
    {"bytes", "data", "file_data", "fileUri", "file_uri", "image_url", "uri", "url"}
)
_IN_PLACE = "(a picture)"
_LEAST_RUN = 3_000
"""Bytes of base64 in a row that are a picture's: no word is so long."""
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_=-"
_FLAT = bytes(ord("a") if byte in _BASE64 else ord(" ") for byte in range(256))
_A_RUN = b"a" * _LEAST_RUN
_HEAD_CHARS = 64 * 1024


def weight(raw: bytes) -> int:
    """The bytes of a piece, a picture's or a document's own counted flat."""
    if len(raw) < _LEAST_RUN:
        return len(raw)
    # An expression would try each of a text's letters anew: twenty times as slow.
    flat, size = raw.translate(_FLAT), len(raw)
    at = flat.find(_A_RUN)
    while at >= 0:
        end = flat.find(b" ", at)
        end = len(raw) if end < 0 else end
        size += FLAT_BYTES - (end - at)
        at = flat.find(_A_RUN, end)
    return size


def without_pictures(value: Any) -> tuple[Any, list[str]]:
    """The value with what pictures are made of left out, and that, in turn."""
    found: list[str] = []
    return _left_out(value, found), found


def may_be_same(was: str, now: str) -> bool:
    """False where two are surely not of one picture: other addresses, or other proportions."""
    if was == now:
        return True
    old, new = _bytes_of(was), _bytes_of(now)
    if old is None and new is None:
        return urlsplit(was)[1:3] == urlsplit(now)[1:3]  # signed anew
    if old is None or new is None or old == new:
        return True
    sizes = _size(old), _size(new)
    if sizes[0] is None or sizes[1] is None:
        return True
    (width, height), (new_width, new_height) = sizes[0], sizes[1]
    return abs(width * new_height - new_width * height) <= max(width, new_width, height, new_height)


def _left_out(value: Any, found: list[str]) -> Any:
    if isinstance(value, list):
        return [_left_out(one, found) for one in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    made: dict[str, Any] = {}
    for name, one in cast("dict[str, Any]", value).items():
        if name in _HOLDERS and isinstance(one, str):
            found.append(one)
            made[name] = _IN_PLACE
        else:
            made[name] = one if name in DATA else _left_out(one, found)
    return made


def _bytes_of(text: str) -> bytes | None:
    """The head of what base64 stands for; None for an address."""
    if text.startswith("data:"):
        text = text.partition(",")[2]
    elif "://" in text[:12]:
        return None
    plain = re.sub(r"\s", "", text[:_HEAD_CHARS]).replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(plain[: len(plain) // 4 * 4])
    except ValueError:  # no base64, or letters that no base64 has
        return None


def _size(data: bytes) -> tuple[int, int] | None:
    """Width and height in pixels of a PNG, GIF, JPEG or WebP."""
    if data.startswith(b"\x89PNG") and len(data) >= 24:
        return int.from_bytes(data[16:20]), int.from_bytes(data[20:24])
    if data.startswith(b"GIF8") and len(data) >= 10:
        return int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")
    if data.startswith(b"\xff\xd8"):
        return _size_of_jpeg(data)
    if data[8:16] == b"WEBPVP8 " and len(data) >= 30:
        width, height = (int.from_bytes(data[at : at + 2], "little") & 0x3FFF for at in (26, 28))
        return width, height
    if data[8:16] == b"WEBPVP8X" and len(data) >= 30:
        width, height = (int.from_bytes(data[at : at + 3], "little") + 1 for at in (24, 27))
        return width, height
    return None


def _size_of_jpeg(data: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 < len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return int.from_bytes(data[at + 7 : at + 9]), int.from_bytes(data[at + 5 : at + 7])
        at += 2 + int.from_bytes(data[at + 2 : at + 4])
    return None
