"""An answer that came in another dialect than the client's: read, converted, sent.

A stream goes on as it comes; the head waits until there is content, so that a fault before it still
has its own status. Whole answers are read whole, within a limit.
"""

import asyncio
import re
from collections.abc import Callable, Iterable

from reflexarc.gateway.asgi import Headers, Send, send_whole
from reflexarc.gateway.copying import Copy
from reflexarc.gateway.silence import Silence
from reflexarc.steps.errors import MalformedError, UpstreamError
from reflexarc.upstream import Answer
from reflexarc.wire.assembling import Assembler, BrokenOffError
from reflexarc.wire.converting import Conversion, StreamConversion
from reflexarc.wire.encodings import Plain
from reflexarc.wire.faults import Fault, kind_of
from reflexarc.wire.json import encode_json
from reflexarc.wire.losses import HEADER
from reflexarc.wire.sse import SseParser

PING_S = 10.0
"""Silence after which a client is sent a sign of life."""
MAX_WHOLE_BYTES = 64 * 1024 * 1024
MAX_ERROR_BYTES = 1024 * 1024
# An upstream that says more than this after its last event, or says nothing, is hung up on.
_REST_S = 1.0
_JSON = b"application/json"
_SSE = b"text/event-stream; charset=utf-8"
_number = re.compile(rb"\d{1,9}(\.\d{1,9})?")


class Converter:
    """One answer on its way back. `headers_of` makes the client's headers of the upstream's."""

    def __init__(
        self,
        conversion: Conversion,
        copy: Copy | None,
        request_id: str,
        headers_of: Callable[[Answer], Headers],
        send: Send,
    ) -> None:
        self._conversion = conversion
        self._copy = copy
        self._request_id = request_id
        self._headers_of = headers_of
        self._send = send
        self.streaming: StreamConversion | None = None

    async def answer(self, answer: Answer) -> int:
        """Sends the answer, and returns the status the client saw. Raises an `UpstreamError` for
        what came to light before the client saw anything."""
        given = {name.lower(): value for name, value in answer.headers}
        kind = given.get(b"content-type", b"").lower()
        plain = _plain(given.get(b"content-encoding", b"").decode("latin-1"))
        if self._copy is not None:
            self._copy.begin(answer)
        if not 200 <= answer.status < 300:
            return await self._fault(answer, plain)
        streams = kind.startswith(b"text/event-stream")
        if streams and self._conversion.ask.settings.stream:
            return await self._stream(answer, plain)
        if streams:
            return await self._assembled(answer, plain)
        return await self._whole(answer, plain)

    async def _fault(self, answer: Answer, plain: Plain) -> int:
        if answer.status < 400:
            raise UpstreamError(f"the upstream answered with status {answer.status}: a redirect?")
        body = await self._read(answer, plain, MAX_ERROR_BYTES)
        hint_s = retry_hint_s(answer.headers)
        known_as = self._id_of(answer)
        status, told, fault = self._conversion.fault(answer.status, body, known_as, hint_s)
        return await self._tell(status, told, self._headers(answer, fault))

    async def _whole(self, answer: Answer, plain: Plain) -> int:
        body = await self._read(answer, plain, MAX_WHOLE_BYTES)
        conversion = self._conversion
        try:
            if not conversion.ask.settings.stream:
                told = conversion.write(conversion.read(body))
                return await self._tell(200, told, self._headers(answer))
            told = conversion.streamed(conversion.read(body))
            return await self._tell(200, told, self._headers(answer), _SSE)
        except BrokenOffError as error:
            return await self._broken(answer, error.fault)
        except MalformedError as error:
            raise UpstreamError(f"the upstream's answer cannot be read: {error}") from error

    async def _assembled(self, answer: Answer, plain: Plain) -> int:
        """A stream that nobody asked for is put together."""
        conversion = self._conversion
        parser, reader, assembler = SseParser(), conversion.upstream.stream_reader(), Assembler()
        size = 0
        while not assembler.over and (chunk := await self._chunk(answer)):
            part = self._plain_of(plain, chunk)
            size += len(part)
            for event in parser.feed(part):
                for told in reader.read(event):
                    assembler.take(told)
            if size > MAX_WHOLE_BYTES or parser.overflown:
                raise UpstreamError(
                    f"the upstream's answer is longer than {MAX_WHOLE_BYTES} bytes, or an event "
                    "of it than is read"
                )
        if self._copy is not None and assembler.over:
            self._copy.complete = True  # its own last word had come
        for event in parser.close():
            for told in reader.read(event):
                assembler.take(told)
        for told in reader.close():
            assembler.take(told)
        try:
            body = conversion.write(conversion.own(assembler.reply()))
        except BrokenOffError as error:
            return await self._broken(answer, error.fault)
        return await self._tell(200, body, self._headers(answer))

    async def _stream(self, answer: Answer, plain: Plain) -> int:
        stream = self._conversion.stream()
        silence = Silence(PING_S, lambda: self._ping(answer, stream))
        try:
            return await self._passed(answer, plain, stream, silence)
        finally:
            silence.stop()

    async def _passed(
        self, answer: Answer, plain: Plain, stream: StreamConversion, silence: Silence
    ) -> int:
        out = b""
        while not out and not stream.over:
            try:
                chunk = await self._chunk(answer)
                out = stream.feed(self._plain_of(plain, chunk)) if chunk else stream.close()
            except UpstreamError as error:
                if self.streaming is None:
                    raise
                out = stream.fail(_fault_of(error))
        await silence.settled()
        if stream.fault is not None and self.streaming is None:
            return await self._broken(answer, stream.fault)
        await self._begin(answer, stream)
        while not stream.over:
            if out:
                silence.heard()
                await self._send({"type": "http.response.body", "body": out, "more_body": True})
            try:
                chunk = await self._chunk(answer)
                out = stream.feed(plain.feed(chunk)) if chunk else stream.close()
            except UpstreamError as error:
                out = stream.fail(_fault_of(error))
            except MalformedError as error:
                out = stream.fail(Fault("upstream", str(error), 502, code="upstream_malformed"))
        silence.stop()
        await self._send({"type": "http.response.body", "body": out, "more_body": False})
        return 200

    async def _begin(self, answer: Answer, stream: StreamConversion) -> None:
        """The head, once: from here on a fault is told inside the stream."""
        if self.streaming is None:
            self.streaming = stream
            stream.committed = True
            headers = [*self._headers(answer), (b"content-type", _SSE)]
            await self._send({"type": "http.response.start", "status": 200, "headers": headers})

    async def _ping(self, answer: Answer, stream: StreamConversion) -> None:
        """The upstream is at work, and silent: what stands between us and the client must not take
        that for the end. Its status is given for it."""
        if stream.over:
            return
        await self._begin(answer, stream)
        ping = self._conversion.client.keep_alive
        await self._send({"type": "http.response.body", "body": ping, "more_body": True})

    async def cut(self, fault: Fault) -> None:
        """The gateway itself ends a stream that is on its way."""
        if self.streaming is not None and not self.streaming.over:
            out = self.streaming.fail(fault)
            await self._send({"type": "http.response.body", "body": out, "more_body": False})

    async def rest(self, answer: Answer) -> None:
        """What follows a stream's last event, a line or two: so that its connection can be used
        again, and its copy is whole. The client has its answer, and may be gone."""
        if self.streaming is None or self.streaming.fault is not None or answer.finished:
            return
        try:
            async with asyncio.timeout(_REST_S):
                while await self._chunk(answer):
                    pass
        except (UpstreamError, TimeoutError):
            if self._copy is not None:
                self._copy.complete = True  # its own last word had come

    async def _broken(self, answer: Answer, fault: Fault) -> int:
        """A fault inside an answer that called itself one."""
        status, value = self._conversion.client.write_fault(fault, self._id_of(answer))
        return await self._tell(status, encode_json(value), self._headers(answer, fault))

    def _id_of(self, answer: Answer) -> str:
        """The id that stands in the answer's headers."""
        names = (b"request-id", b"x-request-id")
        given = (value for name, value in answer.headers if name.lower() in names)
        return next(given, self._request_id.encode()).decode("latin-1")

    async def _chunk(self, answer: Answer) -> bytes:
        chunk = await answer.next_chunk()
        if self._copy is not None:
            self._copy.add(chunk)
            self._copy.complete = not chunk or answer.finished
        return chunk

    async def _read(self, answer: Answer, plain: Plain, limit: int) -> bytes:
        parts: list[bytes] = []
        size = 0
        while chunk := await self._chunk(answer):
            part = self._plain_of(plain, chunk)
            size += len(part)
            if size > limit:
                raise UpstreamError(f"the upstream's answer is longer than {limit} bytes")
            parts.append(part)
        return b"".join(parts)

    def _plain_of(self, plain: Plain, chunk: bytes) -> bytes:
        try:
            return plain.feed(chunk)
        except MalformedError as error:
            raise UpstreamError(f"the upstream's answer cannot be read: {error}") from error

    def _headers(self, answer: Answer, fault: Fault | None = None) -> Headers:
        headers = self._headers_of(answer)
        conversion = self._conversion
        said = "; ".join(
            text for losses in (conversion.losses, conversion.answer_losses)
            if (text := losses.text())
        )  # fmt: skip
        if said:
            headers.append((HEADER, said.encode("ascii")))
        if fault is not None and fault.retry_after_s is not None:
            headers.extend(retry_headers(fault.retry_after_s, headers))
        return headers

    async def _tell(
        self, status: int, body: bytes, headers: Headers, content_type: bytes = _JSON
    ) -> int:
        await send_whole(self._send, status, headers, body, content_type)
        return status


def retry_hint_s(headers: Iterable[tuple[bytes, bytes]]) -> float | None:
    """Seconds that an answer's headers say to wait. None where they name a date, or nothing."""
    given = {name.lower(): value for name, value in headers}
    for name, unit_s in ((b"retry-after-ms", 1e-3), (b"retry-after", 1.0)):
        text = given.get(name, b"").strip()
        if _number.fullmatch(text):
            return float(text) * unit_s
    return None


def retry_headers(retry_after_s: float, known: Headers) -> Headers:
    """A hint that stood in a body alone, where clients look for it."""
    if any(name in (b"retry-after", b"retry-after-ms") for name, _ in known):
        return []
    whole = -(-retry_after_s // 1)  # rounded up: a second too late beats one too early
    return [
        (b"retry-after", str(int(whole)).encode()),
        (b"retry-after-ms", str(int(retry_after_s * 1000)).encode()),
    ]


def _plain(encoding: str) -> Plain:
    try:
        return Plain(encoding)
    except MalformedError as error:
        raise UpstreamError(f"the upstream's answer cannot be read: {error}") from error


def _fault_of(error: UpstreamError) -> Fault:
    return Fault(kind_of(error.status), str(error), error.status, code=error.code)
