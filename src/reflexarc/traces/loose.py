"""Values of logs of any version, taken as they come: what is not of its kind is absent.

Numbers arrive as text, null or floats, times in five forms, text with halves of characters in it.
Nothing here raises for what a log holds.
"""

import json
import math
import re
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

Table = dict[str, Any]

MAX_NUMBER = 1e19
"""What is greater is no count, no time and no price, but damage."""


def table(value: object) -> Table:
    """The members of an object; none where it is not one."""
    return cast(Table, value) if isinstance(value, dict) else {}


def listed(value: object) -> list[Any]:
    """The elements of a list; none where it is not one."""
    return cast(list[Any], value) if isinstance(value, list) else []


def tables(value: object) -> list[Table]:
    """The elements of a list that are objects."""
    return [cast(Table, one) for one in listed(value) if isinstance(one, dict)]


def text(value: object) -> str:
    """A string; a whole number as one (ids arrive as both); "" for all else."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < MAX_NUMBER:
        return str(value)
    return ""


def number(value: object) -> float | None:
    """A finite number, also as text; None for all else."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str) and len(value) > 40:
        return None
    if not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) and abs(found) <= MAX_NUMBER else None


def amount(value: object) -> float | None:
    """A number that is not negative: tokens, seconds, money."""
    found = number(value)
    return found if found is not None and found >= 0 else None


def moment(value: object) -> float | None:
    """A time in Unix seconds: ISO text (without a zone read as UTC), or a number of seconds,
    milli-, micro- or nanoseconds, told apart by how great it is (all after 1973)."""
    if isinstance(value, str):
        found = _iso(value)
        if found is not None:
            return found
    found = amount(value)
    if found is None:
        return None
    for above, unit in ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3)):
        if found >= above:
            return found / unit
    return found


def has_zone(value: object) -> bool:
    """Whether a time in text names its zone."""
    return isinstance(value, str) and _ZONE.search(value) is not None


_ZONE = re.compile(r"(?:[zZ]|[+-]\d\d:?\d\d)$")
_FRACTION = re.compile(r"(\.\d{6})\d+")


def _iso(value: str) -> float | None:
    if len(value) > 40:
        return None
    try:
        found = datetime.fromisoformat(_FRACTION.sub(r"\1", value.strip()))
        if found.tzinfo is None:
            found = found.replace(tzinfo=UTC)
        return found.timestamp()
    except (ValueError, OverflowError):
        return None


def decoded(data: bytes | str) -> Any:
    """A JSON value, also one with NaN, halves of characters or bytes that are no text (each of
    those becomes a mark). Raises `ValueError` with the reason where it is none."""
    try:
        return msgspec.json.decode(data)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError):
        pass
    try:
        given = data.decode("utf-8-sig", "replace") if isinstance(data, bytes) else data
        return _whole_characters(json.loads(given))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def encoded(value: object) -> bytes:
    """The JSON text of what `decoded` gave, the same for the same value."""
    try:
        return msgspec.json.encode(value)
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError, TypeError):
        pass
    try:
        return json.dumps(value, separators=(",", ":")).encode()
    except (ValueError, RecursionError, TypeError):
        return b"null"


def _whole_characters(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_whole_characters(one) for one in cast(list[Any], value)]
    if isinstance(value, dict):
        return {
            _whole_characters(key): _whole_characters(one)
            for key, one in cast(Table, value).items()
        }
    return value
