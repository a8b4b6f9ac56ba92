"""Virtual keys: what each may do. Only a keyed hash of a key's secret is ever kept."""

import base64
import hashlib
import re
import secrets
from collections.abc import Callable
from fnmatch import fnmatchcase

import msgspec

from reflexarc.accounts.budgets import Budget
from reflexarc.steps.errors import KeyRefusedError, NotAllowedError

PREFIX = "rx-"
_SECRET_BYTES = 32
_secret = re.compile(r"rx-[A-Za-z0-9_-]{43}")


class VirtualKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`tenant` is whose it is: keys of one tenant share sessions. Limits that are None do not bind.

    `models` (names clients ask for; a `*` stands for any characters), `tiers` and `reflexes`
    (paths of the routes on which System 1 may act for it) are None where all are allowed, and
    empty where none is. `default_tier`: taken where a request names none. `local_only`: nothing of
    its requests leaves for a provider that is not local. Times are Unix seconds.
    """

    id: str
    name: str
    tenant: str
    created_unix_s: float = 0.0
    budgets: tuple[Budget, ...] = ()
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    max_parallel: int | None = None
    models: tuple[str, ...] | None = None
    tiers: tuple[str, ...] | None = None
    reflexes: tuple[str, ...] | None = None
    default_tier: str | None = None
    local_only: bool = False
    expires_unix_s: float | None = None
    revoked: bool = False

    def check_alive(self, now_unix_s: float) -> None:
        """Raises `KeyRefusedError`."""
        if self.revoked:
            raise KeyRefusedError(f"the key {self.name} was revoked: ask for another")
        if self.expires_unix_s is not None and now_unix_s >= self.expires_unix_s:
            raise KeyRefusedError(f"the key {self.name} has expired: ask for another")

    def may_use_model(self, model: str) -> bool:
        return self.models is None or any(fnmatchcase(model, _plain(one)) for one in self.models)

    def may_use_reflex(self, route: str) -> bool:
        """Whether System 1 may act for it on a route, named by its path."""
        return self.reflexes is None or route in self.reflexes

    def check(self, model: str, tier: str) -> None:
        """Whether it may ask for this. Raises `NotAllowedError`."""
        if not self.may_use_model(model):
            raise NotAllowedError(
                f"the key {self.name} may not use the model {model!r}; it may use "
                f"{_listed(self.models)}",
                "model",
            )
        if self.tiers is not None and tier not in self.tiers:
            raise NotAllowedError(
                f"the key {self.name} may not use the tier {tier!r}; it may use "
                f"{_listed(self.tiers)}",
                "tier",
            )


def new_secret(random_bytes: Callable[[int], bytes] = secrets.token_bytes) -> str:
    """`rx-` and 43 characters that need no quoting in a URL: 256 random bits."""
    drawn = base64.urlsafe_b64encode(random_bytes(_SECRET_BYTES)).decode().rstrip("=")
    return PREFIX + drawn


def is_secret(text: str) -> bool:
    """Whether a key that came with a request has the form of one of ours."""
    return _secret.fullmatch(text) is not None


def hash_of(state_secret: bytes, text: str) -> str:
    """What is kept of a key's secret: 64 hexadecimal digits, keyed by the state directory's."""
    return _hash(state_secret, text, b"reflexarc key", 32)


def session_hash(state_secret: bytes, session: str) -> str:
    """What is kept of a session's name: 16 hexadecimal digits; nothing of no session."""
    return _hash(state_secret, session, b"account session", 8) if session else ""


def _hash(state_secret: bytes, text: str, person: bytes, size: int) -> str:
    data = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, key=state_secret[:64], person=person, digest_size=size).hexdigest()


def _plain(pattern: str) -> str:
    """A star is the only sign with a meaning."""
    return pattern.replace("[", "[[]").replace("?", "[?]")


def _listed(names: tuple[str, ...] | None) -> str:
    return ", ".join(names or ()) or "none"
