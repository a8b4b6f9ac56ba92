"""The parts of composed texts: URLs, `kind:id` references, `Bearer <token>`."""

import re
from collections.abc import Sequence
from functools import lru_cache

from reflexarc.provenance.entries import Entry
from reflexarc.provenance.words import shape

_MAX_PARTED_CHARS = 400
_SHORT = 60
_MAX_PARTS = 40
_PART = re.compile(
    r"[A-Za-z][A-Za-z0-9+.\-]{1,20}://[^\s/?#\"'<>]+"
    r"|\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+\-]\d\d:?\d\d)?)?"
    r"|[^\s/?&=:,;#\"'(){}\[\]<>|]+"
    r"|[\s/?&=:,;#\"'(){}\[\]<>|]"
)
_NAMING = re.compile(r"\d|://")
_VERSION = re.compile(r"[vV]\d{1,2}(?:\.\d{1,2})?")


def text_parts(text: str) -> list[str]:
    """A text in parts that join to the text again: words and ids, delimiters, the `scheme://host`
    of a URL, dates. Only the first part, the whole, where it is long."""
    if len(text) > _MAX_PARTED_CHARS:
        return [text]
    parts = _PART.findall(text)
    return parts if len(parts) <= _MAX_PARTS else [text]


def delimiter(part: str) -> bool:
    """Whether a part only stands between others."""
    return len(part) == 1 and not part.isalnum()


def names_one(part: str) -> bool:
    """Whether a part looks like the name of one thing (`ord-1042`), not of a kind (`orders`)."""
    return any(c.isdigit() for c in part) and "://" not in part and not _VERSION.fullmatch(part)


def part_entries(entry: Entry) -> Sequence[Entry]:
    """The parts of an entry's text that name one thing, in slots of their own: by their place
    where the text is composed (`...response_ref~3`), by their shape where it is prose; the
    `scheme://host` of a URL."""
    text = entry.value
    if not isinstance(text, str) or len(text) > _MAX_PARTED_CHARS:
        return ()
    parts = _found_often(text) if len(text) <= _SHORT else _naming_parts(text)
    if not parts:
        return ()
    return [
        Entry(f"{entry.slot}~{place}", part, entry.origin, entry.position, entry.record)
        for place, part in parts
    ]


def _naming_parts(text: str) -> tuple[tuple[str, str], ...]:
    """The parts of `part_entries`, each after how its slot is named."""
    if text[:1] in ("{", "[") or not _NAMING.search(text):
        return ()
    parts = [part for part in text_parts(text) if not delimiter(part)]
    if len(parts) < 2:
        return ()
    prose = " " in text
    found: list[tuple[str, str]] = []
    for at, part in enumerate(parts):
        if "://" in part:
            found.append(("host", part))
        elif names_one(part):
            found.append((shape(part) if prose else str(at), part))
    return tuple(found)


_found_often = lru_cache(maxsize=16384)(_naming_parts)  # of short texts: a few megabytes at most
