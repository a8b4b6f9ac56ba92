"""Where two pieces of a prompt first differ: down to the member, and the byte within it."""

import re
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import msgspec

from reflexarc.steps.forms import DATA, MARKS, is_mark

Steps = tuple[str | int, ...]
"""From a piece's value down: names of members, places in lists."""

_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_elements = msgspec.json.Decoder(list[msgspec.Raw])
_key = re.compile(rb'[ \t\r\n,]*"((?:[^"\\]|\\.)*)"[ \t\r\n]*:[ \t\r\n]*', re.DOTALL)
_between = re.compile(rb"[ \t\r\n,]*")
_written = re.compile(rb"[^\\]+|\\u[0-9a-fA-F]{4}|\\.", re.DOTALL)


class Difference(NamedTuple):
    """`byte` within the text of the member, in UTF-8; 0 where it is no text in both. `was` and
    `now` are the values there, None where there is none."""

    steps: Steps
    byte: int
    was: Any
    now: Any


def path_of(path: str, steps: Steps) -> str:
    """The JSON path of what is so far down in a piece."""
    for step in steps:
        path += f"[{step}]" if isinstance(step, int) else f".{step}"
    return path


def same_bytes(was: str, now: str) -> int:
    """How many bytes of UTF-8 two texts begin with alike; a character is not cut."""
    low, high = 0, min(len(was), len(now))
    while low < high:  # the longest common beginning
        middle = (low + high + 1) // 2
        if was[low:middle] == now[low:middle]:
            low = middle
        else:
            high = middle - 1
    return len(was[:low].encode("utf-8", "surrogatepass"))


def difference(was: Any, now: Any, steps: Steps = (), *, data: bool = False) -> Difference | None:
    """The first, in the order in which they stand; None where a model reads the same. Marks for
    caches and null members do not count outside of `data`, which is a tool's own."""
    if isinstance(was, dict) and isinstance(now, dict):
        return _of_objects(cast("dict[str, Any]", was), cast("dict[str, Any]", now), steps, data)
    if isinstance(was, list) and isinstance(now, list):
        return _of_lists(cast("list[Any]", was), cast("list[Any]", now), steps, data)
    if isinstance(was, str) and isinstance(now, str):
        return None if was == now else Difference(steps, same_bytes(was, now), was, now)
    if not data:
        if isinstance(was, str) and isinstance(now, dict):  # a system prompt, once as a block
            return difference({"type": "text", "text": was}, now, steps)
        if isinstance(was, dict) and isinstance(now, str):
            return difference(was, {"type": "text", "text": now}, steps)
        if isinstance(was, str) and isinstance(now, list):
            return difference([was], cast("list[Any]", now), steps)
        if isinstance(was, list) and isinstance(now, str):
            return difference(cast("list[Any]", was), [now], steps)
    return None if _written_as(was) == _written_as(now) else Difference(steps, 0, was, now)


def grew(was: Any, now: Any) -> bool:
    """Whether `now` is `was` and more at its end: a text, blocks after its last, new members."""
    if isinstance(was, str) and isinstance(now, str):
        return now.startswith(was)
    if isinstance(was, str) and isinstance(now, list) and now:
        return grew(was, _text_of(cast("list[Any]", now)[0]))
    if isinstance(was, list) and isinstance(now, list):
        old = [one for one in cast("list[Any]", was) if not is_mark(one)]
        new = [one for one in cast("list[Any]", now) if not is_mark(one)]
        if len(old) > len(new):
            return False
        *whole, last = old or [None]
        same = all(difference(a, b) is None for a, b in zip(whole, new, strict=False))
        return same and (last is None or grew(last, new[len(whole)]))
    if isinstance(was, dict) and isinstance(now, dict):
        old_members, new_members = cast("dict[str, Any]", was), cast("dict[str, Any]", now)
        for name in _names(old_members, data=False):
            if new_members.get(name) is None:
                return False
            a, b = old_members[name], new_members[name]
            if name in DATA:
                if difference(a, b, data=True) is not None:
                    return False
            elif difference(a, b) is not None and not grew(a, b):
                return False
        return True
    return difference(was, now) is None


def offset_in(raw: bytes, steps: Steps, byte: int) -> int:
    """At which byte of a piece's JSON text that place is; as far down as it can be followed."""
    at, text = 0, raw
    for step in steps:
        found = _member(text, step) if isinstance(step, str) else _element(text, step)
        if found is None:
            return at
        start, text = found
        at += start
    if not text.startswith(b'"'):
        return at
    for match in _written.finditer(text, 1):
        written = match.group()
        is_escape = written.startswith(b"\\")
        size = _size_of_escape(written) if is_escape else len(written)
        if size > byte:
            return at + match.start() + (0 if is_escape else byte)
        byte -= size
    return at + len(text)


def _of_objects(
    was: dict[str, Any], now: dict[str, Any], steps: Steps, data: bool
) -> Difference | None:
    old, new = _names(was, data=data), _names(now, data=data)
    for at, name in enumerate(new):
        if at >= len(old) or old[at] != name:
            if name in was and set(old) == set(new):
                return Difference(steps, 0, was, now)  # only their order
            gone = at < len(old) and old[at] not in now
            place = old[at] if gone else name
            return Difference((*steps, place), 0, was.get(place), now.get(place))
        inner = data or name in DATA
        found = difference(was[name], now[name], (*steps, name), data=inner)
        if found is not None:
            return found
    if len(old) > len(new):
        place = old[len(new)]
        return Difference((*steps, place), 0, was[place], None)
    return None


def _of_lists(was: list[Any], now: list[Any], steps: Steps, data: bool) -> Difference | None:
    keep: Callable[[Any], bool] = (lambda _: True) if data else (lambda one: not is_mark(one))
    old = [(at, one) for at, one in enumerate(was) if keep(one)]
    new = [(at, one) for at, one in enumerate(now) if keep(one)]
    for (_, a), (at, b) in zip(old, new, strict=False):
        found = difference(a, b, (*steps, at), data=data)
        if found is not None:
            return found
    if len(old) == len(new):
        return None
    if len(old) < len(new):
        at, one = new[len(old)]
        return Difference((*steps, at), 0, None, one)
    at, one = old[len(new)]
    return Difference((*steps, at), 0, one, None)


def _written_as(value: Any) -> str:
    """`1`, `1.0` and `true` are three things to whoever reads the text."""
    return repr(value)


def _names(members: dict[str, Any], *, data: bool) -> list[str]:
    if data:
        return list(members)
    return [name for name, one in members.items() if one is not None and name not in MARKS]


def _text_of(block: Any) -> Any:
    return cast("dict[str, Any]", block).get("text") if isinstance(block, dict) else block


def _member(text: bytes, name: str) -> tuple[int, bytes] | None:
    """Where the value of an object's member begins, and the value."""
    try:
        members = _members.decode(text)
    except msgspec.MsgspecError:
        return None
    position = text.index(b"{") + 1
    for known, raw in members.items():
        value, key = bytes(raw), _key.match(text, position)
        if key is None:
            return None
        if known == name:
            return key.end(), value
        position = key.end() + len(value)
    return None


def _element(text: bytes, index: int) -> tuple[int, bytes] | None:
    try:
        elements = _elements.decode(text)
    except msgspec.MsgspecError:
        return None
    position = text.index(b"[") + 1
    for place, raw in enumerate(elements):
        value, between = bytes(raw), _between.match(text, position)
        position = between.end() if between else position
        if place == index:
            return position, value
        position += len(value)
    return None


def _size_of_escape(escape: bytes) -> int:
    """Bytes in UTF-8 of the character that it stands for; half a pair is half of four."""
    if not escape.startswith(b"\\u"):
        return 1
    code = int(escape[2:], 16)
    if 0xD800 <= code < 0xE000:
        return 2
    return 1 if code < 0x80 else 2 if code < 0x800 else 3
