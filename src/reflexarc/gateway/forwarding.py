"""Passes one request to System 2 and its answer back, byte for byte.

The client is watched while it waits: when it leaves, the upstream call is cancelled.
"""

import asyncio
import re
from collections.abc import Callable

from reflexarc.gateway.answer_heads import answer_headers
from reflexarc.gateway.asgi import Arrival, Headers, Send, send_whole
from reflexarc.gateway.client_watch import ClientWatch
from reflexarc.gateway.converted import Converter
from reflexarc.gateway.copying import Copy
from reflexarc.gateway.driving import Driver
from reflexarc.gateway.exchange import Exchange
from reflexarc.gateway.labels import own_headers
from reflexarc.gateway.metrics import Metrics
from reflexarc.gateway.prefix_watch import PrefixWatch
from reflexarc.gateway.pruning import pruned_header
from reflexarc.steps.errors import UpstreamError
from reflexarc.upstream import Answer, Transport, never_sent
from reflexarc.wire.converting import Conversion
from reflexarc.wire.errors import error_event, error_face
from reflexarc.wire.faults import Fault

_CLIENT_GONE_STATUS = 499
# How upstreams say that they do not take a request as it is.
_REFUSALS = frozenset({400, 422})
# What the server would not write: it comes to light before the head is begun.
_bad_name = re.compile(rb"[\x00-\x20()<>@,;:\\\[\]={}\"\x7f]")
_bad_value = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


class Forwarder:
    """Stateless but for its transport and counters."""

    def __init__(
        self,
        transport: Transport,
        metrics: Metrics,
        clock_s: Callable[[], float],
        driver: Driver | None = None,
        prefixes: PrefixWatch | None = None,
    ) -> None:
        """`driver` answers exchanges that have a plan."""
        self._driver = driver
        self._prefixes = prefixes
        self._transport = transport
        self._metrics = metrics
        self._clock_s = clock_s

    async def forward(self, exchange: Exchange, arrival: Arrival) -> int:
        """Sends on, answers, and returns the HTTP status the client saw (499: it left)."""
        watch = ClientWatch(arrival.receive)
        try:
            if exchange.plan is not None and self._driver is not None:
                return await self._driver.drive(exchange, exchange.plan, arrival.send, watch)
            return await self._forward(exchange, arrival.send, watch)
        except asyncio.CancelledError:
            if not watch.gone:
                raise
            watch.absorb_cancellation()
            self._metrics.client_gone(exchange.route)
            return _CLIENT_GONE_STATUS
        finally:
            watch.stop()

    async def _forward(self, exchange: Exchange, send: Send, watch: ClientWatch) -> int:
        exchange.sent_s = sent_s = self._clock_s()
        answer: Answer | None = None
        try:
            body = exchange.outgoing if exchange.forced is None else exchange.forced
            answer = await self._transport.send(
                exchange.method, exchange.url, exchange.headers, body
            )
            if exchange.forced is not None and answer.status in _REFUSALS:
                answer.release()
                exchange.forced_refused = True
                answer = await self._transport.send(
                    exchange.method, exchange.url, exchange.headers, exchange.outgoing
                )
            exchange.head_s = head_s = self._clock_s()
            _check_head(answer)
            if exchange.conversion is not None:
                return await self._convert(exchange, exchange.conversion, answer, send, watch)
            # The head waits for the first byte: until then a failure still has its own status.
            chunk = await answer.next_chunk()
        except UpstreamError as error:
            if answer is not None:
                answer.release()
            self._metrics.upstream_error(exchange.route, error.code)
            return await self._answer_error(exchange, error, send)
        except BaseException:  # a cancellation, or a fault of ours: its connection goes with it
            if answer is not None:
                answer.release()
            raise
        headers = self._headers(exchange, answer, sent_s, head_s)
        try:
            await send({"type": "http.response.start", "status": answer.status, "headers": headers})
            await _pass_back(exchange.copy, answer, chunk, send)
        except UpstreamError as error:
            self._metrics.upstream_error(exchange.route, error.code)
            await _break_off(exchange, answer, error.status, str(error), error.code, send)
        except asyncio.CancelledError:
            if not watch.gone:
                said = "the gateway was stopped inside this answer"
                await _break_off(exchange, answer, 503, said, "gateway_stopped", send)
            raise
        finally:
            answer.release()
        self._metrics.forwarded(sent_s - exchange.began_s, head_s - sent_s)
        return answer.status

    async def _convert(
        self,
        exchange: Exchange,
        conversion: Conversion,
        answer: Answer,
        send: Send,
        watch: ClientWatch,
    ) -> int:
        """Raises an `UpstreamError` while the client was told nothing."""
        converter = Converter(
            conversion,
            exchange.copy,
            exchange.request_id.decode("latin-1"),
            lambda answer: self._headers(exchange, answer, exchange.sent_s, exchange.head_s),
            send,
        )
        try:
            status = await converter.answer(answer)
        except asyncio.CancelledError:
            if not watch.gone:
                said = "the gateway was stopped inside this answer"
                await converter.cut(Fault("overloaded", said, 503, code="gateway_stopped"))
            raise
        watch.stop()  # a client that leaves now has its answer
        await converter.rest(answer)
        answer.release()
        self._metrics.forwarded(
            exchange.sent_s - exchange.began_s, exchange.head_s - exchange.sent_s
        )
        return status

    def _headers(self, exchange: Exchange, answer: Answer, sent_s: float, head_s: float) -> Headers:
        headers = answer_headers(
            answer.headers,
            answer.status,
            exchange.client,
            exchange.request_id,
            exchange.label(),
            (sent_s - exchange.began_s) * 1e3,
            (head_s - sent_s) * 1e3,
            converted=exchange.conversion is not None,
        )
        if self._prefixes is not None:
            headers += self._prefixes.header(exchange)
        return headers + pruned_header(exchange.pruned)

    async def _answer_error(self, exchange: Exchange, error: UpstreamError, send: Send) -> int:
        status, body = error_face(error, exchange.client, exchange.request_id)
        total_ms = (self._clock_s() - exchange.began_s) * 1e3
        headers = own_headers(
            exchange.request_id, exchange.label(), exchange.client, reflexarc=total_ms
        )
        if not never_sent(error):
            # System 2 may have done the work, and billed it; SDKs would ask it again unasked.
            headers.append((b"x-should-retry", b"false"))
        await send_whole(send, status, headers, body, b"application/json")
        return status


async def _pass_back(copy: Copy | None, answer: Answer, chunk: bytes, send: Send) -> None:
    """Each piece as it arrives; the last one ends the answer, without a message of its own."""
    if copy is not None:
        copy.begin(answer)
    while True:
        finished = not chunk or answer.finished
        if copy is not None:
            copy.add(chunk)
            copy.complete = finished
        await send({"type": "http.response.body", "body": chunk, "more_body": not finished})
        if finished:
            return
        chunk = await answer.next_chunk()


def _check_head(answer: Answer) -> None:
    names = b"".join(name for name, _ in answer.headers)
    values = b"".join(value for _, value in answer.headers)
    if _bad_name.search(names) or _bad_value.search(values):
        raise UpstreamError("the upstream broke HTTP: a header holds a character that none may")


async def _break_off(
    exchange: Exchange, answer: Answer, status: int, message: str, code: str, send: Send
) -> None:
    """After the head is out the status cannot change. A stream ends with an `error` event, which
    SDKs raise; any other answer is left unfinished, so that the client sees it is cut."""
    kinds: dict[bytes, bytes] = {name.lower(): value for name, value in answer.headers}
    is_stream = kinds.get(b"content-type", b"").lower().startswith(b"text/event-stream")
    if is_stream and b"content-encoding" not in kinds and b"content-length" not in kinds:
        event = error_event(status, message, code, exchange.client, exchange.request_id)
        await send({"type": "http.response.body", "body": b"\n\n" + event, "more_body": False})
