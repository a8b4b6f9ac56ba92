"""What made two pieces of a prompt, which stand at the same place, differ."""

import re
from typing import Any, Literal, NamedTuple, cast

from reflexarc.context.differences import Difference, difference, same_bytes
from reflexarc.context.pictures import may_be_same, without_pictures
from reflexarc.context.volatile import changed
from reflexarc.steps.canonical import canonical_json
from reflexarc.steps.forms import blocks, parsed, read_arguments, unmarked, without_ids
from reflexarc.steps.prompt import Piece

Cause = Literal[
    "clock",
    "id",
    "tools_order",
    "tools_schema",
    "tools_added",
    "tools_removed",
    "system_changed",
    "history_edited",
    "history_truncated",
    "keys_reordered",
    "reencoded",
    "image_reencoded",
    "ids_rewritten",
    "model",
    "thinking",
    "tool_choice",
    "settings",
    "deployment",
    "expired",
    "unknown",
]
"""`reencoded`: the same values in other bytes (numbers, white space). `deployment` and `expired`:
the prompt is what it was, its cache is elsewhere or gone."""

_MARKS = re.compile(rb"cache_control|cachePoint")
_cut = re.compile(
    r"truncat|omitted|cleared|removed|elided|compact|summar|shortened|\.\.\.|…", re.IGNORECASE
)
_MOST_KEPT = 0.5


class Change(NamedTuple):
    """`cause` None: another content, which only its place gives a name. `first`: where."""

    cause: Cause | None
    first: Difference


def value_of(piece: Piece) -> Any:
    """Its JSON value; its text where it holds no JSON."""
    if not piece.plain:
        try:
            return parsed(piece.raw)
        except ValueError:
            pass
    return piece.raw.decode("utf-8", "replace")


def is_only_mark(piece: Piece) -> bool:
    """Whether a piece is a mark for a cache, of which no model reads anything."""
    if piece.plain or len(piece.raw) > 200 or _MARKS.search(piece.raw) is None:
        return False
    return unmarked([value_of(piece)]) == []


def change(was: Piece, now: Piece) -> Change | None:
    """None where a model reads the same in both."""
    if was.raw == now.raw:
        return None
    old, new = value_of(was), value_of(now)
    first = difference(old, new)
    if first is None:
        return None
    if isinstance(old, str) and isinstance(new, str):
        return Change(_volatile(first), first)  # two texts have no other forms
    if _holds_other_pictures(old, new):
        return Change(_of_pictures(old, new), first)
    return Change(_encoding(old, new) or _volatile(first), first)


def is_rewritten(was: Piece, now: Piece) -> bool:
    """Whether two pieces of other bytes, without marks, hold the same values in the same order: no
    model reads a difference, but a cache that goes by bytes does."""
    if was.raw == now.raw or _MARKS.search(was.raw) or _MARKS.search(now.raw):
        return False
    old, new = value_of(was), value_of(now)
    return old == new and difference(old, new, data=True) is None


def is_cut(first: Difference) -> bool:
    """Whether a text of the history was cut or replaced by a word that it was."""
    was, now = _text(first.was), _text(first.now)
    if now is None:
        return was is not None
    if was is None or len(now) >= len(was) * _MOST_KEPT:
        return False
    return _cut.search(now) is not None or same_bytes(was, now) > len(now.encode()) / 2


def _encoding(old: Any, new: Any) -> Cause | None:
    """The cause where both mean the same, in an other form."""
    a, b = read_arguments(blocks(unmarked(old))), read_arguments(blocks(unmarked(new)))
    if canonical_json(a) == canonical_json(b):
        return "reencoded" if _ordered(a) == _ordered(b) else "keys_reordered"
    if canonical_json(without_ids(a)) == canonical_json(without_ids(b)):
        return "ids_rewritten"
    return None


def _holds_other_pictures(old: Any, new: Any) -> bool:
    was, now = without_pictures(old)[1], without_pictures(new)[1]
    return bool(was and now) and was != now


def _of_pictures(old: Any, new: Any) -> Cause | None:
    a, was = without_pictures(unmarked(old))
    b, now = without_pictures(unmarked(new))
    if canonical_json(a) == canonical_json(b) and len(was) == len(now):
        moved = sorted(was) == sorted(now)
        same = moved or all(may_be_same(x, y) for x, y in zip(was, now, strict=True))
        return "image_reencoded" if same else None
    return None if sorted(was) != sorted(now) else _moved(a, b)


def _moved(old: Any, new: Any) -> Cause | None:
    """Whether the same blocks stand in another order."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return None
    a, b = cast("dict[str, Any]", old).get("content"), cast("dict[str, Any]", new).get("content")
    if not isinstance(a, list) or not isinstance(b, list):
        return None
    was = sorted(map(canonical_json, cast("list[Any]", a)))
    now = sorted(map(canonical_json, cast("list[Any]", b)))
    return "image_reencoded" if was == now else None


def _volatile(first: Difference) -> Cause | None:
    was, now = first.was, first.now
    if isinstance(was, bool) or isinstance(now, bool):
        return None
    if isinstance(was, int | float) and isinstance(now, int | float):
        return changed(f"{first.steps[-1:]} {was}", f"{first.steps[-1:]} {now}")
    if not isinstance(was, str) or not isinstance(now, str):
        return None
    return changed(was, now)


def _ordered(value: Any) -> str:
    """Canonical but for the order of keys."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value).items()
        return "{" + ",".join(f"{name!r}:{_ordered(one)}" for name, one in members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_ordered(one) for one in cast("list[Any]", value)) + "]"
    return canonical_json(value)


def _text(value: Any) -> str | None:
    """A text, or that of a block or a list of them."""
    if isinstance(value, str) or value is None:
        return value
    return canonical_json(value)
