"""Typed spans of messages: what a user, an assistant or a system prompt mentions by name."""

import re
from collections.abc import Iterator

from reflexarc.provenance.entries import Entry, Origin
from reflexarc.provenance.words import shape, tokens

_MAX_TOKENS = 400
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
    years = _YEAR.findall(text)
    return years[-1] if years else otherwise


def user_entries(text: str, origin: Origin, year: str) -> Iterator[Entry]:
    """Tokens by shape, with the re-spellings users make necessary, dates and segments."""
    text = text[:_MAX_USER_CHARS]
    for position, token in enumerate(tokens(text, _MAX_TOKENS)):
        kind = shape(token)
        yield Entry(f"usr:{kind}", token, origin, position)
        if _BARE_NUMBER.match(token):
            yield Entry("usr:#", f"#{token}", origin, position)
        if kind == "a":
            yield Entry("usr:title", token.title(), origin, position)
        elif kind == "Aa":
            yield Entry("usr:lower", token.lower(), origin, position)
        if "_" in token:
            for part in token.split("_"):
                yield Entry("usr:part", part.title(), origin, position)
    yield from _dates(text, origin, year, "usr:date")
    for position, match in enumerate(_SEGMENT.finditer(text)):
        if position >= _MAX_SEGMENTS:
            break
        segment = (match.group(1) or match.group(2)).strip()
        if " " in segment or match.group(1):
            yield Entry(
                "usr:quoted" if match.group(1) else "usr:segment", segment, origin, position
            )


def assistant_entries(text: str, origin: Origin, year: str) -> Iterator[Entry]:
    """What System 2 named in a message: it often calls with it next, once the user agreed."""
    text = text[:_MAX_ASSISTANT_CHARS]
    for position, token in enumerate(tokens(text, _MAX_TOKENS)):
        yield Entry(f"ast:{shape(token)}", token, origin, position)
    yield from _dates(text, origin, year, "ast:date")


def system_entries(text: str, origin: Origin) -> Iterator[Entry]:
    """Names a system prompt defines: `key: value` lines, quoted terms, ids. Not its prose."""
    text = text[:_MAX_SYSTEM_CHARS]
    for position, match in enumerate(_NAMED.finditer(text)):
        if position >= _MAX_TOKENS:
            break
        yield Entry(
            f"sys:{match.group(1).strip().lower()}", match.group(2).strip(), origin, position
        )
    for position, match in enumerate(_QUOTED.finditer(text)):
        if position >= _MAX_TOKENS:
            break
        yield Entry("sys:quoted", match.group(1), origin, position)


def _dates(text: str, origin: Origin, year: str, slot: str) -> Iterator[Entry]:
    if not year:
        return  # nobody named one, and an invented year would be an invented date
    for position, match in enumerate(_DATE.finditer(text.lower())):
        if position >= _MAX_DATES:
            break
        month, day = (
            (match.group(1), match.group(2)) if match.group(1) else (match.group(4), match.group(3))
        )
        yield Entry(slot, f"{year}-{_MONTHS.index(month) + 1:02d}-{int(day):02d}", origin, position)
