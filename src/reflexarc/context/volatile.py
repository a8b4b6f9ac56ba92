"""What in a text changes by itself from turn to turn: clocks, and ids and counters. By its look
alone: nothing here knows what a date is for."""

import re
from typing import Literal

Kind = Literal["clock", "id"]

_MONTHS = (
    "Jan(?:uary|uar|eiro)?|Feb(?:ruary|ruar)?|Mar(?:ch|ço|zo)?|März|Apr(?:il)?|Ma[iy]|Jun[ei]?"
    "|Jul[iy]?|Aug(?:ust)?|Sept?(?:ember)?|O[ck]t(?:ober)?|Nov(?:ember)?|De[cz](?:ember)?"
    "|janvier|février|mars|avril|mai|juin|juillet|août|septembre|octobre|novembre|décembre"
    "|enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre"
    "|gennaio|febbraio|aprile|maggio|giugno|luglio|settembre|ottobre|dicembre"
)
_DAYS = (
    "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
    "|(?:Mon|Diens|Donners|Frei|Sams|Sonn)tag|Mittwoch"
    "|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche"
    "|lunes|martes|miércoles|jueves|viernes|sábado|domingo"
)
_ZONE = r"(?:\s?(?:Z|UTC|GMT|[A-Z]{2,4}T)\b|\s?(?:UTC|GMT)?[+-]\d{2}:?\d{2})"
_SECONDS = r"(?:[:-]?\d{2}(?:[.,]\d+)?)?"
_TIME = rf"\d{{1,2}}:\d{{2}}(?::\d{{2}}(?:[.,]\d+)?)?(?:\s?[AaPp]\.?[Mm]\b\.?)?{_ZONE}?"
_CLOCK = "|".join(
    (
        rf"\d{{4}}-\d{{2}}-\d{{2}}(?:[T _]\d{{2}}[:-]?\d{{2}}{_SECONDS}{_ZONE}?)?",
        r"\d{8}T\d{6}Z?",
        r"\d{4}年\d{1,2}月\d{1,2}日",
        r"\d{1,2}/\d{1,2}/\d{2,4}|\d{4}/\d{1,2}/\d{1,2}|\d{1,2}\.\s?\d{1,2}\.\s?(?:19|20)\d{2}",
        rf"(?:{_MONTHS})\.?\s+\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s+\d{{4}})?(?!\d)",
        rf"\d{{1,2}}(?:st|nd|rd|th|\.)?\s+(?:of\s+|de\s+)?(?:{_MONTHS})\b\.?(?:,?\s+(?:de\s+)?\d{{4}})?",
        rf"(?:{_MONTHS})\.?\s+\d{{4}}",
        rf"(?:{_DAYS})\b",
        _TIME,
        r"\d{1,2}\s?[AaPp]\.?[Mm]\b",
        r"1[4-9]\d{8}(?:\d{3}|\d{6}|\d{9})?(?:\.\d+)?(?!\w)",
        r"\d+(?:\.\d+)?\s(?:milliseconds?|seconds?|minutes?|hours?|days?|weeks?|months?|years?)\b",
        r"(?:[Mm]orning|[Aa]fternoon|[Ee]vening|[Nn]ight)\b",
    )
)
_ID = "|".join(
    (
        r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}",
        r"(?:[A-Za-z0-9]{1,24}[_-]){1,5}(?=[A-Za-z]{0,80}\d)[A-Za-z0-9]{4,80}(?!\w)",
        r"(?=[A-Za-z]{0,80}\d)(?=\d{0,80}[A-Za-z])[A-Za-z0-9]{8,80}(?!\w)",
        r"\d+(?:[.,]\d+)*",
    )
)
_volatile = re.compile(rf"(?<![A-Za-z0-9])(?:(?P<clock>{_CLOCK})|(?P<id>{_ID}))")
_of_time = re.compile(
    r"\b(?:time|date|today|now|clock|hours?|years?|days?|months?|weeks?|minutes?|seconds?"
    r"|timestamp|uptime|elapsed|uhr|datum|heute|zeit)\b",
    re.IGNORECASE,
)
_token = re.compile(r"[A-Za-z0-9_-]*\Z")
_token_start = re.compile(r"[A-Za-z0-9_-]*")
_MIN_TOKEN = 6
_MOST_CHARS = 4_000


def is_volatile(line: str) -> Kind | None:
    """What of a line may change by itself: a clock before an id. Any number counts as an id."""
    kinds = {match.lastgroup for match in _volatile.finditer(line)}
    if "clock" in kinds:
        return "clock"
    if "id" not in kinds:
        return None
    return "clock" if _of_time.search(line) else "id"


def template(line: str) -> str:
    """A line with whatever may change by itself left out: what two of one kind have in common."""
    return _volatile.sub(lambda match: f"<{match.lastgroup}>", line)


def changed(was: str, now: str) -> Kind | None:
    """What changed, where two texts are the same but for clocks, ids and counters. A clock that is
    the first to change is named whatever else changed after it."""
    was, now = _around_change(was, now)
    first: Kind | None = None
    before, after = _segments(was), _segments(now)
    for (kind, old), (new_kind, new) in zip(before, after, strict=False):
        if old == new:
            continue
        if not kind or not new_kind:
            return first if first == "clock" else _one_token(was, now)
        if first is None:
            first = _named(kind, new_kind, was, old)
    if len(before) != len(after):
        return first if first == "clock" else _one_token(was, now)
    return first


def _around_change(was: str, now: str) -> tuple[str, str]:
    """Of long texts only what stands near the first change, from the beginning of a line."""
    if len(was) <= _MOST_CHARS and len(now) <= _MOST_CHARS:
        return was, now
    low, high = 0, min(len(was), len(now))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if was[low:middle] == now[low:middle] else (low, middle - 1)
    line = was.rfind("\n", 0, low) + 1
    start = max(line, low - _MOST_CHARS // 4)
    return was[start : start + _MOST_CHARS], now[start : start + _MOST_CHARS]


def _segments(text: str) -> list[tuple[str, str]]:
    """The text in turn: plain stretches and what may change, each with its kind."""
    made: list[tuple[str, str]] = []
    end = 0
    for match in _volatile.finditer(text):
        if match.start() > end:
            made.append(("", text[end : match.start()]))
        made.append((match.lastgroup or "", match.group()))
        end = match.end()
    made.append(("", text[end:]))
    return made


def _named(kind: str, new_kind: str, text: str, old: str) -> Kind:
    if kind == new_kind == "clock":
        return "clock"
    at = text.find(old)
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    line = text[start : end if end >= 0 else len(text)]
    return "clock" if "clock" in (kind, new_kind) or _of_time.search(line) else "id"


def _one_token(was: str, now: str) -> Kind | None:
    """An id that looks like a word: one token in place of another, as long, no two words."""
    start = 0
    while start < min(len(was), len(now)) and was[start] == now[start]:
        start += 1
    end = 0
    while end < min(len(was), len(now)) - start and was[-1 - end] == now[-1 - end]:
        end += 1
    head = _token.search(was[:start])
    tail = _token_start.match(was[len(was) - end :])
    start -= len(head.group()) if head else 0
    end -= len(tail.group()) if tail else 0
    old, new = was[start : len(was) - end], now[start : len(now) - end]
    is_one = _token_start.fullmatch(old) and _token_start.fullmatch(new)
    if not is_one or len(old) != len(new) or len(old) < _MIN_TOKEN:
        return None
    return "id" if any(map(str.isdigit, old + new)) else None
