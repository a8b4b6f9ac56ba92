"""Typed spans of messages: what a user, an assistant or a system prompt mentions by name."""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

from reflexarc.provenance.entries import Entry, Origin
from reflexarc.provenance.runs import labelled, placed
from reflexarc.provenance.words import shape, tokens

_MAX_TOKENS = 400
_LONGEST_KEPT = 40
_MAX_USER_CHARS = 100_000
_MAX_ASSISTANT_CHARS = 3000
_MAX_SYSTEM_CHARS = 16_000
_MAX_SEGMENTS = 40
_MAX_DATES = 20
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = "|".join(_MONTHS)
_DATE = re.compile(
    rf"\b(?:({_MONTH})[a-z]*\.? (\d{{1,2}})(?:st|nd|rd|th)?\b"
    rf"|(\d{{1,2}})(?:st|nd|rd|th)? (?:of )?({_MONTH})[a-z]*\b)"
)
_YEAR = re.compile(r"\b(20\d\d)-\d\d")
_BARE_NUMBER = re.compile(r"^[A-Z]?\d{4,}$")
_SEGMENT = re.compile(
    r"[\"“'‘]([^\"”’]{2,60}?)[\"”'’](?!\w)|(?:^|[,:;\n]|\bis\b|\bto\b)\s{0,8}([^,:;\n.!?]{3,50})"
)
_QUOTED = re.compile(r"[\"“'`]([^\"”'`\n]{2,60})[\"”'`]")
_NAMED = re.compile(r"^[ \t\-*]{0,40}([A-Za-z][\w ]{1,30}):\s{0,8}(\S.{0,80})$", re.MULTILINE)


def latest_year(text: str, otherwise: str) -> str:
    """The last year a text names in a date, e.g. the policy's "today is 2024-05-15"."""
    # A literal is found many times faster than a pattern: most texts are long and name no year.
    at = text.find("20")
    while at >= 0:
        if match := _YEAR.match(text, at):
            otherwise = match.group(1)
        at = text.find("20", match.end() if match else at + 1)
    return otherwise


def user_entries(text: str, origin: Origin, year: str) -> Iterator[Entry]:
    """Tokens by shape, with the re-spellings users make necessary, dates and segments."""
    text = text[:_MAX_USER_CHARS]
    for position, token in enumerate(tokens(text, _MAX_TOKENS)):
        for slot, value in _spellings(token) if len(token) <= _LONGEST_KEPT else _respelt(token):
            yield Entry(slot, value, origin, position)
    yield from _dates(text, origin, year, "usr:date")
    for position, match in enumerate(_SEGMENT.finditer(text)):
        if position >= _MAX_SEGMENTS:
            break
        segment = (match.group(1) or match.group(2)).strip()
        if " " in segment or match.group(1):
            yield Entry(
                "usr:quoted" if match.group(1) else "usr:segment", segment, origin, position
            )


def _respelt(token: str) -> tuple[tuple[str, str], ...]:
    """The slots a user's token stands in, and how it is spelt there."""
    kind = shape(token)
    found = [(f"usr:{kind}", token)]
    if _BARE_NUMBER.match(token):
        found.append(("usr:#", f"#{token}"))
    if kind == "a":
        found.append(("usr:title", token.title()))
    elif kind == "Aa":
        found.append(("usr:lower", token.lower()))
    if "_" in token:
        found += [("usr:part", part.title()) for part in token.split("_")]
    return tuple(found)


@lru_cache(maxsize=8192)  # of short tokens, as below
def _spoken(token: str) -> str:
    return f"ast:{shape(token)}"


_spellings = lru_cache(maxsize=8192)(_respelt)  # of short tokens: a few megabytes at most


def assistant_entries(text: str, origin: Origin, year: str) -> Iterator[Entry]:
    """What System 2 named in a message: it often calls with it next, once the user agreed."""
    text = text[:_MAX_ASSISTANT_CHARS]
    for position, token in enumerate(tokens(text, _MAX_TOKENS)):
        slot = _spoken(token) if len(token) <= _LONGEST_KEPT else "ast:long"
        yield Entry(slot, token, origin, position)
    yield from _dates(text, origin, year, "ast:date")
    for position, one in enumerate(placed(text)):
        yield Entry(f"ast:{one.place}", one.value, origin, position)
    for position, one in enumerate(labelled(text)):
        yield Entry(f"kv:assistant:{one.place}", one.value, origin, position)


def system_entries(text: str, origin: Origin) -> Iterator[Entry]:
    """Names a system prompt defines: `key: value` lines, quoted terms, ids. Not its prose."""
    for slot, value, position in _defined(text[:_MAX_SYSTEM_CHARS]):
        yield Entry(slot, value, origin, position)


@lru_cache(maxsize=32)  # of what every conversation begins with
def _defined(text: str) -> tuple[tuple[str, str, int], ...]:
    """(slot, value, position) of each name."""
    named = islice(enumerate(_NAMED.finditer(text)), _MAX_TOKENS)
    quoted = islice(enumerate(_QUOTED.finditer(text)), _MAX_TOKENS)
    return (
        *((f"sys:{one.group(1).strip().lower()}", one.group(2).strip(), at) for at, one in named),
        *(("sys:quoted", one.group(1), at) for at, one in quoted),
    )


def _dates(text: str, origin: Origin, year: str, slot: str) -> Iterator[Entry]:
    if not year:
        return  # nobody named one, and an invented year would be an invented date
    lower = text.lower()
    if not any(month in lower for month in _MONTHS):
        return
    for position, match in enumerate(_DATE.finditer(lower)):
        if position >= _MAX_DATES:
            break
        month, day = (
            (match.group(1), match.group(2)) if match.group(1) else (match.group(4), match.group(3))
        )
        yield Entry(slot, f"{year}-{_MONTHS.index(month) + 1:02d}-{int(day):02d}", origin, position)
