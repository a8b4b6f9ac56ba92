"""A stream that goes on in the dialect it came in: held until there is content, then untouched.

The same face as a `StreamConversion`: until content nothing comes out, so that a fault before it
still has its own status, and can be answered by another upstream. Past that no byte is looked at.
"""

from reflexarc.wire.dialect import Dialect
from reflexarc.wire.errors import error_event
from reflexarc.wire.faults import Fault
from reflexarc.wire.replies import Began, Event, Failed
from reflexarc.wire.sse import SseParser

_TOO_LONG = Fault("upstream", "the upstream sent an event that is too long", 502)
_ENDS = (b"\n\n", b"\r\n\r\n", b"\r\r")


class StreamPassing:
    """One answer. `over`: nothing more is to come of it; `fault`: why it ended too early."""

    def __init__(self, dialect: Dialect, request_id: bytes) -> None:
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
            self._tail = (self._tail + chunk)[-4:] if len(chunk) < 4 else chunk[-4:]
            return chunk
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
            return b""
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
            self._dialect.name, self._request_id,
        )  # fmt: skip
        return text if self.between_events else b"\n\n" + text

    def _take(self, event: Event) -> bool:
        if isinstance(event, Began) or self.over:
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
        self._tail = out[-4:]
        return out
