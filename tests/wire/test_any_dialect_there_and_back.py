"""Random requests and answers survive a way through any two dialects, whole and streamed alike."""

import itertools
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reflexarc.wire.assembling import Assembler, events_of
from reflexarc.wire.converting import Conversion, StreamConversion, TurnMemory, read_ask
from reflexarc.wire.dialect import Where
from reflexarc.wire.dialects import NAMES, dialect
from reflexarc.wire.ids import IdMap
from reflexarc.wire.json import decode_strict, encode_json
from reflexarc.wire.losses import Losses
from reflexarc.wire.replies import (
    Began,
    Ended,
    Event,
    PartBegan,
    PartEnded,
    PartGrew,
    Reply,
    ReplyPart,
)
from reflexarc.wire.sse import SseParser
from reflexarc.wire.turns import Ask, Call, Text, Thinking
from reflexarc.wire.usage import Usage
from tests.wire.conversations import answered, asks, meaning, replies
from tests.wire.frames import told
from tests.wire.matrix.cells import NOW_S, ask_in

PAIRS = list(itertools.product(NAMES, NAMES))


def _through(ask: Ask, name: str) -> Ask:
    """The same request, written and read in a dialect."""
    losses = Losses(name)
    body = dialect(name).write_ask(ask, losses, IdMap(dialect(name).ids))
    assert losses.names == ()
    return read_ask(dialect(name), encode_json(body), Where("model-a"), TurnMemory())


@pytest.mark.parametrize(("first", "second"), PAIRS)
@settings(max_examples=8, deadline=None)
@given(ask=asks())
def test_requests_go_there_and_back(first: str, second: str, ask: Ask) -> None:
    begun = _through(ask, first)
    assert meaning(begun) == meaning(ask)
    assert meaning(_through(_through(begun, second), first)) == meaning(begun)


def _told(reply: Reply, name: str, ask: Ask, *, stream: bool) -> bytes:
    """As a server of this dialect tells it."""
    losses = Losses(name)
    if not stream:
        return encode_json(dialect(name).write_reply(reply, ask, losses))
    writer = dialect(name).stream_writer(ask, losses)
    return b"".join(writer.write(event) for event in events_of(reply))


def _read(data: bytes, name: str, *, stream: bool) -> Reply:
    if not stream:
        return dialect(name).read_reply(decode_strict(data))
    reader, assembler = dialect(name).stream_reader(), Assembler()
    for event in SseParser().feed(data):
        for one in reader.read(event):
            assembler.take(one)
    for one in reader.close():
        assembler.take(one)
    return assembler.reply()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("upstream", "client"), PAIRS)
@settings(max_examples=6, deadline=None)
@given(reply=replies())
def test_answers_go_there_and_back(upstream: str, client: str, stream: bool, reply: Reply) -> None:
    data = _told(reply, upstream, ask_in(upstream, stream=stream), stream=stream)
    ask = ask_in(client, stream=stream)
    conversion = Conversion(dialect(client), dialect(upstream), ask, NOW_S)
    if stream:
        converting: StreamConversion = conversion.stream()
        out = converting.feed(data) + converting.close()
    else:
        out = conversion.write(conversion.read(data))
    wanted = answered(reply)
    if client == "messages" and reply.usage is None:
        wanted = answered(msgspec.structs.replace(reply, usage=Usage(0, 0)))
    if upstream == "messages" and reply.usage is None:  # it always tells numbers
        wanted = answered(msgspec.structs.replace(reply, usage=Usage(0, 0)))
    assert answered(_read(out, client, stream=stream)) == wanted
    assert conversion.answer_losses.names == ()


@st.composite
def _events(draw: st.DrawFn) -> tuple[list[Event], list[ReplyPart]]:
    """A stream of parts in any legal order: calls beside one another and not ended, all else ended
    before another part begins."""
    events: list[Event] = [Began("answer1", "model-a", 1, origin="")]
    parts: list[ReplyPart] = []
    grown: dict[int, list[str]] = {}
    open_calls: list[int] = []
    for _ in range(draw(st.integers(1, 9))):
        move = draw(st.sampled_from(["text", "thinking", "call", "call", "grow", "grow", "end"]))
        if move in ("text", "thinking"):
            at, texts = len(parts), draw(st.lists(st.sampled_from("abc\u2028"), max_size=3))
            part: ReplyPart = Text("") if move == "text" else Thinking("", origin="chat")
            events += [PartBegan(at, part), *(PartGrew(at, t) for t in texts), PartEnded(at)]
            parts.append(msgspec.structs.replace(part, text="".join(texts)))
        elif move == "call":
            at = len(parts)
            parts.append(Call(f"call_{at}", "find", ""))
            events.append(PartBegan(at, parts[-1]))
            text = draw(st.sampled_from(["", '{"a":1}', '{"a":"}{"}', '{"b":[{}]}']))
            cut = draw(st.integers(0, len(text)))
            grown[at] = [piece for piece in (text[:cut], text[cut:]) if piece]
            parts[-1] = Call(f"call_{at}", "find", text or "{}")
            open_calls.append(at)
        elif open_calls:
            at = draw(st.sampled_from(open_calls))
            if grown[at]:
                events.append(PartGrew(at, grown[at].pop(0)))
            elif move == "end":
                events.append(PartEnded(at))
                open_calls.remove(at)
    for at in open_calls:
        events += [PartGrew(at, piece) for piece in grown[at]]
    calls = any(isinstance(part, Call) for part in parts)
    events.append(Ended("calls" if calls else "end", usage=Usage(9, 4)))
    return events, parts


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60, deadline=None)
@given(made=_events())
def test_events_in_any_legal_order_make_frames_in_the_dialects_order(
    name: str, made: tuple[list[Event], list[Any]]
) -> None:
    events, parts = made
    writer = dialect(name).stream_writer(ask_in(name, stream=True), Losses(name))
    one = told(name, b"".join(writer.write(event) for event in events))
    assert one.clean
    assert one.text == "".join(part.text for part in parts if isinstance(part, Text))
    assert one.thinking == "".join(part.text for part in parts if isinstance(part, Thinking))
    calls = [(part.id, part.name, part.arguments) for part in parts if isinstance(part, Call)]
    assert one.calls == calls
    assert one.usage == (9, 4)
