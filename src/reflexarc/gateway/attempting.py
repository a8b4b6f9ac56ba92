"""One sending of a request to one deployment: until there is content, or it is refused."""

import asyncio
from collections.abc import Callable
from typing import Literal, Protocol

import msgspec

from reflexarc.gateway.copying import Copy
from reflexarc.gateway.preparing import Prepared
from reflexarc.steps.errors import MalformedError, UpstreamError, UpstreamTimeoutError
from reflexarc.upstream import Answer, Transport, never_sent
from reflexarc.upstream.fleet import Watched
from reflexarc.upstream.judging_faults import Verdict, cool_down_s, verdict
from reflexarc.wire.assembling import Assembler, BrokenOffError
from reflexarc.wire.dialects import dialect
from reflexarc.wire.encodings import Plain
from reflexarc.wire.faults import Fault, kind_of
from reflexarc.wire.json import decode_strict
from reflexarc.wire.passing import StreamPassing
from reflexarc.wire.reckoning import Reckoned, reckoned
from reflexarc.wire.sse import SseParser

MAX_WHOLE_BYTES = 64 * 1024 * 1024
MAX_ERROR_BYTES = 1024 * 1024
TRUNCATED = "upstream_truncated"
HIDDEN = b"(the gateway's key)"
_JSON = b"application/json"
_SSE = b"text/event-stream; charset=utf-8"

Outcome = Literal[
    "answered", "refused", "failed", "cut", "client_gone", "hedge_lost", "repaired", "stopped"
]


class Relay(Protocol):
    """A stream on its way: a `StreamConversion` or a `StreamPassing`."""

    committed: bool
    fault: Fault | None
    over: bool

    @property
    def begun(self) -> bool: ...
    def feed(self, chunk: bytes) -> bytes: ...
    def close(self) -> bytes: ...
    def fail(self, fault: Fault) -> bytes: ...


class Content(msgspec.Struct):
    """An answer of which the client can be told. `out` is its beginning, or all of it where there
    is no `relay` to bring more."""

    status: int
    content_type: bytes
    out: bytes
    relay: Relay | None = None


class Refused(msgspec.Struct):
    """No answer. `fault` says why, `verdict` who may do better, `cool_s` for how long not to ask
    here. `body` is the provider's own, where its status was an error's."""

    fault: Fault
    verdict: Verdict
    status: int
    body: bytes = b""
    content_type: bytes = b""
    cool_s: float | None = None
    error: UpstreamError | None = None


class Attempt:
    """`number` counts a request's attempts from 1. Times are the clock's, 0 where there was none;
    `sent`: whether the deployment may have seen the request."""

    def __init__(
        self,
        number: int,
        watched: Watched,
        prepared: Prepared,
        copy: Copy,
        clock_s: Callable[[], float],
    ) -> None:
        self.number = number
        self.watched = watched
        self.prepared = prepared
        self.copy = copy
        self.clock_s = clock_s
        self.began_s = clock_s()
        self.head_s = 0.0
        self.first_s = 0.0
        self.ended_s = 0.0
        self.trial = False
        self.sent = False
        self.status = 0
        self.code = ""
        self.outcome: Outcome | None = None
        self.answer: Answer | None = None
        self.plain: Plain | None = None

    async def open(
        self,
        transport: Transport,
        request_id: bytes,
        limit_s: float,
        unix_time: Callable[[], float],
        *,
        stream: bool,
    ) -> Content | Refused:
        """Waits for content, for `limit_s` where a stream is asked for."""
        prepared = self.prepared
        self.sent = True
        try:
            async with asyncio.timeout(limit_s if stream else None):
                self.answer = answer = await transport.send(
                    "POST", prepared.url, prepared.headers, prepared.body, prepared.reach
                )
                self.head_s = self.clock_s()
                self.status = answer.status
                self.copy.begin(answer)
                opened = await self._opened(answer, request_id, unix_time, stream=stream)
        except TimeoutError:
            where = prepared.url.origin()
            said = f"{where} gave no content within {limit_s:g} s"
            opened = _unasked(UpstreamTimeoutError(said))
        except UpstreamError as error:
            self.sent = not never_sent(error)
            opened = _unasked(error)
        if isinstance(opened, Content):
            self.first_s = self.clock_s()
        else:
            self.status = self.status or opened.status
            self.code = opened.fault.code or opened.fault.kind
        return opened

    async def more(self, relay: Relay) -> bytes:
        """The next bytes for the client; empty where there are none yet, or ever (`relay.over`)."""
        answer, plain = self.answer, self.plain
        assert answer is not None  # there is content
        assert plain is not None
        try:
            chunk = await self._chunk(answer)
            return relay.feed(plain.feed(chunk)) if chunk else self._ended(relay)
        except UpstreamError as error:
            fault = Fault(kind_of(error.status), str(error), error.status, code=error.code)
        except MalformedError as error:
            fault = Fault("upstream", str(error), 502, code="upstream_malformed")
        out = relay.fail(fault)
        self.code = fault.code or ""
        return out

    async def rest(self, within_s: float) -> None:
        """What follows a stream's last event, so that its connection can be used again."""
        answer = self.answer
        if answer is None or answer.finished:
            return
        try:
            async with asyncio.timeout(within_s):
                while await self._chunk(answer):
                    pass
        except (UpstreamError, TimeoutError):
            self.copy.complete = True  # its own last word had come

    def told(self) -> Reckoned:
        """What can be read in the answer as far as it came."""
        copy = self.copy
        return reckoned(
            copy.kept, copy.content_type, copy.content_encoding, self.prepared.dialect,
            complete=copy.complete,
        )  # fmt: skip

    def _ended(self, relay: Relay) -> bytes:
        """A stream that passed unread may have ended with an error of its own, or without an end,
        which its client is told."""
        fault = None
        if self.prepared.conversion is None and not self.copy.overflown:
            fault = self.told().fault
        if fault is None:
            return relay.close()
        out = relay.fail(fault) if fault.code == TRUNCATED else relay.close()
        relay.fault = fault
        self.code = fault.code or fault.kind
        return out

    def release(self) -> None:
        if self.answer is not None:
            self.answer.release()

    async def _opened(
        self,
        answer: Answer,
        request_id: bytes,
        unix_time: Callable[[], float],
        *,
        stream: bool,
    ) -> Content | Refused:
        given = {name.lower(): value for name, value in answer.headers}
        encoding = given.get(b"content-encoding", b"").decode("latin-1")
        kind = given.get(b"content-type", b"")
        try:
            self.plain = plain = Plain(encoding)
            if not 200 <= answer.status < 300:
                return await self._refused(answer, plain, kind, unix_time)
            if kind.lower().startswith(b"text/event-stream"):
                if stream or self.prepared.conversion is None:
                    return await self._begun(answer, plain, request_id)
                return await self._assembled(answer, plain)
            return await self._whole(answer, plain, kind, stream=stream)
        except MalformedError as error:
            raise UpstreamError(f"the upstream's answer cannot be read: {error}") from error

    async def _refused(
        self, answer: Answer, plain: Plain, kind: bytes, unix_time: Callable[[], float]
    ) -> Refused:
        if answer.status < 400:
            raise UpstreamError(f"the upstream answered with status {answer.status}: a redirect?")
        body = await self._read(answer, plain, MAX_ERROR_BYTES)
        secret = self.watched.deployment.secret
        if secret is not None and (named := secret.value.encode()) in body:
            # Some repeat the key they refuse: it is the gateway's, not its clients' to know.
            body = body.replace(named, HIDDEN)
            self.copy.replace(body)
        fault = dialect(self.prepared.dialect).read_fault(answer.status, body)
        cool_s = cool_down_s(answer.status, answer.headers, fault, unix_time())
        kind_name = self.watched.deployment.kind
        judged = verdict(kind_name, answer.status, body)
        return Refused(fault, judged, answer.status, body, kind, cool_s)

    async def _whole(
        self, answer: Answer, plain: Plain, kind: bytes, *, stream: bool
    ) -> Content | Refused:
        body = await self._read(answer, plain, MAX_WHOLE_BYTES)
        conversion = self.prepared.conversion
        try:
            if conversion is None:
                if b'"error"' in body:
                    _check_is_answer(body, self.prepared.dialect)
                return Content(answer.status, kind, body)
            reply = conversion.read(body)
            if stream:
                return Content(200, _SSE, conversion.streamed(reply))
            return Content(200, _JSON, conversion.write(reply))
        except BrokenOffError as error:
            return self._told(error.fault)

    async def _assembled(self, answer: Answer, plain: Plain) -> Content | Refused:
        """A stream that nobody asked for is put together."""
        conversion = self.prepared.conversion
        assert conversion is not None  # else it would pass as it is
        parser, reader, assembler = SseParser(), conversion.upstream.stream_reader(), Assembler()
        body = await self._read(answer, plain, MAX_WHOLE_BYTES)
        for event in (*parser.feed(body), *parser.close()):
            for told in reader.read(event):
                assembler.take(told)
        for told in reader.close():
            assembler.take(told)
        try:
            return Content(200, _JSON, conversion.write(conversion.own(assembler.reply())))
        except BrokenOffError as error:
            return self._told(error.fault)

    async def _begun(self, answer: Answer, plain: Plain, request_id: bytes) -> Content | Refused:
        conversion = self.prepared.conversion
        relay: Relay
        if conversion is None:
            spoken = dialect(self.prepared.dialect)
            drops = self.prepared.drop_usage
            relay = StreamPassing(spoken, request_id, drop_usage=drops)
        else:
            relay = conversion.stream()
        out = b""
        while not out and not relay.over:
            chunk = await self._chunk(answer)
            out = relay.feed(plain.feed(chunk)) if chunk else relay.close()
        if relay.fault is not None and not relay.begun:
            return self._told(relay.fault)
        return Content(200, _SSE, out, relay)

    def _told(self, fault: Fault) -> Refused:
        """A fault inside an answer that called itself one."""
        status = fault.status if fault.status >= 400 else 502
        kind = self.watched.deployment.kind
        judged = verdict(kind, status, b"")
        return Refused(fault, judged, status, cool_s=fault.retry_after_s)

    async def _chunk(self, answer: Answer) -> bytes:
        chunk = await answer.next_chunk()
        self.copy.add(chunk)
        self.copy.complete = not chunk or answer.finished
        return chunk

    async def _read(self, answer: Answer, plain: Plain, limit: int) -> bytes:
        parts: list[bytes] = []
        size = 0
        while chunk := await self._chunk(answer):
            part = plain.feed(chunk)
            size += len(part)
            if size > limit:
                raise UpstreamError(f"the upstream's answer is longer than {limit} bytes")
            parts.append(part)
        return b"".join(parts)


def _unasked(error: UpstreamError) -> Refused:
    fault = Fault(kind_of(error.status), str(error), error.status, code=error.code)
    return Refused(fault, "elsewhere", error.status, error=error)


def _check_is_answer(body: bytes, spoken: str) -> None:
    """Raises `BrokenOffError` where a body tells a fault, whatever its status."""
    value = decode_strict(body, "answer")
    if isinstance(value, dict):
        dialect(spoken).read_reply(value)  # pyright: ignore[reportUnknownArgumentType] - of anything
