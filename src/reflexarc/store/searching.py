"""Which of very many byte strings stand in files: one pass, whatever their number.

The first eight bytes of every string are looked up at every place of a file; where they are found,
the rest is compared. Strings shorter than that are searched for one by one.
"""

import contextlib
import os
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_HEAD = 8
_AT_ONCE = 1 << 24
_TABLE_BITS = 22
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


def standing_in(files: Sequence[Path], wanted: Collection[bytes]) -> set[bytes]:
    """Those of the strings that a file holds. A file that is not there holds nothing; raises
    OSError where one cannot be read."""
    found: set[bytes] = set()
    short = [one for one in wanted if len(one) < _HEAD]
    heads: dict[bytes, dict[int, set[bytes]]] = {}
    for one in wanted:
        if len(one) >= _HEAD:
            heads.setdefault(one[:_HEAD], {}).setdefault(len(one), set()).add(one)
    table = _table(heads)
    for part in _parts(files, max(map(len, wanted), default=1) - 1):
        found.update(one for one in short if one in part)
        for place in _places(part, table) if heads else ():
            for length, ones in heads.get(part[place : place + _HEAD], {}).items():
                there = part[place : place + length]
                if there in ones:
                    found.add(there)
    return found


def standing_as_word(files: Sequence[Path], text: bytes) -> bool:
    """Whether a file holds a string with no letter, digit or underscore beside it; one before it
    that JSON's way to write a line feed or the like ends with is none. Raises OSError."""
    pattern = re.compile(rb"(?:(?<![A-Za-z0-9_])|(?<=\\[nrtbf]))" + re.escape(text) + rb"(?!\w)")
    for path in files:
        before, more = b"", len(text) + 1
        for part in _parts([path], more):
            # What stands beside a piece is seen with it: no word begins or ends where it does.
            whole = before + part
            goes_on = len(part) == _AT_ONCE + more
            for match in pattern.finditer(whole, len(before)):
                if match.end() < len(whole) or not goes_on:
                    return True
            before = part[max(0, _AT_ONCE - 2) : _AT_ONCE]
    return False


def _parts(files: Sequence[Path], more: int) -> Iterator[bytes]:
    """The files in pieces, each with `more` bytes of the next. They are read, not mapped: they may
    grow shorter meanwhile."""
    for path in files:
        with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
            begin = 0
            while part := os.pread(file.fileno(), _AT_ONCE + more, begin):
                yield part
                begin += _AT_ONCE


def _table(heads: Collection[bytes]) -> NDArray[np.bool_]:
    table = np.zeros(1 << _TABLE_BITS, dtype=np.bool_)
    table[_hashed(np.frombuffer(b"".join(heads), dtype="<u8"))] = True
    return table


def _places(data: bytes, table: NDArray[np.bool_]) -> Iterator[int]:
    """Where a head may stand: all places where one does, and a few more."""
    octets = np.frombuffer(data, dtype=np.uint8)
    for offset in range(_HEAD):
        count = (len(octets) - offset) // _HEAD
        if count > 0:
            numbers = octets[offset : offset + count * _HEAD].view("<u8")
            for hit in np.flatnonzero(table[_hashed(numbers)]):
                yield offset + int(hit) * _HEAD


def _hashed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return (numbers * _SPREAD) >> np.uint64(64 - _TABLE_BITS)
