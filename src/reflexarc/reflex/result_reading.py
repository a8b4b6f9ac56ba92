"""What a context reads of one message, once: values with their parts, and what came of a call."""

import re
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from sys import intern
from typing import Any

from reflexarc.provenance import Entry, Origin, Record, output_entries, part_entries
from reflexarc.provenance.words import word_set

_ERROR = re.compile(r"rror|not found|invalid|failed|denied", re.IGNORECASE)
_KEYS = re.compile(r'"(\w+)":')
_STATUS = re.compile(r'status"?: ?"?([\w ]+)')
_NAMES = re.compile(r'"name": ?"([^"]{3,40})"')
_CODE = re.compile(r'"status(?:_?[cC]ode)?"\s{0,2}:\s{0,2}"?([1-5]\d\d)\b')
_FAULT = re.compile(
    r'"(?:error|code|error_?[cC]ode|reason)\\{0,2}"\s{0,2}:\s{0,2}\\{0,2}"([\w.\- ]{2,40})'
)
_MAX_PARTS = 1_500


class Objects:
    """Objects of one tool output under one path: a single one, or all of a list."""

    __slots__ = ("cuts", "origin", "path", "record", "rows")

    def __init__(
        self, path: str, rows: list[dict[str, Any]], record: Record, origin: Origin
    ) -> None:
        self.path = path
        self.rows = rows
        self.record = record
        self.origin = origin
        # What candidates were made of it, by the keys they take.
        self.cuts: dict[tuple[str, ...], tuple[list[dict[str, Any]], tuple[str, str]] | None] = {}


class Result:
    """What a tool's result says. `failed`, `outcome`: what came of the call; `words` of its
    beginning; `names` in it, and how many of them, and of its words, users `mentioned`; `found`:
    its values, `entries` those that count, with their parts."""

    __slots__ = (
        "entries", "failed", "found", "names", "names_mentioned", "objects", "outcome", "words",
        "words_mentioned",
    )  # fmt: skip

    def __init__(self, tool: str, text: str, origin: Origin, said: AbstractSet[str]) -> None:
        """`said`: the words of users so far."""
        self.failed = _ERROR.search(text[:80]) is not None
        self.outcome = _outcome(text)
        statuses = {f"{tool}|{status}" for status in _STATUS.findall(text[:4000])}
        self.words = word_set(text[:300]) | statuses | set(_KEYS.findall(text[:4000])[:60])
        names = [word_set(name) for name in _NAMES.findall(text[:20_000])]
        self.names = len(names)
        self.names_mentioned = sum(bool(name) and name <= said for name in names)
        mentioned = said & word_set(text[:3000])
        self.words_mentioned = sum([len(word) > 3 for word in mentioned])
        values = output_entries(tool, text, origin)
        self.found = values.entries
        whole = len(self.found) == 1 and self.found[0].text == text.strip()
        # A sentence that says what went wrong is no value.
        self.entries = [] if self.failed and whole else with_parts(self.found)
        self.objects = [
            Objects(path, rows, record, origin) for path, rows, record in values.objects
        ]


def with_parts(entries: Iterable[Entry]) -> list[Entry]:
    """Entries, each before the parts of its text; of those 1,500 at most."""
    every: list[Entry] = []
    parted = 0
    for entry in entries:
        entry.slot = intern(entry.slot)  # few names of many entries: half of what they take
        every.append(entry)
        value = entry.value
        # Words and numbers are one part each: they have no parts of their own.
        if type(value) is str and parted < _MAX_PARTS and not value.isalnum():
            for part in part_entries(entry):
                part.slot = intern(part.slot)
                every.append(part)
                parted += 1
    return every


def _outcome(text: str) -> str:
    """What came of a call, in short: an HTTP status and the name of an error, where there are."""
    head = text[:2000]
    code, fault = _CODE.search(head), _FAULT.search(head)
    return f"{code.group(1) if code else ''} {fault.group(1) if fault else ''}"
