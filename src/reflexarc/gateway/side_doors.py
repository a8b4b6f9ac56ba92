"""What clients ask beside a model's answers: lists of models, counts of tokens.

Where the upstream speaks the client's dialect the bytes pass as they are; else the answer is made
of what the upstream can say. A count that nothing upstream can give is an estimate, and says so.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import msgspec
import yarl

from reflexarc.gateway.accounting import Accounting
from reflexarc.gateway.asgi import Arrival, Headers, read_body, send_whole
from reflexarc.gateway.callers import Caller
from reflexarc.gateway.chains import Chains
from reflexarc.gateway.config import Limits
from reflexarc.gateway.converted import retry_headers, retry_hint_s
from reflexarc.gateway.converting import UnfitError
from reflexarc.gateway.doors import Door
from reflexarc.gateway.exchange import Exchange
from reflexarc.gateway.forwarding import Forwarder
from reflexarc.gateway.kept_door import KeptDoor
from reflexarc.gateway.labels import own_headers
from reflexarc.gateway.pool_desk import PoolDesk
from reflexarc.steps.errors import MalformedError, RequestError, UpstreamError
from reflexarc.upstream import Transport, converted_request_headers, forwarded_request_headers
from reflexarc.wire.converting import TurnMemory, read_ask
from reflexarc.wire.counting import Counting, counting_of, estimated_input, vocabulary_counting
from reflexarc.wire.dialects import dialect
from reflexarc.wire.errors import error_face
from reflexarc.wire.json import decode_strict, encode_json
from reflexarc.wire.models import Model, read_models, write_model, write_models
from reflexarc.wire.turns import Ask

_NONE = b"none"
_MAX_LIST_BYTES = 16 * 1024 * 1024
ESTIMATED = b"x-reflexarc-estimated"


class SideDesk:
    """Answers at doors that are not a model's; `pooled` at those of pooled routes."""

    def __init__(
        self,
        limits: Limits,
        forwarder: Forwarder,
        transport: Transport,
        chains: Chains,
        accounting: Accounting,
        pooled: PoolDesk,
        clock_s: Callable[[], float],
        unix_time: Callable[[], float] = time.time,
    ) -> None:
        self._limits = limits
        self._forwarder = forwarder
        self._transport = transport
        self._kept = KeptDoor(chains)
        self._accounting = accounting
        self._pooled = pooled
        self._clock_s = clock_s
        self._unix_time = unix_time
        self._memory = TurnMemory(8 * 1024 * 1024)
        # Upstreams of routes, which are configured: so the set is bounded.
        self._uncounting: set[str] = set()

    async def answer(self, door: Door, url: yarl.URL, arrival: Arrival, method: str) -> int:
        """The status the client saw. Raises an `AccountError` for a key that is refused."""
        caller = await self._accounting.caller(arrival.headers)
        if door.kind == "kept":
            kept = await self._kept.answer(door, caller.tenant.hex(), method)
            if kept is not None:
                return await self._tell(door, arrival, *kept)
        door = _whose_list(door, arrival.headers)
        if door.route.pooled:
            return await self._of_pool(door, arrival, caller)
        if door.client == door.upstream or (door.client, door.upstream) in _ALIKE:
            return await self._pass_on(door, url, arrival, method)
        try:
            if door.kind == "count":
                return await self._count(door, arrival)
            return await self._models(door, arrival)
        except UpstreamError as error:
            status, body = error_face(error, door.client, arrival.request_id)
            return await self._tell(door, arrival, status, body)

    async def _of_pool(self, door: Door, arrival: Arrival, caller: Caller) -> int:
        """What is configured, and what a deployment counts, or was learned of it."""
        if door.kind == "count":
            own = counting_of(door.client)
            if own is None:
                raise RequestError(f"the dialect {door.client} has no count of tokens")
            ask = await self._read_count(door, arrival, own)
            count, exact = await self._pooled.count(door.route, ask, arrival.headers, caller)
            more = () if exact else ((ESTIMATED, b"input_tokens"),)
            return await self._tell(door, arrival, 200, encode_json(own.write(count)), more)
        models = self._pooled.models(door.route, caller)
        if door.kind == "models":
            listed = write_models(models, door.client, int(self._unix_time()))
            return await self._tell(door, arrival, 200, encode_json(listed))
        wanted = door.rest.removeprefix("models/")
        found = next((one for one in models if one.id == wanted), None)
        return await self._one(door, arrival, wanted, found)

    async def _read_count(self, door: Door, arrival: Arrival, own: Counting) -> Ask:
        body = await read_body(arrival.headers, arrival.receive, self._limits.body_bytes)
        try:
            plain = own.asked(body)
            return read_ask(
                dialect(door.client), plain, door.where, self._memory, self._limits.json_depth
            )
        except RequestError as error:
            raise UnfitError(error) from error

    async def _pass_on(self, door: Door, url: yarl.URL, arrival: Arrival, method: str) -> int:
        body = None
        if method == "POST":
            body = await read_body(arrival.headers, arrival.receive, self._limits.body_bytes)
        exchange = Exchange(
            route=door.route.path,
            method=method,
            url=url,
            headers=forwarded_request_headers(arrival.headers, door.key),
            body=body,
            began_s=arrival.began_s,
            request_id=arrival.request_id,
            label=lambda: _NONE,
            client=door.client,
        )
        return await self._forwarder.forward(exchange, arrival)

    async def _count(self, door: Door, arrival: Arrival) -> int:
        own, counting = counting_of(door.client), counting_of(door.upstream)
        if own is None:
            raise RequestError(f"the dialect {door.client} has no count of tokens")
        ask = await self._read_count(door, arrival, own)
        if (
            counting is None
            and (exact := await self._by_vocabulary(door, arrival, ask)) is not None
        ):
            return await self._tell(door, arrival, 200, encode_json(own.write(exact)))
        told = None if counting is None else await self._counted(door, arrival, counting, ask)
        if told is not None and told.status >= 400 and told.status not in _NO_COUNT:
            return await self._tell_fault(door, arrival, told)
        if counting is None or told is None or told.status in _NO_COUNT:
            reply = encode_json(own.write(estimated_input(ask)))
            return await self._tell(door, arrival, 200, reply, ((ESTIMATED, b"input_tokens"),))
        try:
            count = counting.read(told.value("a count of tokens"))
        except MalformedError as error:
            raise UpstreamError(str(error)) from error
        return await self._tell(door, arrival, 200, encode_json(own.write(count)))

    async def _by_vocabulary(self, door: Door, arrival: Arrival, ask: Ask) -> int | None:
        """What a server counts that speaks chat and holds the model's vocabulary; None where it
        does not, and then it is not asked again."""
        if door.upstream != "chat" or door.route.upstream in self._uncounting:
            return None
        counting = vocabulary_counting()
        try:
            told = await self._counted(door, arrival, counting, ask)
            if told.status in _NO_COUNT:
                self._uncounting.add(door.route.upstream)
            return counting.read(told.value("a count")) if told.status == 200 else None
        except (UpstreamError, MalformedError):
            return None

    async def _counted(self, door: Door, arrival: Arrival, counting: Counting, ask: Ask) -> "_Told":
        try:
            path = counting.path(ask.settings.model)
        except RequestError as error:
            raise UnfitError(error) from error
        url = yarl.URL(f"{door.route.upstream.rstrip('/')}{path}", encoded=True)
        return await self._asked(door, arrival, "POST", url, counting.write_request(ask))

    async def _models(self, door: Door, arrival: Arrival) -> int:
        base = door.route.upstream.rstrip("/")
        url = yarl.URL(f"{base}/models{_WHOLE_LIST.get(door.upstream, '')}", encoded=True)
        told = await self._asked(door, arrival, "GET", url, None)
        if told.status >= 400:
            return await self._tell_fault(door, arrival, told)
        models = read_models(told.value("a list of models"), door.upstream)
        if door.kind == "models":
            listed = write_models(models, door.client, int(self._unix_time()))
            return await self._tell(door, arrival, 200, encode_json(listed))
        wanted = door.rest.removeprefix("models/")
        found = next((model for model in models if model.id == wanted), None)
        return await self._one(door, arrival, wanted, found)

    async def _one(self, door: Door, arrival: Arrival, wanted: str, found: Model | None) -> int:
        if found is None:
            error = _NoModelError(f"there is no model {wanted!r}")
            status, body = error_face(error, door.client, arrival.request_id)
            return await self._tell(door, arrival, status, body)
        written = write_model(found, door.client, int(self._unix_time()))
        return await self._tell(door, arrival, 200, encode_json(written))

    async def _asked(
        self, door: Door, arrival: Arrival, method: str, url: yarl.URL, body: bytes | None
    ) -> "_Told":
        headers = converted_request_headers(arrival.headers, door.key, door.upstream, stream=False)
        answer = await self._transport.send(method, url, headers, body)
        try:
            parts: list[bytes] = []
            size = 0
            async for chunk in answer.chunks():
                size += len(chunk)
                if size > _MAX_LIST_BYTES:
                    raise UpstreamError(f"the upstream answered more than {_MAX_LIST_BYTES} bytes")
                parts.append(chunk)
        finally:
            answer.release()
        return _Told(answer.status, b"".join(parts), answer.headers)

    async def _tell_fault(self, door: Door, arrival: Arrival, told: "_Told") -> int:
        """The upstream's error, with its status and its hint for trying again."""
        fault = dialect(door.upstream).read_fault(told.status, told.body)
        hint_s = fault.retry_after_s
        hint_s = retry_hint_s(told.headers) if hint_s is None else hint_s
        fault = msgspec.structs.replace(fault, retry_after_s=hint_s)
        status, written = dialect(door.client).write_fault(
            fault, arrival.request_id.decode("latin-1")
        )
        more = () if hint_s is None else tuple(retry_headers(hint_s, []))
        return await self._tell(door, arrival, status, encode_json(written), more)

    async def _tell(
        self,
        door: Door,
        arrival: Arrival,
        status: int,
        body: bytes,
        more: tuple[tuple[bytes, bytes], ...] = (),
    ) -> int:
        since_ms = (self._clock_s() - arrival.began_s) * 1e3
        headers = own_headers(arrival.request_id, _NONE, door.client, reflexarc=since_ms)
        headers.extend(more)
        await send_whole(arrival.send, status, headers, body, b"application/json")
        return status


class _Told(NamedTuple):
    """What the upstream answered."""

    status: int
    body: bytes
    headers: Sequence[tuple[bytes, bytes]]

    def value(self, what: str) -> dict[str, Any]:
        """Raises `UpstreamError` for what is no answer to that."""
        try:
            value = decode_strict(self.body, "the upstream's answer")
        except MalformedError:
            value = None
        if self.status != 200 or not isinstance(value, dict):
            raise UpstreamError(
                f"the upstream answered {what} with status {self.status} and what cannot be read"
            )
        return cast("dict[str, Any]", value)


_NO_COUNT = frozenset({404, 405, 501})
"""How an upstream says that it does not count."""
_WHOLE_LIST = {"messages": "?limit=1000", "gemini": "?pageSize=1000"}
"""Else these list some of their models only."""
_ALIKE = frozenset({("chat", "responses"), ("responses", "chat")})
"""One provider's two dialects: their models are one list."""


class _NoModelError(RequestError):
    code = "model_not_found"
    status = 404


def _whose_list(door: Door, headers: Headers) -> Door:
    """`/v1/models` is asked for by clients of several dialects, who show themselves by headers."""
    if door.kind not in ("models", "model") or door.client != "chat":
        return door
    names = {name for name, _ in headers}
    if b"anthropic-version" in names:
        return door.of_client("messages")
    if names & {b"x-goog-api-key", b"x-goog-api-client"}:
        return door.of_client("gemini")
    return door
