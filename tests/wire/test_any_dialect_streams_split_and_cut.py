"""Every recorded stream, told to every client: the same wherever it is split, and never ended
clean where it was cut."""

import random

import pytest

from reflexarc.wire.converting import StreamConversion
from reflexarc.wire.dialects import NAMES
from reflexarc.wire.sse import SseEvent, SseParser
from tests.wire.frames import Told, told
from tests.wire.matrix.cells import Input, answering, inputs

STREAMS = list(inputs("streams"))


def _conversion(given: Input, target: str) -> StreamConversion:
    return answering(given.origin, target, stream=True).stream()


def _converted(given: Input, target: str, pieces: list[bytes]) -> bytes:
    conversion = _conversion(given, target)
    return b"".join([*map(conversion.feed, pieces), conversion.close()])


def _boundaries(data: bytes) -> list[int]:
    """Where a stream stands between two events, its beginning among them."""
    parser = SseParser()
    return [0, *(at + 1 for at in range(len(data)) if parser.feed(data[at : at + 1]))]


def _events(data: bytes) -> list[SseEvent]:
    parser = SseParser()
    return [*parser.feed(data), *parser.close()]


def _has_ended(origin: str, data: bytes) -> bool:
    """Whether the provider's own word for an end is in it."""
    for event in _events(data):
        if origin == "chat":
            ended = event.data == b"[DONE]" or b'"finish_reason":"' in event.data
        elif origin == "responses":
            words = (b'"type":"response.completed"', b'"type":"response.incomplete"')
            ended = any(word in event.data for word in words)
        elif origin == "messages":
            ended = b'"type":"message_stop"' in event.data
        else:
            ended = b'"finishReason":' in event.data or b'"blockReason":' in event.data
        if ended:
            return True
    return False


@pytest.mark.parametrize("given", STREAMS, ids=lambda given: given.name)
def test_any_split_gives_the_same_bytes(given: Input) -> None:
    data = given.path.read_bytes()
    draw = random.Random(given.name)
    cuts = [sorted(draw.sample(range(len(data)), min(len(data), 7))) for _ in range(3)]
    for target in NAMES:
        whole = _converted(given, target, [data])
        bytewise = [data[at : at + 1] for at in range(len(data))]
        assert _converted(given, target, bytewise) == whole, target
        for cut in cuts:
            pieces = [data[a:b] for a, b in zip([0, *cut], [*cut, len(data)], strict=True)]
            assert _converted(given, target, pieces) == whole, (target, cut)


@pytest.mark.parametrize("given", STREAMS, ids=lambda given: given.name)
def test_every_client_gets_its_frames_in_order(given: Input) -> None:
    data = given.path.read_bytes()
    gathered = {target: told(target, _converted(given, target, [data])) for target in NAMES}
    texts = {one.text for one in gathered.values()}
    assert len(texts) == 1
    for one in gathered.values():
        ids = [call[0] for call in one.calls if call[0]]
        assert len(set(ids)) == len(ids)
        # Gemini's clients are told of whole calls alone.
        if one.clean or not one.failed:
            names = [call[1] for call in gathered["chat"].calls]
            assert [call[1] for call in one.calls] == names
        assert one.clean == gathered["chat"].clean
        assert not one.clean or one.usage == gathered["chat"].usage


@pytest.mark.parametrize("given", STREAMS, ids=lambda given: given.name)
def test_a_cut_at_any_byte_never_ends_clean(given: Input) -> None:
    data = given.path.read_bytes()
    bounds = _boundaries(data)
    for start, end in zip(bounds, [*bounds[1:], len(data)], strict=True):
        _nothing_comes_of_a_part(data[start:end])
        prefix = data[:start]
        ended = _has_ended(given.origin, prefix)
        for target in NAMES:
            out = _converted(given, target, [prefix])
            _says_it_is_cut(told(target, out), out, ended, (target, start))
    draw = random.Random(given.name)
    for cut in draw.sample(range(len(data)), min(len(data), 12)):
        ended = _has_ended(given.origin, data[:cut])
        for target in NAMES:
            out = _converted(given, target, [data[:cut]])
            _says_it_is_cut(told(target, out), out, ended, (target, cut))


def _nothing_comes_of_a_part(event: bytes) -> None:
    """A part of an event is none, unless nothing but line ends are missing."""
    full = _events(event)
    for at in range(len(event)):
        part = SseParser()
        assert part.feed(event[:at]) in ([], full)
        assert part.close() in ([], full)


def _says_it_is_cut(one: Told, out: bytes, ended: bool, where: tuple[str, int]) -> None:
    if not ended:
        assert not one.clean, where
        # Before anything was told, the fault is told in the answer's status.
        assert one.failed or not out, where
        assert one.usage is None, where
    else:
        assert one.failed or one.end or not out, where
