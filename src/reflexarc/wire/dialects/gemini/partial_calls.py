"""Calls whose arguments come bit by bit: values, each with the JSON path where it stands.

`$.place.names[0]` names a member of a member's list; text may come in several bits.
"""

import re
from typing import Any, cast

import msgspec

from reflexarc.wire.dialects.gemini.parts_in import read_part
from reflexarc.wire.dialects.gemini.shapes import NAME, compact, members
from reflexarc.wire.dialects.shapes import fault
from reflexarc.wire.turns import Call

_step = re.compile(
    r"\.([^.\[\]]+)|\[(\d{1,6})\]|\['((?:[^'\\]|\\.)*)'\]|\[\"((?:[^\"\\]|\\.)*)\"\]"
)
MAX_PLACES = 10_000
"""A longer list is no argument."""


class PartialCall:
    """The call that is coming in bits, if any. The bits have its name once, and end with one that
    does not say that more will follow."""

    def __init__(self) -> None:
        self._call: Call | None = None
        self._args = PartialArgs({})

    def take(self, value: Any) -> tuple[bool, Call | None]:
        """Whether a part is a bit of a call; and the call, where that was its last. Raises
        `RequestError`."""
        if not isinstance(value, dict) or not ("functionCall" in value or "function_call" in value):
            return False, None
        outer = members(value, "part")
        held = outer.get("functionCall")
        if held is None:
            return False, None
        given = members(held, "functionCall")
        goes_on = given.pop("willContinue", False) is True
        bits = given.pop("partialArgs", [])
        if self._call is None:
            if not goes_on and not bits:
                return False, None
            self._begin(outer, given)
        elif isinstance(signature := outer.get("thoughtSignature"), str):
            self._call = msgspec.structs.replace(self._call, signature=signature, origin=NAME)
        for bit in cast("list[Any]", bits) if isinstance(bits, list) else [bits]:
            if not self._args.take(bit):
                raise fault("functionCall.partialArgs", "cannot be read")
        return True, None if goes_on else self.end()

    def _begin(self, outer: dict[str, Any], given: dict[str, Any]) -> None:
        args = given.pop("args", {})
        part = read_part({**outer, "functionCall": given}, "part")[0]
        if not isinstance(part, Call) or not isinstance(args, dict):
            raise fault("functionCall.args", "must be an object")
        self._call, self._args = part, PartialArgs(cast("dict[str, Any]", args))

    def end(self) -> Call | None:
        """The call as far as it came."""
        call, self._call = self._call, None
        if call is None:
            return None
        return msgspec.structs.replace(call, arguments=compact(self._args.args))


class PartialArgs:
    """The arguments so far, in the order they began."""

    def __init__(self, args: dict[str, Any]) -> None:
        self.args = dict(args)

    def take(self, bit: Any) -> bool:
        """False for what is no bit of an argument."""
        if not isinstance(bit, dict):
            return False
        given = cast("dict[str, Any]", bit)
        path = given.get("jsonPath", given.get("json_path"))
        steps = _steps(path) if isinstance(path, str) else None
        if not steps:
            return False
        for name in ("stringValue", "numberValue", "boolValue", "nullValue"):
            if name in given:
                value = None if name == "nullValue" else given[name]
                return _put(self.args, steps, value)
        return True


def _steps(path: str) -> list[str | int] | None:
    position = 1 if path.startswith("$") else 0
    steps: list[str | int] = []
    while position < len(path):
        found = _step.match(path, position)
        if found is None:
            return None
        name, place, single, double = found.groups()
        if place is not None:
            steps.append(int(place))
        else:
            steps.append(name or re.sub(r"\\(.)", r"\1", single or double or ""))
        position = found.end()
    return steps


def _put(args: dict[str, Any], steps: list[str | int], value: Any) -> bool:
    inside: Any = args
    for at, step in enumerate(steps):
        last = at + 1 == len(steps)
        empty: Any = value if last else ([] if isinstance(steps[at + 1], int) else {})
        before = _member(inside, step)
        if before is _NONE or (before is None and not last):
            if not _set(inside, step, empty):
                return False
            inside = empty
        elif last:
            grown = before + value if isinstance(before, str) and isinstance(value, str) else value
            return _set(inside, step, grown)
        else:
            inside = before
    return True


_NONE = object()


def _member(inside: Any, step: str | int) -> Any:
    if isinstance(inside, dict) and isinstance(step, str):
        return cast("dict[str, Any]", inside).get(step, _NONE)
    if isinstance(inside, list) and isinstance(step, int):
        listed = cast("list[Any]", inside)
        return listed[step] if step < len(listed) else _NONE
    return _NONE


def _set(inside: Any, step: str | int, value: Any) -> bool:
    if isinstance(inside, dict) and isinstance(step, str):
        inside[step] = value
        return True
    if isinstance(inside, list) and isinstance(step, int) and step < MAX_PLACES:
        listed = cast("list[Any]", inside)
        listed += [None] * (step + 1 - len(listed))
        listed[step] = value
        return True
    return False
