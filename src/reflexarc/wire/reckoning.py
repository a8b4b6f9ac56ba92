"""What an answer used, read from the copy of its bytes, however far it came."""

from typing import Any, cast

import msgspec

from reflexarc.steps.errors import InputError
from reflexarc.wire.assembling import BrokenOffError
from reflexarc.wire.dialects import dialect
from reflexarc.wire.encodings import plain_bytes
from reflexarc.wire.faults import Fault
from reflexarc.wire.json import decode_strict
from reflexarc.wire.replies import Began, Ended, Event, Failed, PartBegan, PartGrew, Reply
from reflexarc.wire.sse import SseParser
from reflexarc.wire.turns import Call, Foreign, Media, Refusal, Text, Thinking
from reflexarc.wire.usage import Usage, merged


class Reckoned(msgspec.Struct, frozen=True):
    """`usage` as far as it was told; `told_whole`: it counts the whole answer. `generated_bytes`:
    of text, thinking and calls. `ended`: by its own word; `fault`: why it did not, where that can
    be read in it. `service_tier` that it was served in, where it says so."""

    usage: Usage | None = None
    told_whole: bool = False
    generated_bytes: int = 0
    ended: bool = False
    fault: Fault | None = None
    service_tier: str | None = None


def reckoned(
    data: bytes, content_type: str, encoding: str, dialect_name: str, *, complete: bool = True
) -> Reckoned:
    """Never raises: of what cannot be read nothing is known. `complete`: all bytes came that were
    to come, so that an end which is not said is missing."""
    try:
        plain = plain_bytes(data, encoding)
        if content_type.lower().startswith("text/event-stream"):
            return _of_stream(plain, dialect_name, complete=complete)
        value = decode_strict(plain, "answer")
        if not isinstance(value, dict):
            return Reckoned()
        return _of_reply(dialect(dialect_name).read_reply(cast("dict[str, Any]", value)))
    except BrokenOffError as error:
        return Reckoned(fault=error.fault)
    except InputError:
        return Reckoned()


def _of_reply(reply: Reply) -> Reckoned:
    size = sum(_size(part) for part in reply.parts)
    told = reply.usage is not None
    return Reckoned(reply.usage, told, size, True, None, reply.service_tier)


def _of_stream(data: bytes, dialect_name: str, *, complete: bool) -> Reckoned:
    reader, parser = dialect(dialect_name).stream_reader(), SseParser()
    tally = _Tally()
    for event in parser.feed(data):
        for told in reader.read(event):
            tally.take(told)
    if complete:  # else who passed it on knows why it ended
        for event in parser.close():
            for told in reader.read(event):
                tally.take(told)
        for told in reader.close():
            tally.take(told)
    return tally.told()


class _Tally:
    def __init__(self) -> None:
        self._usage: Usage | None = None
        self._whole = False
        self._size = 0
        self._ended = False
        self._fault: Fault | None = None
        self._tier: str | None = None

    def take(self, event: Event) -> None:
        if isinstance(event, Began):
            self._usage = merged(self._usage, event.usage)
            self._tier = event.service_tier or self._tier
        elif isinstance(event, PartGrew):
            self._size += len(event.text.encode("utf-8", "surrogatepass"))
        elif isinstance(event, PartBegan):
            self._size += _size(event.part)
        elif isinstance(event, Ended):
            self._ended = True
            self._whole = event.usage is not None
            self._usage = merged(self._usage, event.usage)
            self._tier = event.service_tier or self._tier
        elif isinstance(event, Failed):
            self._fault = event.fault

    def told(self) -> Reckoned:
        return Reckoned(self._usage, self._whole, self._size, self._ended, self._fault, self._tier)


def _size(part: Text | Thinking | Call | Refusal | Media | Foreign) -> int:
    if isinstance(part, Call):
        return len((part.name + part.arguments).encode("utf-8", "surrogatepass"))
    if isinstance(part, Text | Thinking | Refusal):
        return len(part.text.encode("utf-8", "surrogatepass"))
    return 0
