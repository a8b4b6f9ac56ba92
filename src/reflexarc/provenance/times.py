"""Days, times of day and durations that a text means: "next Friday", "at 3:30", "half an hour".

Relative days need a `now`, which the conversation must have told (`told_now`); without one they
mean nothing here. Every value is given with the place it stands at and a name for how it was meant,
so that what an agent takes it for (the Friday before or after, the end of the day) can be learned.
"""

import re
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from typing import NamedTuple

_MAX_CHARS = 20_000
_MAX_FOUND = 12
_MAX_PAIRS = 12
_LONGEST_NUMBER = 4
_LEAST_YEAR, _LAST_YEAR = 1900, 2100
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?"
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_NUMBERS = {
    word: number
    for number, words in enumerate((
        "", "a an one single", "two couple", "three", "four", "five", "six", "seven", "eight",
        "nine", "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen",
        "seventeen", "eighteen", "nineteen", "twenty",
    ))
    for word in words.split()
}  # fmt: skip
_COUNT = r"(\d{1,4}(?:\.\d{1,2})?|" + "|".join(_NUMBERS) + r"|half(?: an?)?)"
_ISO = re.compile(r"(?<![\d-])((?:19|20)\d\d)-(\d\d)-(\d\d)(?![\d-])")
_SLASHED = re.compile(r"(?<![\d/])(\d{1,2})/(\d{1,2})/((?:19|20)\d\d)(?![\d/])")
_NAMED = re.compile(
    rf"\b{_MONTH} (\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? ((?:19|20)\d\d)\b)?"
    rf"|\b(\d{{1,2}})(?:st|nd|rd|th)? (?:of )?{_MONTH}(?:,? ((?:19|20)\d\d)\b)?"
)
_ORDINAL = re.compile(r"\bthe (\d{1,2})(?:st|nd|rd|th)\b(?! (?:of|jan|feb|mar|apr|may|jun))")
_NEAR = re.compile(
    r"\b(day after tomorrow|day before yesterday|today|tonight|tomorrow|yesterday)\b"
)
_NEAR_DAYS = {
    "today": 0, "tonight": 0, "tomorrow": 1, "yesterday": -1,
    "day after tomorrow": 2, "day before yesterday": -2,
}  # fmt: skip
_WEEKDAY = re.compile(
    r"\b(?:(next|last|this|coming|past|previous) )?(mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|satur|sun)"
    r"day\b"
)
_WHOLE = re.compile(r"\b(next|last|this|past|previous|coming) (week|month|year|fortnight)\b")
_SPAN = re.compile(
    rf"\b(?:(in the (?:last|past|next)|last|past|next|previous|in|within) )?{_COUNT}[ -]"
    r"(day|week|fortnight|month|year)s?\b( ago| from (?:now|today)| later)?"
)
_IN_MONTH = re.compile(rf"\b(?:in|during|of|for) {_MONTH}(?: ((?:19|20)\d\d))?\b(?! \d)")
_TIME = re.compile(
    r"\b(?:(\d{1,2})(?::(\d\d)(?::(\d\d))?)? ?(am|pm|a\.m\.|p\.m\.)(?!\w)"
    r"|(\d{1,2}):(\d\d)(?::(\d\d))?(?![\d:])|(noon|midday|midnight)\b"
    r"|(?<=\bat )(\d{1,2})(?= |[.,?!;]|$)(?! ?(?:%|days|hours|minutes)))"
)
_DURATION = re.compile(rf"(?<![\w.]){_COUNT}[ -]?(minute|min|hour|hr|h|second|sec)s?\b")
_MINUTES = {"min": 1.0, "hou": 60.0, "hr": 60.0, "h": 60.0, "sec": 1 / 60}
_NOW = re.compile(
    r"\b(?:today|now|current(?:ly)?|(?:date|time) is|date:)(?![a-z])[^\n]{0,60}?(?<![\d-])"
    r"((?:19|20)\d\d)-(\d\d)-(\d\d)(?![\d-])(?:[T ,]+(?:and )?(?:the )?(?:current )?(?:time )?"
    r"(?:is )?(\d\d):(\d\d)(?::(\d\d))?)?",
    re.IGNORECASE,
)
_NOW_NAMED = re.compile(
    rf"\b(?:today|now|current(?:ly)?|date is|date:)(?![a-z])[^\n]{{0,40}}?\b{_MONTH} "
    r"(\d{1,2})(?:st|nd|rd|th)?,? ((?:19|20)\d\d)\b",
    re.IGNORECASE,
)


class Meant(NamedTuple):
    """A value (text or number), how it was meant, where it stands in the text."""

    how: str
    value: str | float
    at: int


def told_now(text: str) -> datetime | None:
    """The time a text says it is ("today is 2024-05-15"); None where it does not. Looked for in the
    first 20,000 characters."""
    return _told(text[:_MAX_CHARS])


def told_by_prompt(text: str) -> datetime | None:
    """The same, kept of the prompts last asked about: every conversation begins with one. At most
    640,000 characters are kept."""
    return _told_often(text[:_MAX_CHARS])


def _told(text: str) -> datetime | None:
    match = _NOW.search(text)
    if match:
        year, month, day, hour, minute, second = (int(part or 0) for part in match.groups())
        found = _day(year, month, day)
        if found is not None and hour < 24 and minute < 60 and second < 60:
            return datetime.combine(found, time(hour, minute, second))
    match = _NOW_NAMED.search(text)
    if match:
        found = _day(int(match[3]), _month(match[1]), int(match[2]))
        if found is not None:
            return datetime.combine(found, time())
    return None


_told_often = lru_cache(maxsize=32)(_told)


def meant_times(text: str, now: datetime | None, year: str) -> Iterator[Meant]:
    """Everything of `days`, `clock` and `durations`, days in the forms that arguments take: alone,
    as the start and the end of the day, with each time of day. At most some 150."""
    lower = text[:_MAX_CHARS].lower()
    found: dict[tuple[str, date], int] = {}
    for how, day, at in days(lower, now, year):
        if len(found) >= _MAX_FOUND and (how, day) not in found:
            break
        found.setdefault((how, day), at)
    for (how, day), at in found.items():
        yield from _forms(how, day, at)
    times = list(clock(lower))[:_MAX_FOUND]
    for how, moment, at in times:
        yield Meant(f"time:{how}", moment.strftime("%H:%M"), at)
        yield Meant(f"time:{how}:s", moment.strftime("%H:%M:%S"), at)
    yield from _pairs(found, times)
    yield from durations(lower)


def now_forms(now: datetime) -> Iterator[Meant]:
    """What it is now, and the days around it, in the forms that arguments take."""
    for how, days_on in (("now", 0), ("now+1", 1), ("now-1", -1)):
        yield from _forms(how, now.date() + timedelta(days_on), -1)
    yield Meant("now:time", now.strftime("%Y-%m-%d %H:%M:%S"), -1)


def _forms(how: str, day: date, at: int) -> Iterator[Meant]:
    text = day.isoformat()
    yield Meant(f"day:{how}", text, at)
    yield Meant(f"start:{how}", f"{text} 00:00:00", at)
    yield Meant(f"end:{how}", f"{text} 23:59:59", at)
    yield Meant(f"startT:{how}", f"{text}T00:00:00", at)
    yield Meant(f"endT:{how}", f"{text}T23:59:59", at)
    yield Meant(f"us:{how}", day.strftime("%m/%d/%Y"), at)


def _pairs(
    found: dict[tuple[str, date], int], times: list[tuple[str, time, int]]
) -> Iterator[Meant]:
    """Each time of day with each day, the nearest in the text first."""
    count = 0
    for how, moment, at in times:
        ordered = sorted(found.items(), key=lambda pair: abs(pair[1] - at))
        for rank, ((meant, day), _) in enumerate(ordered):
            if count >= _MAX_PAIRS:
                return
            count += 1
            both = datetime.combine(day, moment)
            near = "near" if rank == 0 else "far"
            yield Meant(f"{near}:{how}:{meant}", both.strftime("%Y-%m-%d %H:%M:%S"), at)
            yield Meant(f"{near}T:{how}:{meant}", both.strftime("%Y-%m-%dT%H:%M:%S"), at)


def days(lower: str, now: datetime | None, year: str) -> Iterator[tuple[str, date, int]]:
    """(how it was meant, the day, where) of the days a lower-case text names. `year`: of days that
    come without one."""
    for match in _ISO.finditer(lower):
        yield from _one("said", _day(int(match[1]), int(match[2]), int(match[3])), match.start())
    for match in _SLASHED.finditer(lower):
        yield from _one("said", _day(int(match[3]), int(match[1]), int(match[2])), match.start())
    for match in _NAMED.finditer(lower):
        month, number = (match[1], match[2]) if match[1] else (match[5], match[4])
        told = match[3] or match[6] or year
        if told:
            yield from _one("said", _day(int(told), _month(month), int(number)), match.start())
    if now is not None:
        yield from _relative(lower, now.date())


def _relative(lower: str, today: date) -> Iterator[tuple[str, date, int]]:
    for match in _NEAR.finditer(lower):
        yield from _one(match[1], _shift(today, _NEAR_DAYS[match[1]]), match.start())
    monday = today - timedelta(today.weekday())
    for match in _WEEKDAY.finditer(lower):
        which, at = match[1] or "", match.start()
        on = _DAYS.index(match[2][:3])
        back, ahead = (today.weekday() - on) % 7 or 7, (on - today.weekday()) % 7 or 7
        yield from _one(f"{which} weekday before", _shift(today, -back), at)
        yield from _one(f"{which} weekday after", _shift(today, ahead), at)
        if which:
            weeks = {"next": 1, "coming": 0, "this": 0}.get(which, -1)
            yield from _one(f"{which} weekday", _shift(monday, 7 * weeks + on), at)
    for match in _WHOLE.finditer(lower):
        yield from _period(match[1], match[2], today, match.start())
    for match in _SPAN.finditer(lower):
        count = number_of(match[2])
        if count is None or count != int(count):
            continue
        before, after = match[1] or "", match[4] or ""
        back = "ago" in after or any(word in before for word in ("last", "past", "previous"))
        how = "back" if back else "ahead" if before or after else "span"
        day = _moved(today, int(count) * (-1 if back else 1), match[3])
        yield from _one(how, day, match.start())
        if how == "span":
            yield from _one("span back", _moved(today, -int(count), match[3]), match.start())
    for match in _ORDINAL.finditer(lower):
        yield from _one("ordinal", _day(today.year, today.month, int(match[1])), match.start())
    for match in _IN_MONTH.finditer(lower):
        first = _day(int(match[2] or today.year), _month(match[1]), 1)
        if first is not None:
            yield "month start", first, match.start()
            yield "month end", _moved(first, 1, "month") - timedelta(1), match.start()


def _period(which: str, unit: str, today: date, at: int) -> Iterator[tuple[str, date, int]]:
    """The first and last day of a week or month, the same day a period away."""
    step = {"next": 1, "coming": 1, "this": 0}.get(which, -1)
    yield from _one(f"{which} {unit}", _moved(today, step, unit), at)
    if unit in ("week", "fortnight"):
        first = _shift(today - timedelta(today.weekday()), 7 * step * (2 if unit != "week" else 1))
        last = _shift(first, 6)
    elif unit == "month":
        first = _moved(today.replace(day=1), step, unit)
        last = _shift(_moved(first, 1, unit), -1)
    else:
        first = date(max(_LEAST_YEAR, min(_LAST_YEAR, today.year + step)), 1, 1)
        last = first.replace(month=12, day=31)
    yield from _one(f"{which} {unit} start", first, at)
    yield from _one(f"{which} {unit} end", last, at)


def clock(lower: str) -> Iterator[tuple[str, time, int]]:
    """(how, time of day, where). Hours before eight without "am" may be meant of the afternoon."""
    for match in _TIME.finditer(lower):
        named = match[8]
        if named:
            yield "named", time(0 if named == "midnight" else 12), match.start()
            continue
        half = (match[4] or "")[:1]
        hour = int(match[1] or match[5] or match[9])
        minute, second = int(match[2] or match[6] or 0), int(match[3] or match[7] or 0)
        if hour > 23 or minute > 59 or second > 59 or (half and not 1 <= hour <= 12):
            continue
        if half:
            hour = hour % 12 + (12 if half == "p" else 0)
            yield "told", time(hour, minute, second), match.start()
            continue
        yield "bare", time(hour, minute, second), match.start()
        if 1 <= hour < 12:
            yield "later", time(hour + 12, minute, second), match.start()


def durations(lower: str) -> Iterator[Meant]:
    """Minutes, hours and seconds of the durations a lower-case text names."""
    for count, match in enumerate(_DURATION.finditer(lower)):
        number = number_of(match[1])
        if count >= _MAX_FOUND:
            return
        if number is None:
            continue
        unit = match[2] if match[2] in ("h", "hr") else match[2][:3]
        minutes = number * _MINUTES[unit]
        for how, value in (("min", minutes), ("hours", minutes / 60), ("seconds", minutes * 60)):
            yield Meant(f"lasts:{how}", _plain(round(value, 4)), match.start())


def number_of(text: str) -> float | None:
    """The number a numeral or a word is: "12", "1.5", "three", "half an"."""
    if text.startswith("half"):
        return 0.5
    known = _NUMBERS.get(text)
    if known is not None:
        return float(known)
    return float(text) if text[:1].isdigit() else None


def _plain(value: float) -> float | int:
    return int(value) if value == int(value) else value


def _one(how: str, day: date | None, at: int) -> Iterator[tuple[str, date, int]]:
    if day is not None:
        yield how.strip(), day, at


def _month(name: str) -> int:
    return _MONTHS.index(name[:3].lower()) + 1


def _day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _shift(day: date, by: int) -> date:
    try:
        return day + timedelta(by)
    except OverflowError:
        return day


def _moved(day: date, count: int, unit: str) -> date:
    """A day so many units later; at most some hundred years."""
    count = max(-_LAST_YEAR, min(_LAST_YEAR, count))
    if unit in ("day", "week", "fortnight"):
        return _shift(day, count * {"day": 1, "week": 7}.get(unit, 14))
    months = day.year * 12 + day.month - 1 + count * (12 if unit == "year" else 1)
    year, month = divmod(months, 12)
    if not _LEAST_YEAR <= year <= _LAST_YEAR:
        return day
    for last in (day.day, 30, 29, 28):
        found = _day(year, month + 1, last)
        if found is not None:
            return found
    return day
