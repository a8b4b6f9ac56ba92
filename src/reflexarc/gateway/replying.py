"""The client's side of an answer that several deployments may be asked for: what it was told.

A head that only said "still at work" binds nothing but the status: until there is output, another
deployment may still give the answer.
"""

from collections.abc import Callable

from reflexarc.gateway.asgi import Headers, Send, send_whole
from reflexarc.gateway.attempting import Relay
from reflexarc.gateway.silence import Silence
from reflexarc.wire.dialects import dialect
from reflexarc.wire.errors import error_event
from reflexarc.wire.faults import Fault
from reflexarc.wire.passing import StreamPassing

_SSE = b"text/event-stream; charset=utf-8"


class ClientReply:
    """`own_headers` makes a head without an upstream's. `ping_s`: silence after which a client of a
    stream is sent a sign of life; None sends none."""

    def __init__(
        self,
        send: Send,
        client: str,
        request_id: bytes,
        own_headers: Callable[[], Headers],
        ping_s: float | None,
    ) -> None:
        self.head_out = False
        self.output_out = False
        self.over = False
        self.relay: Relay | None = None
        self._send = send
        self._client = client
        self._request_id = request_id
        self._own_headers = own_headers
        self._silence = None if ping_s is None else Silence(ping_s, self._ping)

    async def whole(self, status: int, body: bytes, headers: Headers, content_type: bytes) -> int:
        """The whole answer, in place of a stream too."""
        await self._quiet()
        if self.head_out:  # as a stream, then
            self.output_out = self.over = True
            await self._body(body, more=False)
            return 200
        self.head_out = self.output_out = self.over = True
        await send_whole(self._send, status, headers, body, content_type)
        return status

    async def begin(self, status: int, headers: Headers, content_type: bytes) -> None:
        """The head of a stream, unless it is out."""
        if self._silence is not None:
            await self._silence.settled()
        if not self.head_out:
            self.head_out = True
            await self._send(
                {
                    "type": "http.response.start",
                    "status": status,
                    "headers": [*headers, (b"content-type", content_type)],
                }
            )

    async def out(self, data: bytes, *, more: bool) -> None:
        """Some of a stream; its end where there is no more."""
        if not more:
            self.over = True
            await self._quiet()
        elif self._silence is not None:
            self._silence.heard()
            await self._silence.settled()
        self.output_out = self.output_out or bool(data)
        await self._body(data, more=more)

    async def fault(self, fault: Fault) -> None:
        """Inside a stream whose head is out: it ends with an error."""
        await self._quiet()
        if self.over:
            return
        self.over = True
        event = error_event(
            fault.status, fault.message, fault.code or "upstream_failed",
            self._client, self._request_id,
        )  # fmt: skip
        between = not isinstance(self.relay, StreamPassing) or self.relay.between_events
        await self._body(event if between else b"\n\n" + event, more=False)

    def stop(self) -> None:
        if self._silence is not None:
            self._silence.stop()

    async def _quiet(self) -> None:
        if self._silence is not None:
            await self._silence.settled()
            self._silence.stop()

    async def _ping(self) -> None:
        if self.over:
            return
        relay = self.relay
        if isinstance(relay, StreamPassing) and not relay.between_events:
            return
        if not self.head_out:
            self.head_out = True
            headers = [*self._own_headers(), (b"content-type", _SSE)]
            await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        await self._body(dialect(self._client).keep_alive, more=True)

    async def _body(self, data: bytes, *, more: bool) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": more})
