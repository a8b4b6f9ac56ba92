"""What Gemini's JSON is made of: members in camelCase or snake_case, numbers as text, lists of one.

Readers of proto3 JSON take both spellings of a member; here all become camelCase. What stands in
`args`, `response` and schemas is data, and is not touched.
"""

import json
from typing import Any, cast

from reflexarc.wire.dialects.shapes import fault

NAME = "gemini"


def camel(name: str) -> str:
    if "_" not in name or name.startswith("_"):
        return name
    first, *rest = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def members(value: Any, path: str) -> dict[str, Any]:
    """An object's members under their camelCase names, in order, those that are null left out.
    Raises `RequestError`, also for a member given in both spellings."""
    if not isinstance(value, dict):
        raise fault(path, "must be an object")
    given = cast("dict[str, Any]", value)
    named: dict[str, Any] = {}
    for name, member in given.items():
        spelt = camel(name)
        if spelt in named or (spelt != name and spelt in given):
            raise fault(f"{path}.{spelt}", "is given twice, in two spellings")
        if member is not None:
            named[spelt] = member
    return named


def listed(value: Any, path: str) -> list[Any]:
    """A list; one object alone stands for a list of it, as Google's own reader has it."""
    if isinstance(value, list):
        return cast("list[Any]", value)
    if isinstance(value, dict):
        return [value]
    raise fault(path, "must be a list")


def text_of(value: Any, path: str) -> str:
    if not isinstance(value, str):
        raise fault(path, "must be a string")
    return value


def flag_of(value: Any, path: str) -> bool:
    if not isinstance(value, bool):
        raise fault(path, "must be true or false")
    return value


def number_of(value: Any, path: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise fault(path, "must be a number")
    return value


def whole_of(value: Any, path: str) -> int:
    """A whole number: `40`, `40.0` and `"40"` are one."""
    if isinstance(value, str) and value.removeprefix("-").isdecimal() and len(value) < 20:
        return int(value)
    number = number_of(value, path)
    if number != int(number):
        raise fault(path, "must be a whole number")
    return int(number)


def compact(value: Any) -> str:
    """The text of a JSON value: compact, members in their order."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def nested(more: dict[str, Any], under: str) -> dict[str, Any]:
    """Members kept as `under.name`, under their own names."""
    prefix = under + "."
    return {name[len(prefix) :]: v for name, v in more.items() if name.startswith(prefix)}


def flat(rest: dict[str, Any], under: str) -> dict[str, Any]:
    """Members of an inner object, as they are kept beside those of the outer one."""
    return {f"{under}.{name}": value for name, value in rest.items()}
