"""The options that say what a virtual key may do, for the commands that make and change one."""

from collections.abc import Callable
from functools import reduce
from typing import Any, TypeVar

import click
import msgspec

from reflexarc.accounts.budgets import TIERS, budgets_from
from reflexarc.accounts.keys import VirtualKey
from reflexarc.cli.store import Day
from reflexarc.steps.errors import ConfigError

ANY, NONE, NEVER = "any", "none", "never"
_Command = TypeVar("_Command", bound=Callable[..., Any])


class _Number(click.ParamType[int | str]):
    """A whole number from 1 on, or `any`: no limit."""

    name = "N|any"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | str:
        text = str(value).lower()
        if text == ANY:
            return ANY
        if not text.isdecimal() or not 1 <= int(text) <= 10**12:
            self.fail(f"{value!r} is not a whole number from 1 on, nor {ANY!r}", param, ctx)
        return int(text)


class _Names(click.ParamType[tuple[str, ...] | str]):
    """Names with commas between them; `any`: no limit; `none`: none at all."""

    name = "NAMES|any|none"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...] | str:
        if isinstance(value, tuple):
            return value  # pyright: ignore[reportUnknownVariableType]  converted before
        text = str(value).strip()
        if text == ANY:
            return ANY
        if text == NONE:
            return ()
        names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
        if not all(names):
            self.fail(f"{value!r} holds an empty name", param, ctx)
        return names


class _Expiry(click.ParamType[float | str]):
    """A day or a time as `Day` reads it, or `never`."""

    name = "DATE|never"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float | str:
        if str(value) == NEVER:
            return NEVER
        return Day().convert(value, param, ctx)


_SETTINGS = (
    click.option("--tenant", help="Whose it is: keys of one tenant share sessions."),
    click.option(
        "--budget", "budgets", multiple=True, metavar="BUDGET",
        help="5usd, 5usd/day, 5usd/month, session=0.50usd, tier:batch=2usd/day; none: no budget.",
    ),
    click.option("--requests-per-minute", type=_Number()),
    click.option("--tokens-per-minute", type=_Number()),
    click.option("--parallel", "max_parallel", type=_Number(), help="Requests at once."),
    click.option("--models", type=_Names(), help="Models it may ask for; * is any characters."),
    click.option("--tiers", type=_Names(), help=f"Of {', '.join(TIERS)}."),
    click.option("--reflexes", type=_Names(), help="Routes on which System 1 may act for it."),
    click.option(
        "--default-tier", type=click.Choice((*TIERS, NONE)), help="Where a request names none."
    ),
    click.option(
        "--local-only/--not-local-only", default=None, help="Nothing of it leaves for a provider."
    ),
    click.option("--expires", "expires_unix_s", type=_Expiry(), help="From then on it is refused."),
)  # fmt: skip


def settings(command: _Command) -> _Command:
    """Decorates a command with all of them."""
    return reduce(lambda decorated, option: option(decorated), reversed(_SETTINGS), command)


def changes_of(given: dict[str, Any]) -> dict[str, Any]:
    """What the options say of a key; what none says is not in it. Raises `ConfigError`."""
    changes: dict[str, Any] = {}
    for name, value in given.items():
        if name == "budgets":
            if value:
                changes[name] = () if value == (NONE,) else budgets_from(value)
        elif value is not None:
            changes[name] = None if value in (ANY, NEVER) else value
    if changes.get("default_tier") == NONE:
        changes["default_tier"] = None
    for tier in changes.get("tiers") or ():
        if tier not in TIERS:
            raise ConfigError(f"there is no tier {tier!r}; known are {', '.join(TIERS)}")
    return changes


def changed(key: VirtualKey, changes: dict[str, Any]) -> VirtualKey:
    """A key with these. Raises `ConfigError` where they contradict each other."""
    found = msgspec.structs.replace(key, **changes)
    if not found.tenant:
        found = msgspec.structs.replace(found, tenant=key.id)
    default, tiers = found.default_tier, found.tiers
    if default is not None and tiers is not None and default not in tiers:
        raise ConfigError(f"the default tier {default} is none that the key may use")
    return found
