"""Published prices by provider, model, service tier and day, from `prices.toml` and files like it.

A model that is not listed has no price: none is ever guessed from another's.
"""

import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime
from decimal import Decimal
from importlib import resources
from pathlib import Path
from typing import Any, cast

import msgspec

from reflexarc.steps.errors import ConfigError
from reflexarc.wire.price import Price

__all__ = ["Entry", "Price", "Prices"]

USUAL_TIERS = frozenset({"", "auto", "default", "standard", "standard_only", "on_demand"})
"""Values of `service_tier` that are charged at the price itself."""
ANY_MODEL = "*"
# A date, a serial number or "latest" after a model's name: another issue of the same model.
_issue = re.compile(r"(.+?)[-@:](?:20\d\d-?[01]\d-?[0-3]\d|[01]\d[0-3]\d|00\d|latest)")


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Prices of one model from the day `since` on, in dollars a million tokens.

    `tiers` are its other service tiers: a factor on all its prices, or prices of their own.
    `also` names models that are charged the same. `source` is where it was read.
    """

    provider: str
    model: str
    since: date
    source: str
    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    cache_write_1h: Decimal | None = None
    long_from: int | None = None
    long: Price | None = None
    tiers: dict[str, Decimal | dict[str, Decimal]] = {}
    also: tuple[str, ...] = ()


class _Priced(msgspec.Struct, frozen=True):
    since: date
    usual: Price
    tiers: dict[str, Price]


class Prices:
    """`today` is the day prices are asked for where none is named (UTC)."""

    def __init__(
        self, listed: dict[tuple[str, str], list[_Priced]], today: Callable[[], date]
    ) -> None:
        self._listed = listed
        self._today = today

    @classmethod
    def load(cls, path: Path | None = None, today: Callable[[], date] | None = None) -> "Prices":
        """The shipped prices; with `path` those of a file of the same form over them: a model that
        it lists is priced by it alone. Raises `ConfigError` that names the file and the entry."""
        shipped = resources.files("reflexarc.accounts").joinpath("prices.toml").read_text("utf-8")
        listed = _listed(_entries(shipped, "the shipped prices.toml"), "the shipped prices.toml")
        if path is not None:
            try:
                text = path.read_text("utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise ConfigError(f"{path} cannot be read: {error}") from error
            listed |= _listed(_entries(text, str(path)), str(path))
        return cls(listed, today if today is not None else _utc_today)

    def of(
        self, provider: str, model: str, service_tier: str = "", on: date | None = None
    ) -> Price | None:
        """The price of a model on a day; before the first day known, the first. A name with a date
        or an issue's number is the model before it, unless it is listed itself. None where the
        model, or the service tier of it, is not listed."""
        found = self._history(provider.lower(), model.lower().removeprefix("models/"))
        if not found:
            return None
        day = self._today() if on is None else on
        held = [one for one in found if one.since <= day]
        at = held[-1] if held else found[0]
        if service_tier in USUAL_TIERS:
            return at.usual
        return at.tiers.get(service_tier)

    def _history(self, provider: str, model: str) -> list[_Priced]:
        name: str | None = model
        while name:
            if (provider, name) in self._listed:
                return self._listed[provider, name]
            found = _issue.fullmatch(name)
            name = found[1] if found is not None else None
        return self._listed.get((provider, ANY_MODEL), [])

    def models(self, provider: str) -> list[str]:
        """What is listed of a provider."""
        return sorted(name for of, name in self._listed if of == provider.lower())


def _entries(text: str, where: str) -> list[Entry]:
    try:
        raw = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{where}: {error}") from error
    listed: Any = raw.pop("price", [])
    if raw or not isinstance(listed, list):
        raise ConfigError(f"{where}: prices are written as [[price]] entries, and nothing else is")
    entries: list[Entry] = []
    for number, one in enumerate(cast("list[Any]", listed), 1):
        try:
            entries.append(msgspec.convert(one, Entry))
        except msgspec.ValidationError as error:
            raise ConfigError(f"{where}: {_named(number, one)}: {error}") from error
    return entries


def _listed(entries: Iterable[Entry], where: str) -> dict[tuple[str, str], list[_Priced]]:
    listed: defaultdict[tuple[str, str], list[_Priced]] = defaultdict(list)
    for number, entry in enumerate(entries, 1):
        here = f"{where}: price {number} ({entry.provider} {entry.model})"
        if not entry.provider or not entry.model or not entry.source:
            raise ConfigError(f"{here}: provider, model and source must say something")
        try:
            usual = Price(
                entry.input, entry.output, entry.cache_read, entry.cache_write,
                entry.cache_write_1h, entry.long_from, entry.long,
            )  # fmt: skip
            tiers = {name: _tier(usual, given) for name, given in entry.tiers.items()}
        except ValueError as error:
            raise ConfigError(f"{here}: {error}") from error
        priced = _Priced(entry.since, usual, tiers)
        for model in (entry.model, *entry.also):
            known = listed[entry.provider.lower(), model.lower()]
            if any(other.since == entry.since for other in known):
                raise ConfigError(f"{here}: {model} has two prices since {entry.since}")
            known.append(priced)
    for known in listed.values():
        known.sort(key=lambda one: one.since)
    return dict(listed)


def _tier(usual: Price, given: Decimal | dict[str, Decimal]) -> Price:
    if isinstance(given, Decimal):
        if not given.is_finite() or given < 0:
            raise ValueError(f"a tier's factor must be from 0 to 1000000, not {given}")
        return usual.times(given)
    return msgspec.convert(given, Price)


def _named(number: int, one: Any) -> str:
    if not isinstance(one, dict):
        return f"price {number}"
    fields = cast("dict[str, Any]", one)
    return f"price {number} ({fields.get('provider', '?')} {fields.get('model', '?')})"


def _utc_today() -> date:
    return datetime.now(UTC).date()
