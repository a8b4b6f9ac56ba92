"""Who asks, and what that caller may."""

from typing import NamedTuple

from reflexarc.accounts.keys import VirtualKey
from reflexarc.gateway.config_pool import TIERS, Tier


class Caller(NamedTuple):
    """`tenant` stands for whose the request is; nothing is ever shared between tenants. `key` is a
    virtual one of ours, None where it came with another or none."""

    tenant: bytes
    key: VirtualKey | None = None

    @property
    def virtual(self) -> bool:
        return self.key is not None

    @property
    def tier(self) -> Tier | None:
        """The one that its requests belong to where they say nothing of it."""
        given = None if self.key is None else self.key.default_tier
        return next((tier for tier in TIERS if tier == given), None)

    @property
    def local_only(self) -> bool:
        return self.key is not None and self.key.local_only

    def may_use_reflex(self, path: str) -> bool:
        """Whether System 1 may be asked for it on a route."""
        return self.key is None or self.key.may_use_reflex(path)
