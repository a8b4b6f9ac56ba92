"""A stream that goes on in the dialect it came in: held until there is content, then untouched.

The same face as a `StreamConversion`: until content nothing comes out, so that a fault before it
still has its own status, and can be answered by another upstream. Past that no byte is looked at.
"""

import re
from typing import Any

import msgspec

from reflexarc.wire.dialect import Dialect
from reflexarc.wire.errors import error_event
from reflexarc.wire.faults import Fault
from reflexarc.wire.replies import Event, Failed, is_content
from reflexarc.wire.sse import SseParser

_TOO_LONG = Fault("upstream", "the upstream sent an event that is too long", 502)
_ENDS = (b"\n\n", b"\r\n\r\n", b"\r\r")
_numbers = re.compile(rb'"sequence_number" *: *(\d{1,15})')
_event_end = re.compile(rb"\r\n\r\n|\n\n|\r\r")


class StreamPassing:
    """One answer. `over`: nothing more is to come of it; `fault`: why it ended too early."""

    def __init__(self, dialect: Dialect, request_id: bytes, *, drop_usage: bool = False) -> None:
        """`drop_usage`: the chunk of chat that tells nothing but usage goes no further; who sent
        the request did not ask for it."""
        self.fault: Fault | None = None
        self.over = False
        self.committed = False
        """Whether the client has a status already: then a fault is told inside the stream."""
        self._dialect = dialect
        self._request_id = request_id
        self._parser = SseParser()
        self._reader = dialect.stream_reader()
        self._held: list[bytes] = []
        self._begun = False
        self._tail = b""
        self._last = self._before_last = b""
        self._sieve = _UsageSieve() if drop_usage else None

    @property
    def begun(self) -> bool:
        """Whether anything came out."""
        return self._begun

    @property
    def between_events(self) -> bool:
        """Whether what came out ends with a whole event: only there may anything come between."""
        return not self._begun or self._tail.endswith(_ENDS)

    def feed(self, chunk: bytes) -> bytes:
        if self._begun:
            return self._passed(chunk)
        if self.over:
            return b""
        self._held.append(chunk)
        for event in self._parser.feed(chunk):
            for told in self._reader.read(event):
                if self._take(told):
                    return self._out()
        if self._parser.overflown and not self.over:
            self._fail(_TOO_LONG)
        return self._out() if self._begun else b""

    def close(self) -> bytes:
        """The upstream's bytes ended."""
        if self._begun:
            self.over = True
            return b"" if self._sieve is None else self._sieve.rest()
        for event in self._parser.close():
            for told in self._reader.read(event):
                self._take(told)
        if not self.over and not self._begun:
            for told in self._reader.close():
                self._take(told)
        out = self._out() if self._begun else b""
        self.over = True
        return out

    def fail(self, fault: Fault) -> bytes:
        """The upstream broke off: what tells the client, empty where it was told nothing yet."""
        if self.over:
            return b""
        self._fail(fault)
        if not (self._begun or self.committed):
            return b""
        text = error_event(
            fault.status, fault.message, fault.code or "upstream_failed",
            self._dialect.name, self._request_id, self._next_number(),
        )  # fmt: skip
        return text if self.between_events else b"\n\n" + text

    def _take(self, event: Event) -> bool:
        if self.over or not is_content(event):
            return False
        if isinstance(event, Failed):
            self._fail(event.fault)
            return False
        self._begun = True
        return True

    def _fail(self, fault: Fault) -> None:
        self.over = True
        self.fault = fault

    def _out(self) -> bytes:
        out = b"".join(self._held)
        self._held.clear()
        return self._passed(out)

    def _passed(self, chunk: bytes) -> bytes:
        if self._sieve is not None:
            chunk = self._sieve.feed(chunk)
        if chunk:
            self._tail = (self._tail + chunk)[-4:] if len(chunk) < 4 else chunk[-4:]
            self._before_last, self._last = self._last, chunk
        return chunk

    def _next_number(self) -> int | None:
        """Of the event after those that came out; None where they have none."""
        found = _numbers.findall(self._before_last + self._last)
        return int(found[-1]) + 1 if found else None


class _UsageSieve:
    """Lets through every event of a chat stream, byte for byte, but the one of usage alone."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, chunk: bytes) -> bytes:
        data = self._held + chunk
        out: list[bytes] = []
        position = 0
        for end in _event_end.finditer(data):
            block = data[position : end.end()]
            position = end.end()
            if not _is_usage_alone(block):
                out.append(block)
        self._held = data[position:]
        return b"".join(out)

    def rest(self) -> bytes:
        held, self._held = self._held, b""
        return b"" if _is_usage_alone(held) else held


class _Chunk(msgspec.Struct):
    choices: list[Any] | None = None
    usage: msgspec.Raw = msgspec.Raw(b"null")


_chunk = msgspec.json.Decoder(_Chunk)


def _is_usage_alone(block: bytes) -> bool:
    if b'"usage"' not in block:
        return False
    for event in SseParser().feed(block + b"\n\n"):
        try:
            told = _chunk.decode(event.data)
        except msgspec.MsgspecError:
            return False
        return not told.choices and bytes(told.usage) != b"null"
    return False
