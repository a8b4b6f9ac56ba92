"""What must not stand in an artifact: patterns of personal data and secrets, and where names stand.

Deterministic and lexical, of no language model: a name that nothing around it gives away is not
told from a word (then only the rule of three tasks keeps it out). Patterns follow the public
formats: Luhn for cards (ISO/IEC 7812), mod 97 for IBAN (ISO 13616), vendors' documented prefixes.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, cast

from reflexarc.provenance.words import plain_text

MIN_TASKS = 3
"""A text seen in fewer tasks is of these tasks, not of the agent."""

_LONGEST_READ = 200_000
_DATE = re.compile(
    r"(?<!\d)(?:(?P<first>\d{4})[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](?P<last>\d{4}))"
    r"(?:[T ]\d{2}:\d{2}(?::\d{2})?(?:\.\d+)?(?:Z|[+-]\d{2}:?\d{2})?)?(?!\d)"
)
_BORN = range(1900, 2013)
"""Years of a date that is more likely of a birth than of an appointment."""
_MONTHS = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_STREET = (
    r"(?:street|st|avenue|ave|road|rd|boulevard|blvd|lane|ln|drive|dr|court|ct|place|pl|square|sq"
    r"|terrace|way|highway|hwy|parkway|pkwy|circle|cir|trail)"
)

_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("e-mail", re.compile(r"(?<![\w.+-])[\w.+-]++@[\w-]++(?:\.[\w-]++)+")),
    (
        "secret",
        re.compile(
            r"-----BEGIN [A-Z ]*(?:PRIVATE KEY|CERTIFICATE)"
            r"|\beyJ[\w-]{8,}+\.[\w-]{8,}+\.[\w-]*+"
            r"|(?<![A-Za-z0-9])(?:sk|pk|rk)[-_](?:[A-Za-z]{1,12}[-_])*[A-Za-z0-9_-]{16,}+"
            r"|\bgh[pousr]_[A-Za-z0-9]{16,}+|\bgithub_pat_\w{20,}+|\bglpat-[\w-]{16,}+"
            r"|\b(?:AKIA|ASIA)[A-Z0-9]{12,}+|\bxox[abeoprs]-[\w-]{8,}+|\bAIza[\w-]{20,}+"
            r"|\bhf_[A-Za-z0-9]{20,}+|\bnpm_[A-Za-z0-9]{20,}+|\bpypi-[\w-]{20,}+"
            r"|\bSG\.[\w-]{16,}+\.[\w-]{16,}+|\bya29\.[\w-]{16,}+"
            r"|\b(?:Bearer|Basic)\s+(?=\S*\d)[\w.~+/=-]{8,}+"
        ),
    ),
    (
        "password",
        re.compile(
            r"\b(?:pass(?:word|wd|phrase|code)?|pwd|secret|api[_-]?key|access[_-]?(?:token|key)"
            r"|auth[_-]?token|token|pin|cvv|cvc)\b[\"']?\s{0,3}(?:[:=]|\bis\b)\s{0,3}[\"']?"
            r"(?P<value>(?=[^\s\"',;]*[\d!@#$%^&*])[^\s\"',;]{4,})",
            re.IGNORECASE,
        ),
    ),
    (
        "UUID",
        re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"),
    ),
    (
        "IP address",
        re.compile(
            r"(?<![\w.])(?!127\.0\.0\.1|0\.0\.0\.0)(?:\d{1,3}\.){3}\d{1,3}(?![\w.]*\w)"
            r"|(?<![\w:])(?:[0-9a-fA-F]{1,4}:){4,7}[0-9a-fA-F]{1,4}(?![\w:])"
        ),
    ),
    ("national id", re.compile(r"(?<![\d-])\d{3}-\d{2}-\d{4}(?![\d-])")),
    (
        "national id",
        re.compile(r"\b[A-CEGHJ-PR-TW-Z]{2} ?\d{2} ?\d{2} ?\d{2} ?[A-D]\b"),
    ),
    (
        "street address",
        re.compile(
            rf"\b\d{{1,5}}\s+(?:[A-Za-z][\w'.]*\s+){{1,3}}{_STREET}\b"
            r"|\b[A-Za-zÄÖÜäöüß]{3,}(?:straße|strasse|str\.|weg|allee|gasse)\s+\d{1,4}\b"
            r"|\b\d{1,4},?\s+(?:rue|avenue|boulevard|calle|via)\s+[A-Za-z]\w+",
            re.IGNORECASE,
        ),
    ),
    (
        "date of birth",
        re.compile(
            rf"\b(?:born|birth(?:day|date)?|dob)\b\W{{0,6}}(?:(?:is|on|of)\W{{1,3}})?"
            rf"(?:\d{{1,4}}[-/. ]\d{{1,2}}[-/. ]\d{{1,4}}|{_MONTHS}\W+\d{{1,2}}\W+\d{{4}})",
            re.IGNORECASE,
        ),
    ),
)
_CARD = re.compile(r"(?<![\w.-])\d(?:[ -]?\d){12,18}(?![\w-])")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}\b")
_PHONE = re.compile(r"(?<![\w.#-])\+?\(?\d(?:[ ().-]{0,2}\d){7,14}(?![\w-])")
_DIGITS = re.compile(r"(?<![\d.])\d{7,}")
_TOKEN = re.compile(r"[A-Za-z0-9+/_=-]{20,}")
_TOKEN_PARTS = re.compile(r"[/_=-]")
_RUNS = re.compile(r"[a-z]+|[A-Z]+|\d+")
_MIN_ENTROPY = 3.0
_TOLD = re.compile(
    r"\b(?:[Mm]y (?:full |first |last )?name(?: is|'s|:)|[Nn]ame is|[Nn]ame:|[Nn]amed|[Ii] am"
    r"|[Ii]'m|[Tt]his is|[Mm]r\.?|[Mm]rs\.?|[Mm]s\.?|[Dd]r\.?|[Ii]ch heiße|[Mm]ein Name ist"
    r"|[Jj]e m'appelle|[Mm]e llamo|[Mm]i nombre es)\s+"
    r"(?P<value>[A-ZÀ-Þ][a-zß-ÿ]['\w-]*(?:\s+[A-ZÀ-Þ][a-zß-ÿ]['\w-]*){0,2})"
)

_FIELD_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_PERSONAL = frozenset(
    word
    for line in (
        "email mail phone telephone mobile fax ssn passport dob birth birthday birthdate",
        "birthplace password passwd pwd passcode secret token pin cvv cvc iban bic surname",
        "firstname lastname fullname username nickname street address1 address2 zip zipcode",
        "postcode postal licence license",
    )
    for word in line.split()
)
_PERSONAL_PAIRS = frozenset({
    ("first", "name"), ("last", "name"), ("full", "name"), ("given", "name"), ("family", "name"),
    ("middle", "name"), ("user", "name"), ("maiden", "name"), ("name", "first"), ("name", "last"),
    ("customer", "name"), ("passenger", "name"), ("patient", "name"), ("employee", "name"),
    ("contact", "name"), ("person", "name"), ("owner", "name"), ("holder", "name"),
    ("guest", "name"), ("member", "name"), ("client", "name"), ("recipient", "name"),
    ("customers", "name"), ("passengers", "name"), ("users", "name"), ("contacts", "name"),
    ("api", "key"), ("access", "key"), ("private", "key"), ("card", "number"),
    ("account", "number"), ("social", "security"),
})  # fmt: skip


def personal_field(path: str) -> bool:
    """Whether the field at the end of a path (or an argument's name) holds what is personal:
    `$.user.first_name`, `email`, `customer.name`."""
    words = [word.lower() for word in _FIELD_WORD.findall(path[-200:])]
    if not words:
        return False
    if len(words) > 1 and (words[-1].isdigit() or words[-1] in ("number", "address", "no")):
        words = words[:-1] if tuple(words[-2:]) not in _PERSONAL_PAIRS else words
        if words[-1] == "address":
            return True
    last = words[-1].removesuffix("s") if len(words[-1]) > 4 else words[-1]
    return last in _PERSONAL or words[-1] in _PERSONAL or tuple(words[-2:]) in _PERSONAL_PAIRS


def spans(text: str) -> Iterator[tuple[str, str]]:
    """(kind, what stands there) of everything in a text that follows a sensitive pattern. Of a
    text over 200,000 characters only so much is read."""
    text = text[:_LONGEST_READ]
    if not text:
        return
    for kind, pattern in _PATTERNS:
        for match in pattern.finditer(text):
            value = match.groupdict().get("value") or match.group()
            if kind != "IP address" or _is_address(value):
                yield kind, value
    yield from _numbers(text)
    for match in _TOKEN.finditer(text):
        if any(_random(part) for part in _TOKEN_PARTS.split(match.group())):
            yield "random string", match.group()


def told_names(text: str) -> Iterator[str]:
    """Names of people as a text introduces them: "my name is ...", "Mr. ..."."""
    for match in _TOLD.finditer(text[:_LONGEST_READ]):
        yield match.group("value")


def sensitive(value: Any) -> str | None:
    """The kind of the first sensitive thing a JSON value holds, in keys and values; None if none.

    Enum values, codes, amounts, units, days and places are none."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        for key, part in fields.items():
            if personal_field(key) and isinstance(part, str | int) and part not in ("", True):
                return "personal field"
            found = sensitive(key) or sensitive(part)
            if found is not None:
                return found
        return None
    if isinstance(value, list):
        parts = cast("list[Any]", value)
        return next((found for part in parts if (found := sensitive(part))), None)
    if value is None or isinstance(value, bool):
        return None
    return next((kind for kind, _ in spans(plain_text(value))), None)


def _numbers(text: str) -> Iterator[tuple[str, str]]:
    """Dates first, and out of the way: they would look like telephone numbers."""
    for match in _DATE.finditer(text):
        year = match.group("first") or match.group("last")
        if int(year) in _BORN:
            yield "date of birth", match.group()
    plain = _DATE.sub(" ", text)
    for match in _CARD.finditer(plain):
        if _luhn(match.group()):
            yield "payment card", match.group()
    for match in _IBAN.finditer(plain):
        if _mod97(match.group()):
            yield "IBAN", match.group()
    for match in _PHONE.finditer(plain):
        yield "telephone or long number", match.group()
    for match in _DIGITS.finditer(plain):
        yield "telephone or long number", match.group()


def _luhn(text: str) -> bool:
    digits = [int(c) for c in text if c.isdigit()]
    doubled = [d if at % 2 == 0 else d * 2 - 9 * (d > 4) for at, d in enumerate(digits[::-1])]
    return sum(doubled) % 10 == 0


def _mod97(text: str) -> bool:
    plain = text.replace(" ", "")
    return int("".join(str(int(c, 36)) for c in plain[4:] + plain[:4])) % 97 == 1


def _is_address(text: str) -> bool:
    return ":" in text or all(int(part) <= 255 for part in text.split("."))


def _random(token: str) -> bool:
    """Whether a token looks drawn: long, letters and digits in turn, or few letters repeated."""
    if len(token) < 20 or not any(c.isdigit() for c in token):
        return False
    counts = Counter(token)
    entropy = -sum(n / len(token) * math.log2(n / len(token)) for n in counts.values())
    return entropy >= _MIN_ENTROPY and len(_RUNS.findall(token)) >= 6
