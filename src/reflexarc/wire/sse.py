"""Server-sent events: framing of our own streams, and a splitter for observing others'.

Lines end in LF, CRLF or CR only (U+0085 and U+2028 are content); `data:` may lack the space;
comments are legal keep-alives; a UTF-8 character may be split over chunks.
"""

import re

DONE = b"data: [DONE]\n\n"
MAX_EVENT_BYTES = 8 * 1024 * 1024

_line_end = re.compile(rb"\r\n|\n|\r")


def data_event(payload: bytes) -> bytes:
    """One event carrying one line of data."""
    return b"data: " + payload + b"\n\n"


class SseSplitter:
    """Feeds on chunks cut anywhere; gives the data of each complete event.

    An event longer than `MAX_EVENT_BYTES` ends the observation: `overflown` is set and nothing
    more comes out.
    """

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self.overflown = False
        self._max_event_bytes = max_event_bytes
        self._rest: bytes = b""
        self._data: list[bytes] = []
        self._held = 0
        self._at_start = True

    def feed(self, chunk: bytes) -> list[bytes]:
        """Data of the events that this chunk completes."""
        if self.overflown:
            return []
        text = self._rest + chunk
        if self._at_start and text:
            if len(text) < 3 and b"\xef\xbb\xbf".startswith(text):
                self._rest = text
                return []
            text = text.removeprefix(b"\xef\xbb\xbf")
            self._at_start = False
        events: list[bytes] = []
        position = 0
        for end in _line_end.finditer(text):
            # A CR at the very end may be half of a CRLF: wait for the next byte.
            if end.group() == b"\r" and end.end() == len(text):
                break
            self._line(text[position : end.start()], events)
            position = end.end()
        self._rest = text[position:]
        if len(self._rest) + self._held > self._max_event_bytes:
            self.overflown = True
            self._rest, self._data = b"", []
        return events

    def close(self) -> list[bytes]:
        """Data of a last event that a lone CR ended; an event cut short is dropped, as browsers
        do."""
        events: list[bytes] = []
        if self._rest.endswith(b"\r"):
            self._line(self._rest[:-1], events)
        self._rest = b""
        return events

    def _line(self, line: bytes, events: list[bytes]) -> None:
        if not line:
            if self._data:
                events.append(b"\n".join(self._data))
            self._data, self._held = [], 0
        elif line.startswith(b"data:"):
            value = line[5:].removeprefix(b" ")
            self._data.append(value)
            self._held += len(value)
        elif line == b"data":
            self._data.append(b"")
