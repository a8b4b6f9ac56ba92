"""What stands at the top of a JSON value of which only the beginning is known.

For telling formats apart. Not a parser: nothing is checked, and nothing raises.
"""

import json
import re
from typing import TYPE_CHECKING, Any, cast

import msgspec

from reflexarc.traces.loose import Table

if TYPE_CHECKING:
    from reflexarc.traces.logs import Head

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}:]', re.DOTALL)


class Top(msgspec.Struct, frozen=True):
    """The keys of the object that a file is (or begins with, where it is lines of them); or the
    first element of the list that it is. One of the two is empty."""

    keys: frozenset[str] = frozenset()
    element: Table = {}


def top_of(head: "Head") -> Top:
    """What `head` shows of its file."""
    return head.top


def seen(first: object, data: bytes) -> Top:
    """What the beginning of a file shows; `first` is its first value, None where it is longer than
    `data`."""
    found: Any = first
    if isinstance(found, dict):
        return Top(frozenset(cast(Table, found)))
    if isinstance(found, list):
        return Top(element=_first_table(cast(list[Any], found)))
    data = data.lstrip(b"\xef\xbb\xbf \t\r\n")
    if data.startswith(b"{"):
        return Top(frozenset(_keys(data)))
    if data.startswith(b"["):
        return Top(element=_element(data))
    return Top()


def _first_table(found: list[Any]) -> Table:
    return cast(Table, found[0]) if found and isinstance(found[0], dict) else {}


def _keys(data: bytes) -> list[str]:
    keys: list[str] = []
    depth = 0
    last = b""
    for match in _TOKEN.finditer(data):
        token = match[0]
        first = token[:1]
        if first == b'"':
            last = token
        elif first in b"[{":
            depth += 1
        elif first in b"]}":
            depth -= 1
            if not depth:
                break
        elif first == b":" and depth == 1 and last:
            keys.append(last[1:-1].decode("utf-8", "replace"))
            last = b""
    return keys


def _element(data: bytes) -> Table:
    inside = data[1:].decode("utf-8", "replace").lstrip()
    try:
        found, _ = json.JSONDecoder().raw_decode(inside)
    except (ValueError, RecursionError):
        return dict.fromkeys(_keys(inside.encode()), None)
    return cast(Table, found) if isinstance(found, dict) else {}
