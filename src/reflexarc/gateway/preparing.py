"""One deployment's request, made of the client's: its model, its key, its dialect."""

import hashlib
from collections.abc import Callable

import msgspec
import yarl

from reflexarc.gateway.asgi import Headers
from reflexarc.gateway.config import EMBEDDED
from reflexarc.gateway.converting import Converting, UnfitError
from reflexarc.gateway.planning import Plan
from reflexarc.steps.errors import MalformedError, RequestError
from reflexarc.upstream import (
    KEY_NAMES,
    Reach,
    converted_request_headers,
    forwarded_request_headers,
)
from reflexarc.upstream.deployments import Deployment
from reflexarc.upstream.embedded import engine_headers
from reflexarc.wire.chat_answer import OWN_ID_START, own_ids_fitted
from reflexarc.wire.converting import Conversion
from reflexarc.wire.dialect import Where
from reflexarc.wire.json import encode_json
from reflexarc.wire.members import with_member
from reflexarc.wire.replies import Reply
from reflexarc.wire.turns import Ask

_ENCODINGS = frozenset({b"content-encoding", b"accept-encoding"})
_KEYS = frozenset(
    {
        *KEY_NAMES,
        b"openai-organization",
        b"openai-project",
        b"x-goog-user-project",
        b"ocp-apim-subscription-key",
        b"cookie",
    }
)
"""Keys, and what tells whose account is meant: nothing to a provider with a key of its own."""
# Each has its own ways with a session: one name for all of them keeps its cache apart from others'.
_TOLD_SESSIONS = frozenset({EMBEDDED, "vllm", "sglang", "llamacpp"})
_LONG_BYTES = 1024 * 1024


class Prepared(msgspec.Struct):
    """What is sent to one deployment. `dialect` is what it is asked in; `conversion` brings its
    answer back, None where that is the client's own. `drop_usage`: usage was asked for that the
    client did not ask for."""

    url: yarl.URL
    headers: list[tuple[str, str]]
    body: bytes
    dialect: str
    reach: Reach
    conversion: Conversion | None = None
    drop_usage: bool = False


class Asking(msgspec.Struct, frozen=True):
    """The client's side of a request: the dialect it came in, its headers, what its URL says.
    `virtual`: its key is one of ours, and goes nowhere. `previous`: the answer it goes on from,
    echoed in converted ones. `on_reply` is shown converted replies. `finish` makes of a
    request in a dialect what is sent of it."""

    client: str
    where: Where
    headers: Headers
    virtual: bool
    previous: str | None = None
    on_reply: Callable[[Conversion, Reply], None] | None = None
    finish: Callable[[bytes, str], bytes] | None = None


class Preparing:
    """`secret` makes names of sessions that nobody can guess."""

    def __init__(self, converting: Converting, secret: bytes) -> None:
        self.converting = converting
        self._secret = secret

    async def ask(self, plan: Plan, asking: Asking) -> Ask:
        """The request read whole, once for all deployments. Raises `InputError`."""
        if plan.ask is None:
            tenant = bytes.fromhex(plan.tenant)
            plan.ask = await self.converting.read(
                asking.client, asking.where, plan.body, "", tenant
            )
        return plan.ask

    async def prepared(self, plan: Plan, asking: Asking, deployment: Deployment) -> Prepared:
        """Raises `InputError` for what this deployment cannot be asked."""
        dialect = deployment.spoken(asking.client)
        key = deployment.key(dialect)
        headers = [
            (name, value)
            for name, value in asking.headers
            if name not in _ENCODINGS
            and not (name in _KEYS and (asking.virtual or not deployment.passes_key))
        ]
        try:
            url = deployment.url(dialect, stream=plan.stream)
        except RequestError as error:
            raise UnfitError(error) from error
        reach = Reach(deployment.private, deployment.timeouts, not deployment.local)
        drop_usage = False
        if dialect == asking.client:
            sent = forwarded_request_headers(headers, key)
            sent.append(("accept-encoding", "identity"))
            body, conversion = self._same(plan, deployment, dialect), None
            if dialect == "chat" and plan.stream and "stream_options" not in plan.members:
                # Without it nobody would know what the answer cost.
                body = with_member(body, "stream_options", b'{"include_usage":true}') or body
                drop_usage = True
        else:
            sent = converted_request_headers(headers, key, dialect, stream=plan.stream)
            conversion, body = await self._converted(plan, asking, deployment, dialect)
        if asking.finish is not None:
            body = asking.finish(body, dialect)
        if deployment.kind in _TOLD_SESSIONS:
            sent = [pair for pair in sent if pair[0] != "x-session-id"]
            if deployment.kind == EMBEDDED:
                sent.extend(engine_headers(plan.tenant, self._session(plan)))
            else:
                sent.append(("x-session-id", self._session(plan)))
        return Prepared(url, sent, body, dialect, reach, conversion, drop_usage)

    def _same(self, plan: Plan, deployment: Deployment, dialect: str) -> bytes:
        """Every byte but those of the model, and of the service tier where it has one."""
        body: bytes | None = plan.body
        if dialect != "gemini":
            body = with_member(plan.body, "model", encode_json(deployment.model), plan.members)
        if body is not None and deployment.service_tier:
            tier = encode_json(deployment.service_tier)
            name = "serviceTier" if dialect == "gemini" else "service_tier"
            body = with_member(body, name, tier)
        if body is None:
            raise MalformedError("the body is not one plain JSON object")
        if deployment.call_ids == "mistral" and OWN_ID_START in body:
            body = own_ids_fitted(body)
        return body

    async def _converted(
        self, plan: Plan, asking: Asking, deployment: Deployment, dialect: str
    ) -> tuple[Conversion, bytes]:
        ask = await self.ask(plan, asking)
        tier = deployment.service_tier or ask.settings.service_tier
        settings = msgspec.structs.replace(
            ask.settings, model=deployment.model, service_tier=tier, previous=None
        )
        asked = msgspec.structs.replace(ask, settings=settings)
        conversion, body = await self.converting.convert(
            asked,
            asking.client,
            dialect,
            deployment.call_ids,
            slowly=len(plan.body) > _LONG_BYTES,
        )
        # The client's answer echoes what the client asked.
        echoed = msgspec.structs.replace(ask.settings, previous=asking.previous)
        conversion.ask = msgspec.structs.replace(ask, settings=echoed)
        if (on_reply := asking.on_reply) is not None:
            conversion.on_reply = lambda reply: on_reply(conversion, reply)
        return conversion, body

    def _session(self, plan: Plan) -> str:
        named = f"{plan.tenant}\0{plan.session}".encode()
        return hashlib.blake2b(named, key=self._secret[:64], digest_size=16).hexdigest()
