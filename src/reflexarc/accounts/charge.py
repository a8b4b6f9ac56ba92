"""What one attempt cost, as it is written into the book."""

import msgspec

from reflexarc.accounts.budgets import MAX_MICRO_USD
from reflexarc.wire.usage import Usage


class Charge(msgspec.Struct, frozen=True):
    """`number` is the request's in the process that `gateway` names, `attempt` counts its attempts:
    the three together say which charge it is, and written twice it is there once.

    `key` is a virtual key's id, empty without one; `session` is kept as a keyed hash.
    `micro_usd` is None where the price is not known. `outcome` is `answered`, `failed`, `cut`,
    `client_gone`, `hedge_lost`, `repaired` or `audit`. `partial`: it was cut off before its usage
    was told; `estimated`: its usage was not told, or not all of it.
    """

    request_id: str
    number: int
    gateway: str
    at_unix_s: float
    key: str
    tenant: str
    session: str
    tier: str
    route: str
    provider: str
    model: str
    service_tier: str
    usage: Usage
    micro_usd: int | None
    status: int
    outcome: str
    partial: bool
    estimated: bool
    attempt: int = 0

    def fitting(self) -> "Charge":
        """As it can be written: what others told of, names and numbers, may be anything."""
        texts = {
            name: value.encode("utf-8", "replace").decode()[:_MAX_TEXT]
            for name, value in ((one, getattr(self, one)) for one in _TEXTS)
        }
        counts = [min(max(0, getattr(self.usage, n)), _MAX_TOKENS) for n in _COUNTS]
        micro_usd = None if self.micro_usd is None else min(max(0, self.micro_usd), MAX_MICRO_USD)
        return msgspec.structs.replace(self, usage=Usage(*counts), micro_usd=micro_usd, **texts)


_TEXTS = (
    "request_id", "gateway", "key", "tenant", "session", "tier", "route", "provider", "model",
    "service_tier", "outcome",
)  # fmt: skip
_COUNTS = Usage.__struct_fields__
_MAX_TEXT = 200
_MAX_TOKENS = 10**12


class Reservation(msgspec.Struct, frozen=True):
    """Money that is kept back for a request. `id` is empty where no budget binds it: then nothing
    is."""

    id: str
    key: str
    session: str
    tier: str
    micro_usd: int
