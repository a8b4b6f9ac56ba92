"""What a provider's error means for the next attempt: told on, tried elsewhere, or tried again.

And for how long the deployment that answered so is not to be asked: exactly what it says itself.
"""

import math
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal, cast

import msgspec

from reflexarc.upstream.providers import KINDS
from reflexarc.wire.dialects import dialect
from reflexarc.wire.faults import Fault

Verdict = Literal["answer", "elsewhere", "again"]
"""`answer`: it is the client's to know. `elsewhere`: another deployment may do better. `again`: so
may the same, asked once more."""

LONGEST_COOL_DOWN_S = 7 * 86_400.0
"""A hint past a week is taken for a week."""
MAX_READ = 256 * 1024
"""Bytes of an error's body that are read."""

# What these say depends on the deployment, not on the request.
_ELSEWHERE = frozenset(
    {"authentication", "billing", "permission", "rate_limit", "overloaded", "timeout", "upstream"}
)
_UNKNOWN_MODEL = frozenset(
    {
        "model_not_found",
        "model_not_active",
        "model_decommissioned",
        "model_not_available",
        "deploymentnotfound",
        "unknown_model",
    }
)
_BUSY = frozenset({"rate_limit_exceeded", "capacity_exceeded", "rate_limit_error"})
_names_model = re.compile(r"\b(?:models?|deployments?)\b", re.IGNORECASE)
_no_credit = re.compile(r"\bcredit balance is too low\b", re.IGNORECASE)
# What the model wrote was no call, or no JSON: it may write better.
_AGAIN = frozenset({"tool_use_failed", "json_validate_failed"})


def verdict(kind: str, status: int, body: bytes) -> Verdict:
    """Of an answer with this status from a provider of this kind (a name in `KINDS`). An answer
    under 400 is one, whatever it holds."""
    if status < 400:
        return "answer"
    if status >= 500 or status in (408, 409, 429, 498):
        return "elsewhere"
    fault = fault_of(kind, status, body)
    told = _words(body)
    words = told or frozenset[str]()
    if words & _AGAIN:
        return "again"
    if fault.kind in _ELSEWHERE or words & (_UNKNOWN_MODEL | _BUSY):
        return "elsewhere"
    if status == 404:
        # A page in place of an error of the API: what was asked for is not served there at all.
        return "elsewhere" if told is None or _names_model.search(fault.message) else "answer"
    return "elsewhere" if _no_credit.search(fault.message) else "answer"


def fault_of(kind: str, status: int, body: bytes) -> Fault:
    """An error's body, read as such a provider writes them."""
    known = KINDS.get(kind)
    return dialect(known.dialects[0] if known else "chat").read_fault(status, body[:MAX_READ])


def cool_down_s(
    status: int,
    headers: Iterable[tuple[bytes, bytes]],
    fault: Fault | None,
    now_unix_s: float,
) -> float | None:
    """For how many seconds this deployment is not to be asked; None where it does not say.

    The first that says so: `retry-after-ms`, `retry-after` (seconds, or an HTTP date), the body's
    hint, and with status 429 alone the limits' own reset headers: of those spent the one that ends
    last, or where none is told to be spent, the one that ends first. Header names in any case.
    """
    if status < 400:
        return None
    given = {
        name.decode("latin-1").lower(): value.decode("latin-1").strip() for name, value in headers
    }
    for said in (
        _number(given.get("retry-after-ms"), 1e-3),
        _number(given.get("retry-after"), 1.0),
        _until_date(given.get("retry-after"), now_unix_s),
        fault.retry_after_s if fault is not None else None,
        _until_reset(given, now_unix_s) if status == 429 else None,
    ):
        if said is not None and said >= 0:
            return min(said, LONGEST_COOL_DOWN_S)
    return None


def _words(body: bytes) -> frozenset[str] | None:
    """The short words by which an error's body says what it is, in lower case; None where it is no
    JSON object."""
    try:
        value: Any = msgspec.json.decode(body[:MAX_READ])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    if isinstance(value, list) and value:
        value = cast("list[Any]", value)[0]
    if not isinstance(value, dict):
        return None
    outer = cast("dict[str, Any]", value)
    inner = outer.get("error")
    found: set[str] = set()
    for fields in (outer, cast("dict[str, Any]", inner) if isinstance(inner, dict) else {}):
        for name in ("code", "type", "status", "reason"):
            word = fields.get(name)
            if isinstance(word, str):
                found.add(word.lower())
    return frozenset(found)


_decimal = re.compile(r"\d{1,15}(?:\.\d{1,9})?")
_duration = re.compile(
    r"(?:(?P<d>\d+)d)?(?:(?P<h>\d+)h)?(?:(?P<m>\d+)m(?!s))?(?:(?P<s>\d+(?:\.\d+)?)s)?"
    r"(?:(?P<ms>\d+(?:\.\d+)?)ms)?",
)
_UNITS_S = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 1e-3}
_reset = re.compile(r"(?P<family>(?:x|anthropic)-ratelimit)-(?:reset-(?P<a>.+)|(?P<b>.+)-reset)")


def _number(text: str | None, unit_s: float) -> float | None:
    return float(text) * unit_s if text and _decimal.fullmatch(text) else None


def _until_date(text: str | None, now_unix_s: float) -> float | None:
    if not text or not text[:1].isalpha():
        return None
    try:
        then = parsedate_to_datetime(text)
        return max(0.0, _unix(then) - now_unix_s)
    except (ValueError, OverflowError):
        return None


def _until_reset(given: dict[str, str], now_unix_s: float) -> float | None:
    spent: list[float] = []
    told: list[float] = []
    for name, text in given.items():
        found = _reset.fullmatch(name)
        wait_s = _wait_s(text, now_unix_s) if found else None
        if found is None or wait_s is None:
            continue
        told.append(wait_s)
        what = found["a"] or found["b"]
        middle = f"remaining-{what}" if found["a"] else f"{what}-remaining"
        if _number(given.get(f"{found['family']}-{middle}"), 1.0) == 0:
            spent.append(wait_s)
    if spent:
        return max(spent)
    return min(told, default=None)


def _wait_s(text: str, now_unix_s: float) -> float | None:
    """Of `1m2.5s`, plain seconds, a Unix time in seconds or milliseconds, or an RFC 3339 time."""
    number = _number(text, 1.0)
    if number is not None:
        if number < 1e9:
            return number
        return max(0.0, (number / 1_000 if number >= 1e12 else number) - now_unix_s)
    parts = _duration.fullmatch(text)
    if text and parts:
        return math.fsum(float(parts[unit] or 0) * size for unit, size in _UNITS_S.items())
    try:
        return max(0.0, _unix(datetime.fromisoformat(text)) - now_unix_s)
    except (ValueError, OverflowError):
        return None


def _unix(then: datetime) -> float:
    """Times without a zone are in UTC."""
    return (then if then.tzinfo else then.replace(tzinfo=UTC)).timestamp()
