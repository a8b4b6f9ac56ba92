"""What a request to a pooled route asks for: which model, in which tier, of which deployments."""

import hashlib
import math
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from reflexarc.gateway.asgi import Headers, header
from reflexarc.gateway.config_pool import Tier, TierConfig, TiersConfig
from reflexarc.gateway.doors import Door
from reflexarc.gateway.pool import Pool
from reflexarc.gateway.prefixes import beginning_of
from reflexarc.gateway.told import Told
from reflexarc.steps.errors import MalformedError, RequestError
from reflexarc.upstream.affinity import Prefix
from reflexarc.upstream.deployments import Deployment
from reflexarc.wire.dialects import dialect
from reflexarc.wire.growing import Grown, take_apart
from reflexarc.wire.json import decode_strict
from reflexarc.wire.turns import Ask

_SESSION_HEADERS = (b"x-session-id", b"x-session-affinity", b"x-correlation-id")
_LIMITS = {
    "chat": ("max_completion_tokens", "max_tokens"),
    "responses": ("max_output_tokens",),
    "messages": ("max_tokens",),
    "gemini": ("maxOutputTokens",),
}
_CHOICES = {"chat": "n", "gemini": "candidateCount"}
_BY_SERVICE_TIER: dict[str, Tier] = {"priority": "interactive", "flex": "batch"}
_MAX_NAME_BYTES = 256
_MOST = 2**53


class Plan(msgspec.Struct):
    """`model` is the configured one; `served` its deployments in this tier, in order of
    preference. `body` is plain, `members` its members. `session` tells one conversation from
    others of the same caller; `prefix` is its prompt as caches see it. `ask` is the request read
    whole, once it was. `max_output`: tokens that an answer is bounded to, None where it is not;
    `choices`: answers asked for at once. `service_tier`: the client's own word, which passes where
    a deployment has none."""

    model: str
    tier: Tier
    limits: TierConfig
    served: tuple[Deployment, ...]
    body: bytes
    members: Mapping[str, msgspec.Raw]
    stream: bool
    session: str
    tenant: str
    local_only: bool
    prefix: Prefix = Prefix()
    max_output: int | None = None
    choices: int = 1
    service_tier: str = ""
    ask: Ask | None = None


class Planner:
    """`pool` says what there is, `tiers` what each tier wants."""

    def __init__(self, pool: Pool, tiers: TiersConfig) -> None:
        self._pool = pool
        self._tiers = tiers

    def plan(
        self,
        door: Door,
        headers: Headers,
        told: Told,
        body: bytes,
        tenant: str,
        tier: Tier | None = None,
        *,
        local_only: bool = False,
        grown: Grown | None = None,
    ) -> Plan:
        """`body` is plain JSON; `grown`: it taken apart, if it is already. `tier` and `local_only`
        as the caller's key says. Raises `InputError`: a model that there is not, a tier that is
        none, nowhere to go."""
        if grown is None:
            grown = take_apart(body, dialect(door.client).conversation)
        members = grown.members
        model = self._pool.model_of(door.route, asked_model(door, members))
        stream = door.where.stream or _is_true(members.get("stream"))
        chosen = told.tier or tier or door.route.tier or _inferred(members, stream=stream)
        begins = beginning_of(door.client, grown)
        stays = local_only or told.local_only or door.route.local_only
        return Plan(
            model=model,
            tier=chosen,
            limits=getattr(self._tiers, chosen),
            served=self._pool.served(model, chosen, local_only=stays),
            body=body,
            members=members,
            stream=stream,
            session=told.session or _session(headers, members, begins.opening),
            tenant=tenant,
            local_only=stays,
            prefix=begins.prefix,
            max_output=max_output(door, members),
            choices=choices(door, members),
            service_tier=_service_tier(members),
        )


def asked_model(door: Door, members: Mapping[str, msgspec.Raw]) -> str:
    if door.where.model:
        return door.where.model
    value = _value(members, "model")
    if not isinstance(value, str) or not value:
        raise RequestError("model must name a model", param="model")
    return value


def _inferred(members: Mapping[str, msgspec.Raw], *, stream: bool) -> Tier:
    """Where a step belongs that says nothing of it: one whose client reads along is waited for."""
    usual: Tier = "interactive" if stream else "standard"
    return _BY_SERVICE_TIER.get(_service_tier(members), usual)


def _service_tier(members: Mapping[str, msgspec.Raw]) -> str:
    asked = _value(members, "service_tier")
    return asked if isinstance(asked, str) else ""


def named_session(headers: Headers, members: Mapping[str, msgspec.Raw]) -> str:
    """What a client names its conversation; nothing where it does not, or by no name."""
    for name in _SESSION_HEADERS:
        given = header(headers, name)
        if given and len(given) <= _MAX_NAME_BYTES:
            return given.decode("latin-1")
    try:
        named = _value(members, "prompt_cache_key")
    except MalformedError:  # who is asked judges
        return ""
    return named[:_MAX_NAME_BYTES] if isinstance(named, str) else ""


def _session(
    headers: Headers, members: Mapping[str, msgspec.Raw], opening: tuple[bytes, ...]
) -> str:
    """What a client names its conversation, else what the conversation begins with."""
    if named := named_session(headers, members):
        return named
    digest = hashlib.blake2b(digest_size=12)
    for piece in opening:
        digest.update(piece)
    return f"~{digest.hexdigest()}"


def max_output(door: Door, members: Mapping[str, msgspec.Raw]) -> int | None:
    """Tokens that each answer is bounded to: of several limits the largest, whichever a provider
    goes by."""
    given = (_number(_setting(door, members, name)) for name in _LIMITS[door.client])
    return max((one for one in given if one), default=None)


def choices(door: Door, members: Mapping[str, msgspec.Raw]) -> int:
    """Answers asked for at once: each may be as long as its limit, and each is paid."""
    name = _CHOICES.get(door.client)
    return 1 if name is None else _number(_setting(door, members, name)) or 1


def _setting(door: Door, members: Mapping[str, msgspec.Raw], name: str) -> Any:
    if door.client != "gemini":
        return _value(members, name)
    held = _value(members, "generationConfig")
    return cast("dict[str, Any]", held).get(name) if isinstance(held, dict) else None


def _number(given: Any) -> int | None:
    """A whole number over 0, however it is spelt."""
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given < _MOST:
        return None
    return math.ceil(given)


def _value(members: Mapping[str, msgspec.Raw], name: str) -> Any:
    raw = members.get(name)
    return None if raw is None else decode_strict(bytes(raw), name)


def _is_true(raw: msgspec.Raw | None) -> bool:
    return raw is not None and bytes(raw) == b"true"
