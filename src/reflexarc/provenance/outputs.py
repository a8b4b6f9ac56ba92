"""The values in a tool's output: leaves of JSON by path, `key: value` lines, ids in plain text."""

import json
import math
import re
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any, cast

import msgspec

from reflexarc.provenance.entries import NO_RECORD, Entry, Origin, Record
from reflexarc.provenance.words import shape
from reflexarc.steps import nests_deeper

_MAX_PARSED_CHARS = 400_000
_MAX_TEXT_CHARS = 6_000
_MAX_ENTRIES = 1_500
_MAX_RECORDS = 200
_MAX_DEPTH = 24
_MAX_RECORD_CHARS = 1_000
_MAX_SCALAR_CHARS = 4_000
_MAX_INTEGER = 2**63
_MAX_LINES = 120
_MAX_TOKENS = 250
_SHORT_TEXT = 60
_EMBEDDED_WITHIN = 200
_WIDE_OBJECT = 8
_SHORT_KEY = 64
_ID_KEY = re.compile(r"\d{3}")
_LINE = re.compile(r"\s*+[-*]?+\s*+([\w ]{2,30}):\s+(\S.{0,120})$")
_TOKEN = re.compile(
    r"https?://[^\s\"'<>)]+|[\w./\-]{0,120}/[\w./\-]+|[\w\-]{0,120}\d[\w\-]*|\w{1,120}\.\w+"
)

Fields = dict[str, Any]


class OutputValues:
    """What one tool output holds: entries, objects by path (for projections)."""

    __slots__ = ("entries", "objects")

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.objects: list[tuple[str, list[Fields], Record]] = []


def output_entries(tool: str, text: str, origin: Origin) -> OutputValues:
    """Index one output. Bounded: 1,500 entries, 200 objects, 24 levels, 400,000 characters."""
    found = OutputValues()
    parsed = _parse(text)
    if parsed is None and len(text) < _SHORT_TEXT:
        parsed = text
    if parsed is None:
        found.entries.extend(_text_entries(tool, text[:_MAX_TEXT_CHARS], origin))
        return found
    _Walker(origin, found).walk(parsed, f"out:{tool}:", 0, NO_RECORD, 0)
    return found


def _parse(text: str) -> Any:
    """The JSON value a text is, or holds after a short preamble; None where there is none."""
    if len(text) > _MAX_PARSED_CHARS:
        return None
    stripped = text.strip()
    if not stripped or nests_deeper(stripped, _MAX_DEPTH):
        return None
    try:
        return msgspec.json.decode(stripped)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        pass
    starts = [at for at in (text.find("{"), text.find("[")) if at >= 0]
    if not starts or min(starts) >= _EMBEDDED_WITHIN:
        return None
    try:
        return _EMBEDDED.raw_decode(text[min(starts) :])[0]
    except (ValueError, RecursionError):
        return None


def _refuse_constant(name: str) -> Any:
    """NaN and Infinity are no JSON: a call that copied one could not be sent as it was judged."""
    raise ValueError(f"{name} is not JSON")


_EMBEDDED = json.JSONDecoder(parse_constant=_refuse_constant)


class _Walker:
    """Paths carry the tool's prefix from the start: an output may hold a thousand leaves."""

    def __init__(self, origin: Origin, found: OutputValues) -> None:
        self.origin = origin
        self.found = found
        self.entries = found.entries

    def walk(self, value: Any, path: str, position: int, record: Record, depth: int) -> None:
        if depth > _MAX_DEPTH or len(self.entries) >= _MAX_ENTRIES:
            return
        if isinstance(value, dict):
            self._object(cast("Fields", value), path, position, depth)
        elif isinstance(value, list):
            self._list(cast("list[Any]", value), path, record, depth)
        elif value is not None:
            self._add(path, value, position, record)
            if isinstance(value, str) and value[:1] in ("{", "["):
                self._text_of_json(value, path, position, depth)

    def _text_of_json(self, text: str, path: str, position: int, depth: int) -> None:
        """JSON within a string, as bodies of responses are often given."""
        if nests_deeper(text, _MAX_DEPTH - depth):
            return
        try:
            inner = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            return
        self.walk(inner, f"{path}~json", position, NO_RECORD, depth + 1)

    @property
    def full(self) -> bool:
        return len(self.entries) >= _MAX_ENTRIES

    def _add(self, path: str, value: Any, position: int, record: Record) -> None:
        if len(self.entries) < _MAX_ENTRIES and not _too_large(value):
            self.entries.append(Entry(path, value, self.origin, position, record))

    def _object(self, fields: Fields, path: str, position: int, depth: int) -> None:
        if len(fields) > _WIDE_OBJECT and _is_lookup_table(fields):
            for at, (key, value) in enumerate(fields.items()):
                if self.full:
                    return
                self._add(f"{path}.{{k}}", key, at, Record(str(value)[:_MAX_RECORD_CHARS]))
                self._add(f"{path}.{{v}}", value, at, Record(f"{key} {key}s"))
            return
        record = Record(partial(_describe, fields))
        if len(self.found.objects) < _MAX_RECORDS:
            self.found.objects.append((path, [fields], record))
        by_id = len(fields) > 1 and all(isinstance(value, dict) for value in fields.values())
        entries, origin = self.entries, self.origin
        for at, (key, value) in enumerate(fields.items()):
            if len(entries) >= _MAX_ENTRIES:
                return
            if by_id or (_names_something(key) if len(key) <= _SHORT_KEY else _ID_KEY.search(key)):
                self._add(f"{path}.{{k}}", key, at, Record(partial(_short_text, value)))
                self.walk(value, f"{path}.{{k}}", at, record, depth + 1)
            elif type(value) is str and value[:1] not in ("{", "[") and depth < _MAX_DEPTH:
                # What most leaves are.
                if len(value) <= _MAX_SCALAR_CHARS:
                    entries.append(Entry(f"{path}.{key}", value, origin, position, record))
            else:
                self.walk(value, f"{path}.{key}", position, record, depth + 1)

    def _list(self, values: list[Any], path: str, record: Record, depth: int) -> None:
        below = f"{path}[*]"
        for at, value in enumerate(values):
            if self.full:
                return
            self.walk(value, below, at, record, depth + 1)
        if not values:
            return
        if all(isinstance(value, dict) for value in values):
            if len(self.found.objects) < _MAX_RECORDS:
                rows = cast("list[Fields]", values)
                whole = Record(partial(_describe_rows, rows))
                self.found.objects.append((f"{path}#all", rows, whole))
        elif not any(isinstance(value, (dict, list)) for value in values):
            self._add(f"{path}#all", values, 0, record)


def _too_large(value: Any) -> bool:
    """Whether a scalar is larger than any argument that is copied."""
    if isinstance(value, str):
        return len(value) > _MAX_SCALAR_CHARS
    if isinstance(value, float):
        return not math.isfinite(value)
    return isinstance(value, int) and abs(value) >= _MAX_INTEGER


def _is_lookup_table(fields: Fields) -> bool:
    """Whether an object maps names to like values (`{"T-Shirt": "9523456873", ...}`)."""
    if len(fields) <= _WIDE_OBJECT:
        return False
    values = list(fields.values())
    if any(isinstance(value, (dict, list)) for value in values):
        return False
    return len({shape(str(value)) for value in values[:64]}) <= 3


def _describe(fields: Fields) -> str:
    """The scalar fields of an object and of its small sub-objects, as text."""
    parts: list[str] = []
    for value in fields.values():
        if isinstance(value, dict):
            nested = cast("Fields", value)
            if len(nested) < _WIDE_OBJECT:
                parts.append(_scalar_text(nested))
        elif not isinstance(value, list):
            parts.append(str(value))
    return " ".join(parts)[:_MAX_RECORD_CHARS]


def _describe_rows(rows: list[Fields]) -> str:
    return " ".join(_describe(row) for row in rows[:8])[:400]


def _scalar_text(value: Any) -> str:
    if isinstance(value, dict):
        fields = cast("Fields", value)
        return " ".join(
            f"{key} {part}" for key, part in fields.items() if not isinstance(part, list)
        )
    return str(value)


def _short_text(value: Any) -> str:
    return _scalar_text(value)[:200]


@lru_cache(maxsize=4096)  # of keys of objects: about a megabyte at most
def _names_something(key: str) -> bool:
    """Whether a key is an id, and so a value itself."""
    return _ID_KEY.search(key) is not None


def _text_entries(tool: str, text: str, origin: Origin) -> Iterator[Entry]:
    for position, line in enumerate(text.splitlines()[:_MAX_LINES]):
        match = _LINE.match(line)
        if match:
            slot = f"kv:{tool}:{match.group(1).strip()}"
            yield Entry(slot, match.group(2).strip().strip("\"'"), origin, position, Record(line))
    for position, match in enumerate(_TOKEN.finditer(text)):
        if position >= _MAX_TOKENS:
            break
        token = match.group().rstrip(".,:")
        kind = (
            shape(token) if len(token) < 25 else ("longurl" if token.startswith("http") else "long")
        )
        yield Entry(f"tx:{tool}:{kind}", token, origin, position)
