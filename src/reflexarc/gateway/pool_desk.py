"""What pooled routes answer beside a model's answers: their models, and counts of tokens."""

import asyncio
import contextlib
from typing import Any, cast

import msgspec
import yarl

from reflexarc.gateway.asgi import Headers
from reflexarc.gateway.callers import Caller
from reflexarc.gateway.config import EMBEDDED, Route
from reflexarc.gateway.pool import NoModelError, Pool
from reflexarc.gateway.told import told
from reflexarc.steps.errors import InputError, UpstreamError
from reflexarc.upstream import KEY_NAMES, Reach, Transport, converted_request_headers
from reflexarc.upstream.deployments import Deployment
from reflexarc.upstream.ratios import Ratios
from reflexarc.wire.counting import (
    BYTES_PER_TOKEN,
    counting_of,
    estimated_input,
    vocabulary_counting,
)
from reflexarc.wire.json import decode_strict
from reflexarc.wire.models import Model
from reflexarc.wire.turns import Ask

_VOCABULARIES = frozenset({EMBEDDED, "llamacpp"})
"""Kinds that count a chat request exactly, with the vocabulary they have loaded."""
_COUNT_S = 10.0
_MAX_BYTES = 64 * 1024
_KEYS = frozenset(KEY_NAMES)


class PoolDesk:
    """`ratios` is what was learned of bytes and tokens."""

    def __init__(self, pool: Pool, ratios: Ratios, transport: Transport) -> None:
        self._pool = pool
        self._ratios = ratios
        self._transport = transport

    def models(self, route: Route, caller: Caller) -> list[Model]:
        """Those that a caller may ask for."""
        return [
            one
            for one in self._pool.models(route)
            if caller.key is None or caller.key.may_use_model(one.id)
        ]

    async def count(
        self, route: Route, ask: Ask, headers: Headers, caller: Caller
    ) -> tuple[int, bool]:
        """Tokens of a request, and whether they were counted: by the first deployment that can.
        Else they are estimated, as that deployment's answers taught. Raises `InputError`: a model
        that there is not, or a header that is not understood."""
        model = self._pool.model_of(route, ask.settings.model)
        if caller.key is not None and not caller.key.may_use_model(model):
            raise NoModelError(f"there is no model {ask.settings.model[:80]!r} for this key")
        stays = route.local_only or caller.local_only or told(headers).local_only
        served = self._pool.served(model, "standard", local_only=stays)
        for deployment in served:
            counted = await self._counted(deployment, ask, headers, caller)
            if counted is not None:
                return counted, True
        size = estimated_input(ask) * BYTES_PER_TOKEN
        return self._ratios.tokens(served[0].kin, size), False

    async def _counted(
        self, deployment: Deployment, ask: Ask, headers: Headers, caller: Caller
    ) -> int | None:
        settings = msgspec.structs.replace(ask.settings, model=deployment.model, stream=False)
        asked = msgspec.structs.replace(ask, settings=settings)
        spoken = deployment.dialects[0]
        counting = counting_of(spoken)
        if counting is None and deployment.kind in _VOCABULARIES:
            counting = vocabulary_counting()
        if counting is None:
            return None
        try:
            path, body = counting.path(deployment.model), counting.write_request(asked)
            answer = await self._told(deployment, spoken, path, body, headers, caller)
            return None if answer is None else counting.read(answer)
        except (InputError, UpstreamError, TimeoutError):
            return None

    async def _told(
        self,
        deployment: Deployment,
        spoken: str,
        path: str,
        body: bytes,
        headers: Headers,
        caller: Caller,
    ) -> dict[str, Any] | None:
        passes = deployment.passes_key and not caller.virtual
        given = [pair for pair in headers if passes or pair[0] not in _KEYS]
        sent = converted_request_headers(given, deployment.key(spoken), spoken, stream=False)
        url = yarl.URL(f"{deployment.base.rstrip('/')}{path}", encoded=True)
        reach = Reach(deployment.private, deployment.timeouts, not deployment.local)
        async with asyncio.timeout(_COUNT_S):
            answer = await self._transport.send("POST", url, sent, body, reach)
            with contextlib.ExitStack() as stack:
                stack.callback(answer.release)
                whole = b""
                while answer.status == 200 and (chunk := await answer.next_chunk()):
                    whole += chunk
                    if len(whole) > _MAX_BYTES:
                        return None
        value = decode_strict(whole, "a count") if answer.status == 200 else None
        return cast("dict[str, Any]", value) if isinstance(value, dict) else None
