"""What the strict checks share: a value's shape, or a refusal with its path."""

import re
from collections.abc import Collection
from typing import Any, cast

from reflexarc.steps.errors import RequestError

NAMES = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def named(text: str) -> frozenset[str]:
    """Names with blanks between them."""
    return frozenset(text.split())


def refuse(message: str, path: str) -> RequestError:
    return RequestError(f"{path}: {message}" if path else message, param=path or None)


def only(value: Any, allowed: Collection[str], path: str) -> dict[str, Any]:
    """An object with no other members than these."""
    fields = an_object(value, path)
    for name in fields:
        if name not in allowed:
            at = f"{path}.{name}" if path else name
            raise refuse("unknown parameter", at)
    return fields


def an_object(value: Any, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise refuse("must be an object", path)
    return cast("dict[str, Any]", value)


def a_list(value: Any, path: str, *, least: int = 0) -> list[Any]:
    if not isinstance(value, list) or len(cast("list[Any]", value)) < least:
        raise refuse(f"must be a list of at least {least}", path)
    return cast("list[Any]", value)


def a_text(value: Any, path: str, *, least: int = 0, most: int = 1 << 24) -> str:
    if not isinstance(value, str) or not least <= len(value) <= most:
        raise refuse(f"must be a string of {least} to {most} characters", path)
    return value


def fits(value: Any, pattern: re.Pattern[str], path: str) -> str:
    text = a_text(value, path)
    if pattern.fullmatch(text) is None:
        raise refuse(f"must match {pattern.pattern}", path)
    return text


def one_of(value: Any, allowed: Collection[Any], path: str) -> None:
    if isinstance(value, dict | list) or value not in allowed:
        raise refuse(f"must be one of {sorted(map(str, allowed))}", path)


def a_number(value: Any, path: str, least: float, most: float) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not least <= value <= most:
        raise refuse(f"must be a number from {least} to {most}", path)


def a_whole(value: Any, path: str, least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise refuse(f"must be a whole number of at least {least}", path)
    return value


def a_flag(value: Any, path: str) -> None:
    if not isinstance(value, bool):
        raise refuse("must be true or false", path)


def a_schema(value: Any, path: str, *, strict: bool = False) -> None:
    """A JSON schema of an object; a strict one must leave nothing open."""
    schema = an_object(value, path)
    if schema.get("type") != "object":
        raise refuse("schema must be of type object", path)
    if strict:
        _closed(schema, path)


def _closed(schema: dict[str, Any], path: str) -> None:
    properties = cast("dict[str, Any]", schema.get("properties") or {})
    if schema.get("type") == "object":
        if schema.get("additionalProperties") is not False:
            raise refuse("additionalProperties must be false in a strict schema", path)
        if set(properties) != set(cast("list[str]", schema.get("required") or [])):
            raise refuse("every property must be required in a strict schema", path)
    for name, inner in properties.items():
        if isinstance(inner, dict):
            _closed(cast("dict[str, Any]", inner), f"{path}.{name}")
