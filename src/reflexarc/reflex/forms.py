"""The forms of calls with nested or composed arguments: what of a call is said again and again.

An agent over an HTTP API has one tool and many kinds of calls: `POST /orders/{}/commit` with a
bearer token and `{"confirm": true}`. A *form* is such a call with *holes* where values of the
conversation go. A call is taken apart into its form and the values of its holes, and put together
from them again; both are exact, so a call put together is the call that was taken apart.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from reflexarc.provenance.parts import delimiter, text_parts
from reflexarc.provenance.words import plain_text

MAX_FORMS = 96
"""Of one tool."""

MAX_LEAVES = 40
MAX_HOLES = 24
MAX_LEVELS = 6
"""A path of keys is one longer at most."""

LONGEST_LITERAL = 200
"""Characters of what a form says at one place."""

Path = tuple[str, ...]
Part = str | None


class Leaf(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One leaf of a form's arguments, by its path of keys.

    `parts` empty: the leaf is always `value`. `parts` of one None: a hole of any JSON type.
    Otherwise a text of these parts in this order, a hole where one is None."""

    path: Path
    parts: tuple[Part, ...] = ()
    value: Any = None

    @property
    def holes(self) -> int:
        return self.parts.count(None)


class Form(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Leaves by path, and for each hole in their order the place of its argument among those of
    the tool's holes; `calls` and `tasks` it was seen in."""

    leaves: tuple[Leaf, ...]
    holes: tuple[int, ...]
    calls: int
    tasks: int


def composes(parts: Sequence[Part]) -> bool:
    """Whether a text of these parts is taken apart as it is put together, whatever letters stand in
    its holes."""
    if not parts or tuple(parts) == (None,):
        return True
    text = "".join("x" if part is None else part for part in parts)
    return len(text_parts(text)) == len(parts)


def leaves_of(arguments: Mapping[str, Any]) -> list[tuple[Path, Any]] | None:
    """Paths and values, sorted; lists and empty objects are leaves. None where there are too many
    or they stand too deep."""
    found: list[tuple[Path, Any]] = []
    for path, value in _walk(arguments, ()):
        if len(found) >= MAX_LEAVES or len(path) > MAX_LEVELS:
            return None
        found.append((path, value))
    found.sort(key=lambda pair: pair[0])
    return found


def _walk(value: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, Any]]:
    for key, part in value.items():
        here = (*path, key)
        if isinstance(part, dict) and part and len(here) <= MAX_LEVELS:
            yield from _walk(cast("dict[str, Any]", part), here)
        else:
            yield here, part


def fill(leaves: Sequence[Leaf], values: Sequence[Any]) -> dict[str, Any]:
    """The arguments of a form whose holes have these values."""
    arguments: dict[str, Any] = {}
    remaining = iter(values)
    for leaf in leaves:
        at = arguments
        for key in leaf.path[:-1]:
            at = at.setdefault(key, {})
        at[leaf.path[-1]] = _leaf_value(leaf, remaining)
    return arguments


def _leaf_value(leaf: Leaf, values: Iterator[Any]) -> Any:
    if not leaf.parts:
        return leaf.value
    if leaf.parts == (None,):
        return next(values)
    return "".join([next(values) if part is None else part for part in leaf.parts])


def match(leaves: Sequence[Leaf], found: Sequence[tuple[Path, Any]]) -> list[Any] | None:
    """The values of the holes of a call with these leaves; None where it is of another form."""
    if len(leaves) != len(found):
        return None
    values: list[Any] = []
    for leaf, (path, value) in zip(leaves, found, strict=True):
        if leaf.path != path:
            return None
        if not leaf.parts:
            if not same(leaf.value, value):
                return None
        elif leaf.parts == (None,):
            values.append(value)
        elif not isinstance(value, str) or not _match_text(leaf.parts, value, values):
            return None
    return values


def same(one: Any, other: Any) -> bool:
    """Equality of JSON values: true is no 1."""
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def _match_text(parts: Sequence[Part], text: str, values: list[Any]) -> bool:
    given = text_parts(text)
    if len(given) != len(parts):
        return False
    for part, one in zip(parts, given, strict=True):
        if part is None:
            if delimiter(one):
                return False
            values.append(one)
        elif part != one:
            return False
    return True


def used_names(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(name of a hole, value as text) of everything in a call's nested or composed arguments, as
    any form would name it."""
    for path, value in leaves_of(arguments) or ():
        name = ".".join(path)
        if len(path) > 1:
            yield name, plain_text(value)
        if isinstance(value, str):
            before = ""
            parts = text_parts(value)
            if len(parts) < 2:
                continue
            for part in parts:
                if not delimiter(part):
                    yield f"{name}~{before}", part
                    before = part


def _openness(form: Form) -> tuple[int, int]:
    """How little a form says: whole leaves that are holes, holes in all."""
    whole = sum(leaf.parts == (None,) for leaf in form.leaves)
    return whole, sum(leaf.holes for leaf in form.leaves)


class FormIndex:
    """The forms of one tool, by what is looked up first: the paths of their leaves."""

    def __init__(self, forms: Iterable[Form]) -> None:
        self._by_paths: dict[tuple[Path, ...], list[int]] = {}
        self.forms = tuple(forms)
        # The form that says most comes first: another that also fits says less of the call.
        order = sorted(range(len(self.forms)), key=lambda at: (_openness(self.forms[at]), at))
        for at in order:
            paths = tuple(leaf.path for leaf in self.forms[at].leaves)
            self._by_paths.setdefault(paths, []).append(at)

    def find(self, arguments: Mapping[str, Any]) -> tuple[int, list[Any]] | None:
        """The form of a call and the values of its holes; None where it has none of these."""
        found = leaves_of(arguments)
        return self.find_leaves(found) if found is not None else None

    def find_leaves(self, found: Sequence[tuple[Path, Any]]) -> tuple[int, list[Any]] | None:
        """The same for the sorted leaves of a call."""
        for at in self._by_paths.get(tuple(path for path, _ in found), ()):
            values = match(self.forms[at].leaves, found)
            if values is not None:
                return at, values
        return None
