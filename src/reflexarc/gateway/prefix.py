"""What became of a prompt's prefix, once it is known who is asked: kept or broken, and its price.

Grammar of `x-reflexarc-prefix`, items separated by `; `:

    new                                   nothing that was sent before goes on here
    kept; tokens=N                        it begins as the one before it: N tokens
    break; cause=CAUSE; at=PATH; byte=B; lost_tokens=N; usd=U; ms=T

`at` and `byte` where something in the request broke it. `usd` where the price is known: so much
more the N tokens cost than from a cache. `ms` where it is measured how fast they are read.
`repaired=WHAT` at the end, of each: what the gateway changed to keep the prefix.
"""

from decimal import Decimal
from typing import NamedTuple
from urllib.parse import quote

import msgspec

from reflexarc.context.changes import Cause
from reflexarc.context.fitting import Found
from reflexarc.context.weighing import Break
from reflexarc.gateway.config import Route

_MAX_PATH_CHARS = 120


class Prefix(msgspec.Struct):
    """One request's. `size` of its prompt in bytes; `repaired`: what was changed of it."""

    found: Found
    idle_s: float
    lasts_s: float
    size: int
    route: Route
    model: str
    repaired: tuple[str, ...] = ()


class Outcome(NamedTuple):
    """`how`: `new`, `kept` or `break`. Bytes of the prompt before, those that go on and those that
    are read again; `again_bytes` of them because of `cause`."""

    how: str
    kept_bytes: int = 0
    cause: Cause | None = None
    again_bytes: int = 0
    at: Break | None = None


class Prices(NamedTuple):
    """What the bytes are in tokens and in money: None where nobody knows."""

    kept_tokens: int
    lost_tokens: int
    micro_usd: int | None = None
    ms: float | None = None


def outcome(found: Found, idle_s: float, lasts_s: float, *, moved: bool) -> Outcome:
    """`idle_s` since the prompt before; caches last for `lasts_s`. `moved`: another deployment is
    asked than then. Of several causes the one that costs most."""
    if found.how == "new":
        return Outcome("new")
    broken = found.break_ if found.how == "break" else None
    again = 0 if broken is None else broken.again_bytes
    if (idle_s <= lasts_s and not moved) or not found.kept_bytes:
        if broken is None:
            return Outcome("kept", found.kept_bytes)
        return Outcome("break", found.kept_bytes, broken.cause, again, broken)
    cause: Cause = "deployment" if moved else "expired"
    if broken is not None and again >= found.kept_bytes:
        return Outcome("break", 0, broken.cause, again + found.kept_bytes, broken)
    return Outcome("break", 0, cause, again + found.kept_bytes)


def label(told: Outcome, prices: Prices, repaired: tuple[str, ...] = ()) -> bytes:
    """The header's value."""
    if told.how == "new":
        items = ["new"]
    elif told.how == "kept":
        items = ["kept", f"tokens={prices.kept_tokens}"]
    else:
        items = ["break", f"cause={told.cause}"]
        if told.at is not None and told.at.path:
            path = quote(told.at.path[:_MAX_PATH_CHARS], safe="_.:/-[]", errors="replace")
            items += [f"at={path}", f"byte={told.at.byte}"]
        items.append(f"lost_tokens={prices.lost_tokens}")
        if prices.micro_usd is not None:
            items.append(f"usd={_usd(prices.micro_usd)}")
        if prices.ms is not None:
            items.append(f"ms={prices.ms:.0f}")
    if repaired:
        items.append(f"repaired={','.join(repaired)}")
    return "; ".join(items).encode("ascii")


def _usd(micro_usd: int) -> str:
    text = f"{Decimal(micro_usd).scaleb(-6):f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"
