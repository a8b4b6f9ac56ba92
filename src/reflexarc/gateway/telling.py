"""What the client of a driven request is told: an answer, a refusal as it was said, or a fault."""

from collections.abc import Callable
from typing import Any, cast

from reflexarc.gateway.answer_heads import answer_headers
from reflexarc.gateway.asgi import Headers, Send
from reflexarc.gateway.attempting import Attempt, Content, Refused
from reflexarc.gateway.converted import retry_headers
from reflexarc.gateway.exchange import Exchange
from reflexarc.gateway.labels import own_headers
from reflexarc.gateway.metrics import Metrics
from reflexarc.gateway.planning import Plan
from reflexarc.gateway.prefix_watch import PrefixWatch
from reflexarc.gateway.pruning import pruned_header
from reflexarc.gateway.replying import ClientReply
from reflexarc.steps.errors import MalformedError, UpstreamError
from reflexarc.wire.dialects import dialect
from reflexarc.wire.errors import error_face
from reflexarc.wire.faults import Fault
from reflexarc.wire.json import decode_strict, encode_json
from reflexarc.wire.losses import HEADER

_JSON = b"application/json"
# An upstream that says more than this after its last event, or says nothing, is hung up on.
_REST_S = 1.0


class Teller:
    """One request's client. Clients of streams get a sign of life after `ping_s` of silence."""

    def __init__(
        self,
        exchange: Exchange,
        plan: Plan,
        send: Send,
        clock_s: Callable[[], float],
        metrics: Metrics,
        ping_s: float,
        prefixes: PrefixWatch,
    ) -> None:
        self._exchange = exchange
        self._plan = plan
        self._clock_s = clock_s
        self._metrics = metrics
        self._prefixes = prefixes
        self.final = False
        """Whether the client should not try again for another reason than that others failed."""
        self._reply = ClientReply(
            send,
            exchange.client,
            exchange.request_id,
            self._own_headers,
            ping_s if plan.stream else None,
        )

    async def answer(self, attempt: Attempt, content: Content) -> int:
        """The status the client saw."""
        self._counts(attempt)
        headers = self._headers(attempt)
        if content.relay is None:
            streams = content.content_type.lower().startswith(b"text/event-stream")
            if self._reply.head_out and not streams:
                said = "the upstream answered whole where a stream was asked for, and has begun"
                return await self.fault(Fault("upstream", said, 502, code="upstream_malformed"))
            return await self._reply.whole(
                content.status, content.out, headers, content.content_type
            )
        relay, out = content.relay, content.out
        self._reply.relay = relay
        await self._reply.begin(200, headers, content.content_type)
        relay.committed = True
        while not relay.over:
            if out:
                await self._reply.out(out, more=True)
            out = await attempt.more(relay)
        await self._reply.out(out, more=False)
        if relay.fault is None:
            await attempt.rest(_REST_S)
        else:
            self._metrics.upstream_error(self._exchange.route, relay.fault.code or "upstream")
        return 200

    async def refused(self, attempt: Attempt, refused: Refused) -> int:
        """What the last deployment said, as it said it where the client reads that: not a page in
        place of an error of the API, nor the error of another one."""
        self._counts(attempt)
        fault = refused.fault
        hint_s = fault.retry_after_s if fault.retry_after_s is not None else refused.cool_s
        if not refused.body or self._reply.head_out:
            return await self.fault(fault, refused.error)
        self._metrics.upstream_error(self._exchange.route, fault.code or fault.kind)
        headers = self._headers(attempt)
        conversion = attempt.prepared.conversion
        names = (b"request-id", b"x-request-id")
        known_as = next((value for name, value in headers if name in names), b"").decode("latin-1")
        kind = _JSON
        if conversion is not None:
            status, body, _ = conversion.fault(refused.status, refused.body, known_as, hint_s)
        elif _reads(self._exchange.client, refused.body):
            status, body, kind = refused.status, refused.body, refused.content_type or _JSON
        else:
            status, value = dialect(self._exchange.client).write_fault(fault, known_as)
            body = encode_json(value)
        if hint_s is not None:
            headers.extend(retry_headers(hint_s, headers))
        if self.final or len(self._exchange.attempts) > 1:
            headers = [pair for pair in headers if pair[0] != b"x-should-retry"]
            headers.append((b"x-should-retry", b"false"))
        return await self._reply.whole(status, body, headers, kind)

    async def fault(self, fault: Fault, error: UpstreamError | None = None) -> int:
        """A fault of our own (`error`, if it is one), or one that stood inside an answer."""
        exchange = self._exchange
        self._metrics.upstream_error(exchange.route, fault.code or fault.kind)
        if self._reply.head_out:
            await self._reply.fault(fault)
            return 200
        if error is not None:
            status, body = error_face(error, exchange.client, exchange.request_id)
        else:
            known_as = exchange.request_id.decode("latin-1")
            status, value = dialect(exchange.client).write_fault(fault, known_as)
            body = encode_json(value)
        headers = self._own_headers()
        if fault.retry_after_s is not None:
            headers.extend(retry_headers(fault.retry_after_s, headers))
        if exchange.attempts:
            headers.append((b"x-should-retry", b"false"))
        return await self._reply.whole(status, body, headers, _JSON)

    async def cut(self, fault: Fault) -> None:
        """A stream that is on its way ends here."""
        if self._reply.head_out:
            await self._reply.fault(fault)

    def stop(self) -> None:
        self._reply.stop()

    def _counts(self, attempt: Attempt) -> None:
        """This attempt is the one that the exchange speaks of."""
        exchange = self._exchange
        exchange.copy = attempt.copy
        exchange.upstream = attempt.prepared.dialect
        exchange.conversion = attempt.prepared.conversion
        exchange.head_s = attempt.head_s

    def _headers(self, attempt: Attempt) -> Headers:
        answer = attempt.answer
        exchange = self._exchange
        conversion = attempt.prepared.conversion
        headers = answer_headers(
            answer.headers if answer is not None else (),
            attempt.status,
            exchange.client,
            exchange.request_id,
            exchange.label(),
            (attempt.began_s - exchange.began_s) * 1e3,
            ((attempt.head_s or attempt.began_s) - attempt.began_s) * 1e3,
            converted=conversion is not None,
            decoded=True,
        )
        if conversion is not None:
            said = "; ".join(
                text
                for losses in (conversion.losses, conversion.answer_losses)
                if (text := losses.text())
            )
            if said:
                headers.append((HEADER, said.encode("ascii")))
        name = attempt.watched.deployment.name.encode("ascii", "replace")
        headers.append((b"x-reflexarc-upstream", name))
        headers += self._prefixes.header(exchange, attempt.watched)
        headers += pruned_header(exchange.pruned)
        return [*headers, *self._driven()]

    def _own_headers(self) -> Headers:
        exchange = self._exchange
        total_ms = (self._clock_s() - exchange.began_s) * 1e3
        headers = own_headers(
            exchange.request_id, exchange.label(), exchange.client, reflexarc=total_ms
        )
        return [*headers, *self._driven()]

    def _driven(self) -> Headers:
        return [
            (b"x-reflexarc-tier", self._plan.tier.encode()),
            (b"x-reflexarc-attempts", str(len(self._exchange.attempts)).encode()),
        ]


def _reads(client: str, body: bytes) -> bool:
    """Whether an error's body has the form that clients of a dialect go by. Those of OpenAI's take
    any object."""
    try:
        value: Any = decode_strict(body, "error")
    except MalformedError:
        return False
    if client == "gemini" and isinstance(value, list) and value:
        value = cast("list[Any]", value)[0]
    if not isinstance(value, dict):
        return False
    members = cast("dict[str, Any]", value)
    error = members.get("error")
    if client == "messages":
        return members.get("type") == "error" and isinstance(error, dict)
    if client == "gemini":
        return isinstance(error, dict) and isinstance(
            cast("dict[str, Any]", error).get("code"), int
        )
    return True
