"""Budgets: how much a key may spend, on what, and when that begins anew. Money is in micro-dollars.

Days and months are those of UTC.
"""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Literal

import msgspec

from reflexarc.steps.errors import ConfigError

Renews = Literal["never", "daily", "monthly"]
TIERS = ("interactive", "standard", "batch")
MAX_MICRO_USD = 10**15
"""A thousand million dollars; sums of so much stay far from what SQLite's integers hold."""
_PERIODS: dict[str, Renews] = {"": "never", "day": "daily", "month": "monthly"}
_written = re.compile(
    r"(?:(?P<scope>key|session|tier:[a-z]+)=)?(?P<usd>\d{1,12}(?:\.\d*)?)\s*usd"
    r"(?:/(?P<period>\w+))?",
    re.IGNORECASE,
)
_FORM = "5usd, 5usd/day, 5usd/month, session=0.50usd or tier:batch=2usd/day"


class Budget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`scope`: `key` (all of it), `session` (each session alone) or `tier:NAME`. `renews` says when
    what was spent is forgotten."""

    scope: str
    micro_usd: int
    renews: Renews = "never"

    def __str__(self) -> str:
        """As people write it."""
        period = next(name for name, renews in _PERIODS.items() if renews == self.renews)
        scope = "" if self.scope == "key" else f"{self.scope}="
        return f"{scope}{usd(self.micro_usd)}usd{'/' if period else ''}{period}"

    def of(self, session: str, tier: str) -> str | None:
        """What it is counted under for a request, None where it does not bind it."""
        if self.scope == "session":
            return f"session:{session}"
        if self.scope == "key" or self.scope == f"tier:{tier}":
            return self.scope
        return None


def budget_from(text: str) -> Budget:
    """`[SCOPE=]AMOUNTusd[/day|/month]`. Raises `ConfigError` that says what is wrong."""
    found = _written.fullmatch(text.strip())
    if found is None:
        raise ConfigError(f"{text!r} is not a budget; write {_FORM}")
    scope, period = (found["scope"] or "key").lower(), (found["period"] or "").lower()
    if period not in _PERIODS:
        raise ConfigError(f"{text!r}: a budget renews every day or every month, not {period!r}")
    if scope.startswith("tier:") and scope[5:] not in TIERS:
        raise ConfigError(f"{text!r}: there is no tier {scope[5:]!r}; known are {', '.join(TIERS)}")
    micro = Decimal(found["usd"]) * 1_000_000
    if micro != micro.to_integral_value():
        raise ConfigError(f"{text!r}: a budget has six digits after the point at most")
    if micro > MAX_MICRO_USD:
        raise ConfigError(f"{text!r}: a budget is {usd(MAX_MICRO_USD)} dollars at most")
    return Budget(scope, int(micro), _PERIODS[period])


def budgets_from(texts: tuple[str, ...]) -> tuple[Budget, ...]:
    """Several. Two of one scope and period contradict each other: `ConfigError`."""
    budgets = tuple(budget_from(text) for text in texts)
    for at, one in enumerate(budgets):
        for other in budgets[:at]:
            if (one.scope, one.renews) == (other.scope, other.renews):
                raise ConfigError(f"two budgets bind the same: {other} and {one}")
    return budgets


def usd(micro_usd: int) -> str:
    """Dollars without what is not needed: 5, 0.5, 0.000001."""
    whole, part = divmod(abs(micro_usd), 1_000_000)
    digits = f"{part:06d}".rstrip("0")
    return f"{'-' if micro_usd < 0 else ''}{whole}{'.' if digits else ''}{digits}"


def window(renews: Renews, unix_s: float) -> str:
    """The day or the month that a time is in, and so what is counted together; empty: all time."""
    if renews == "never":
        return ""
    return _utc(unix_s).strftime("%Y-%m-%d" if renews == "daily" else "%Y-%m")


def windows(unix_s: float) -> tuple[str, str, str]:
    """Of every kind."""
    return "", window("daily", unix_s), window("monthly", unix_s)


def renewal(renews: Renews, unix_s: float) -> float | None:
    """When the window that a time is in ends, Unix seconds; None: never."""
    day = _utc(unix_s).replace(hour=0, minute=0, second=0, microsecond=0)
    if renews == "never":
        return None
    if renews == "daily":
        return (day + timedelta(days=1)).timestamp()
    return (day.replace(day=1) + timedelta(days=32)).replace(day=1).timestamp()


def _utc(unix_s: float) -> datetime:
    return datetime.fromtimestamp(unix_s, UTC)
