"""What must hold of any bytes at all: nothing but errors that are meant, and well-formed output."""

import json
import re
import time
from typing import Any

from reflexarc.steps.errors import InputError, MalformedError
from reflexarc.wire.assembling import Assembler, BrokenOffError
from reflexarc.wire.converting import Conversion, TurnMemory, read_ask
from reflexarc.wire.dialect import Where
from reflexarc.wire.dialects import dialect
from reflexarc.wire.json import MAX_DEPTH, decode_strict
from reflexarc.wire.sse import SseParser
from tests.wire.frames import told
from tests.wire.matrix.cells import NOW_S, REQUEST_ID, answering

_drawn = re.compile(rb"call_[0-9a-f]{16}_\d+")
"""Ids of calls without one in an answer without one: no two are the same."""
_DEEPER = 2 * MAX_DEPTH
"""What is as deep as it may be stands some levels deeper in another dialect."""
MAX_CPU_S = 2.0
"""Of a case of some kilobytes: hundreds of times what it takes."""


def check(sort: str, origin: str, target: str, data: bytes, pieces: list[bytes]) -> str:
    """Raises whatever is wrong. Gives a word for what became of it."""
    began_s = time.process_time()
    if sort == "requests":
        outcome = _request(origin, target, data)
    elif sort == "answers":
        outcome = _answer(origin, target, data)
    elif sort == "streams":
        outcome = _stream(origin, target, data, pieces)
    else:
        outcome = _fault(origin, target, data)
    took_s = time.process_time() - began_s
    assert took_s < MAX_CPU_S, f"took {took_s:.1f} s for {len(data)} bytes"
    return outcome


def _where(name: str) -> Where:
    return Where("model-a") if name == "gemini" else Where()


def _request(origin: str, target: str, data: bytes) -> str:
    try:
        ask = read_ask(dialect(origin), data, _where(origin), TurnMemory())
    except InputError:
        return "refused"
    conversion = Conversion(dialect(origin), dialect(target), ask, NOW_S)
    body = conversion.request()
    assert conversion.losses.text().isascii()
    decode_strict(body, max_depth=_DEEPER)
    again = read_ask(dialect(target), body, _where(target), TurnMemory(), _DEEPER)
    _same_calls(ask, again, conversion)
    return "converted"


def _same_calls(ask: Any, again: Any, conversion: Conversion) -> None:
    """No call is lost or doubled, and each result stays with its call."""
    for kind in ("Call", "Result"):
        before = [p for turn in ask.turns for p in turn.parts if type(p).__name__ == kind]
        after = [p for turn in again.turns for p in turn.parts if type(p).__name__ == kind]
        assert len(before) == len(after) or conversion.losses.names, f"{kind} lost or doubled"


def _answer(origin: str, target: str, data: bytes) -> str:
    conversion = answering(origin, target, stream=False)
    try:
        reply = conversion.read(data)
    except BrokenOffError as error:
        _told_fault(target, error.fault)
        return "broken off"
    except MalformedError:
        return "malformed"
    body = conversion.write(reply)
    assert conversion.answer_losses.text().isascii()
    dialect(target).read_reply(decode_strict(body))
    streamed = answering(origin, target, stream=True)
    one = told(target, streamed.streamed(streamed.own(reply)))
    assert one.clean
    assert [call[1] for call in one.calls] == [call.name for call in reply.calls]
    return "converted"


def _stream(origin: str, target: str, data: bytes, pieces: list[bytes]) -> str:
    conversion = answering(origin, target, stream=True)
    converting = conversion.stream()
    out = b"".join([*map(converting.feed, pieces), converting.close()])
    assert converting.over
    again = answering(origin, target, stream=True).stream()
    whole = again.feed(data) + again.close()
    assert _drawn.sub(b"", whole) == _drawn.sub(b"", out), "split, it is another stream"
    one = told(target, out)
    if converting.fault is not None:
        _told_fault(target, converting.fault)
        assert one.failed or not out
        return "failed"
    assert one.clean
    reader, assembler = dialect(target).stream_reader(), Assembler()
    for event in SseParser().feed(out):
        for each in reader.read(event):
            assembler.take(each)
    for each in reader.close():
        assembler.take(each)
    reply = assembler.reply()
    assert [call.name for call in reply.calls] == [call[1] for call in one.calls]
    return "converted"


def _fault(origin: str, target: str, data: bytes) -> str:
    for status in (400, 429, 500, 529):
        conversion = answering(origin, target, stream=False)
        told_status, body, _ = conversion.fault(status, data, REQUEST_ID)
        assert 400 <= told_status < 600
        assert isinstance(json.loads(body)["error"]["message"], str)
    return "told"


def _told_fault(target: str, fault: Any) -> None:
    status, body = dialect(target).write_fault(fault, REQUEST_ID)
    assert 400 <= status < 600
    assert isinstance(body["error"]["message"], str)
