"""Server-sent events: framing of our own streams, and one incremental parser for others'.

Lines end in LF, CRLF or CR only (U+0085 and U+2028 are content); `data:` may lack the space;
comments are legal keep-alives; a UTF-8 character may be split over chunks.
"""

import re
from typing import NamedTuple

import msgspec

DONE = b"data: [DONE]\n\n"
MAX_EVENT_BYTES = 8 * 1024 * 1024

_line_end = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"


class SseEvent(NamedTuple):
    """`name` is that of its `event:` line, empty without one."""

    name: bytes
    data: bytes


def data_event(payload: bytes) -> bytes:
    """One event carrying one line of data."""
    return b"data: " + payload + b"\n\n"


def named_event(name: bytes, payload: bytes) -> bytes:
    """The same with a name."""
    return b"event: " + name + b"\ndata: " + payload + b"\n\n"


def comment(text: str) -> bytes:
    """A comment; `text` must be one line."""
    return b": " + text.encode() + b"\n\n"


class SseParser:
    """Feeds on chunks cut anywhere; gives each complete event. Every byte is looked at once.

    An event longer than `max_event_bytes` ends the reading: `overflown` is set and nothing more
    comes out. What has no blank line after it at the end was cut short, and is none, but for what
    `close` finds whole.
    """

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self.overflown = False
        self._max_event_bytes = max_event_bytes
        self._line: list[bytes] = []
        self._data: list[bytes] = []
        self._name: bytes = b""
        self._held = 0
        self._start: bytes = b""
        self._at_start = True
        self._after_cr = False

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """The events that this chunk completes."""
        if self.overflown or not chunk:
            return []
        if self._at_start:
            self._start += chunk
            if len(self._start) < len(_BOM) and _BOM.startswith(self._start):
                return []
            self._at_start = False
            chunk = self._start.removeprefix(_BOM)
        if (
            chunk.endswith(b"\n\n")
            and b"\r" not in chunk
            and not self._held
            and not self._after_cr
            and len(chunk) <= self._max_event_bytes
        ):
            return self._whole(chunk)
        events: list[SseEvent] = []
        position = 1 if self._after_cr and chunk.startswith(b"\n") else 0
        for end in _line_end.finditer(chunk, position):
            line = chunk[position : end.start()]
            if self._line:
                self._line.append(line)
                line = b"".join(self._line)
                self._line.clear()
            position = end.end()
            if line:
                self._field(line)
            else:
                self._dispatch(events)
            if self._held > self._max_event_bytes:
                break
        if position < len(chunk):
            self._line.append(chunk[position:])
            self._held += len(chunk) - position
        # A CR ends its line at once; a LF right after it belongs to it.
        self._after_cr = chunk.endswith(b"\r")
        if self._held > self._max_event_bytes:
            self.overflown = True
            self._line, self._data = [], []
        return events

    def _whole(self, chunk: bytes) -> list[SseEvent]:
        """The events of a chunk that cuts none, with LF alone: as nearly all come, so their lines
        are not looked for one by one."""
        events: list[SseEvent] = []
        for block in chunk[:-2].split(b"\n\n"):
            name, data = b"", block
            if block.startswith(b"event: "):
                name, _, data = block.partition(b"\n")
            if data.startswith(b"data: ") and b"\n" not in data:
                events.append(SseEvent(name[7:], data[6:]))
                continue
            for line in block.split(b"\n"):
                if line:
                    self._field(line)
                else:
                    self._dispatch(events)
            self._dispatch(events)
        return events

    def close(self) -> list[SseEvent]:
        """The bytes ended. The last event, where only the blank line after it is missing: its data
        is whole JSON, or the word that it is done. Any other was cut short."""
        if self.overflown:
            return []
        if self._line:
            self._field(b"".join(self._line))
            self._line.clear()
        events: list[SseEvent] = []
        self._dispatch(events)
        return [event for event in events if _is_whole(event.data)]

    def _field(self, line: bytes) -> None:
        self._held += len(line)
        if line.startswith(b"data:"):
            self._data.append(line[6:] if line[5:6] == b" " else line[5:])
        elif line.startswith(b"event:"):
            self._name = line[6:].removeprefix(b" ")
        elif line == b"data":
            self._data.append(b"")

    def _dispatch(self, events: list[SseEvent]) -> None:
        if self._data:
            data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
            events.append(SseEvent(self._name, data))
        self._data, self._name, self._held = [], b"", 0


def _is_whole(data: bytes) -> bool:
    if data.strip() == b"[DONE]":
        return True
    try:
        value: object = msgspec.json.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return False
    return isinstance(value, dict | list)
