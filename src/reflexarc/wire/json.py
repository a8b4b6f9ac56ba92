"""Strict JSON: what cannot be read in one way only is refused. Bytes in, Python values out.

Refused: text that is not JSON, a key given twice in one object (readers disagree on which counts),
nesting deeper than a limit, numbers that no double holds, unpaired surrogates, `NaN`.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from reflexarc.steps.errors import MalformedError

MAX_DEPTH = 128
"""Objects and lists inside one another, the outermost counted. Real schemas stay under 20."""

MAX_MEMBERS = 1_000
"""Members of an object that `split_object` takes apart."""
MAX_NAME_CHARS = 100_000
"""Of a member's name there."""

_members: msgspec.json.Decoder[dict[str, msgspec.Raw]] = msgspec.json.Decoder(
    dict[str, msgspec.Raw]
)
_elements: msgspec.json.Decoder[list[msgspec.Raw]] = msgspec.json.Decoder(list[msgspec.Raw])
_key = re.compile(rb'[ \t\r\n]*"((?:[^"\\]|\\.)*)"[ \t\r\n]*:[ \t\r\n]*', re.DOTALL)
_space = re.compile(rb"[ \t\r\n]*")
_escaped_surrogate = re.compile(rb"\\u[dD][89a-fA-F]")


def decode_strict(data: bytes, what: str = "body", max_depth: int = MAX_DEPTH) -> Any:
    """The value of a JSON text. Raises `MalformedError`; `what` names the text in its message."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise MalformedError(f"{what} is not UTF-8 (byte {error.start})") from error
    try:
        value = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_no_constant,
            parse_float=_finite,
        )
    except _TwiceError as error:
        raise MalformedError(f"{what} gives the key {error.key!r} twice in one object") from error
    except RecursionError as error:
        raise MalformedError(f"{what} is nested deeper than {max_depth} levels") from error
    except ValueError as error:
        raise MalformedError(f"{what} is not JSON: {error}") from error
    if data.count(b"[") + data.count(b"{") > max_depth:
        _check_depth(value, what, max_depth)
    if _escaped_surrogate.search(data):
        _check_surrogates(data, what)
    return value


def encode_json(value: Any) -> bytes:
    """The text of a JSON value, compact, members in their order. Whole numbers of any size."""
    try:
        return msgspec.json.encode(value)
    except (OverflowError, ValueError):  # more than 64 bits, half of a surrogate pair
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def split_object(data: bytes | msgspec.Raw, what: str = "body") -> dict[str, msgspec.Raw]:
    """The members of a JSON object, each value as its own bytes, unread.

    Costs two passes over the text and no Python object per value. The values' own content is
    not checked: give each to `decode_strict` or `split_list`. Raises `MalformedError`.
    """
    return split_with_spans(bytes(data), what)[0]


def split_with_spans(
    text: bytes, what: str = "body"
) -> tuple[dict[str, msgspec.Raw], dict[str, tuple[int, int]]]:
    """The same, and where in the text each value begins and ends. Raises `MalformedError`."""
    try:
        members = _members.decode(text)
    except msgspec.ValidationError as error:
        raise MalformedError(f"{what} is not a JSON object") from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise MalformedError(f"{what} is not JSON: {error}") from error
    if len(members) > MAX_MEMBERS:
        raise MalformedError(f"{what} has more than {MAX_MEMBERS} members")
    if max(map(len, members), default=0) > MAX_NAME_CHARS:
        raise MalformedError(f"{what} has a member with a name over {MAX_NAME_CHARS} characters")
    return members, _check_unique(text, members, what)


def split_list(data: bytes | msgspec.Raw, what: str) -> list[msgspec.Raw]:
    """The elements of a JSON list, each as its own bytes, unread. Raises `MalformedError`."""
    try:
        return _elements.decode(data)
    except msgspec.ValidationError as error:
        raise MalformedError(f"{what} is not a JSON list") from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise MalformedError(f"{what} is not JSON: {error}") from error


def _check_unique(
    text: bytes, members: Mapping[str, msgspec.Raw], what: str
) -> dict[str, tuple[int, int]]:
    """Walks the object again, member by member, and gives where each value stands. The decoder
    keeps a key's first place and its last value, so a key given twice either differs at its first
    place or is left over at the end."""
    position = _end_of(_space, text, 0) + 1
    left = len(members)
    spans: dict[str, tuple[int, int]] = {}
    for name, raw in members.items():
        found = _key.match(text, position)
        if found is None or not _same_key(found.group(1), name):
            raise MalformedError(f"{what} gives a key twice in one object, near {name!r}")
        value = bytes(raw)
        end = found.end() + len(value)
        if not text.startswith(value, found.end()):
            raise MalformedError(f"{what} gives the key {name!r} twice in one object")
        spans[name] = (found.end(), end)
        end = _end_of(_space, text, end)
        left -= 1
        if text[end : end + 1] != (b"," if left else b"}"):
            raise MalformedError(f"{what} gives a key twice in one object, near {name!r}")
        position = end + 1
    if not members and text[_end_of(_space, text, position) :][:1] != b"}":
        raise MalformedError(f"{what} is not a JSON object")
    return spans


def _end_of(pattern: re.Pattern[bytes], text: bytes, position: int) -> int:
    found = pattern.match(text, position)
    return found.end() if found else position


def _same_key(written: bytes, name: str) -> bool:
    if b"\\" in written:
        return cast(str, json.loads(b'"' + written + b'"')) == name
    return written == name.encode()


class _TwiceError(ValueError):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise _TwiceError(name)
            seen.add(name)
    return members


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"the number {text[:20]} is out of range")
    return value


def _check_depth(value: Any, what: str, max_depth: int) -> None:
    level: list[Any] = [value]
    for _ in range(max_depth + 1):
        below: list[Any] = []
        containers = False
        for item in level:
            if isinstance(item, dict):
                containers = True
                below.extend(cast(dict[str, Any], item).values())
            elif isinstance(item, list):
                containers = True
                below.extend(cast(list[Any], item))
        if not containers:
            return
        level = below
    raise MalformedError(f"{what} is nested deeper than {max_depth} levels")


def _check_surrogates(data: bytes, what: str) -> None:
    try:
        msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise MalformedError(f"{what} holds half of a surrogate pair") from error
