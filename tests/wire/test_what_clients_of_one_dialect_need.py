"""Small things that clients of one provider look for, and that others do without."""

import base64
from typing import Any

import msgspec
import pytest
from cerebras.cloud.sdk._models import construct_type  # what its stream makes objects with
from cerebras.cloud.sdk.types.chat.chat_completion import ChatChunkResponse, ChatCompletion

from reflexarc.wire.dialects import dialect
from reflexarc.wire.losses import Losses
from reflexarc.wire.replies import Began, Ended, Event, PartBegan, PartEnded, PartGrew
from reflexarc.wire.sse import SseParser
from reflexarc.wire.turns import Ask, Call, Media, Settings, Text, Thinking

PARTS: tuple[Event, ...] = (
    PartBegan(0, Thinking("")),
    PartGrew(0, "hm"),
    PartEnded(0),
    PartBegan(1, Text("")),
    PartGrew(1, "so"),
    PartEnded(1),
    PartBegan(2, Call("a", "look", "")),
    PartGrew(2, '{"city":'),
    PartGrew(2, '"Oslo"}'),
    PartEnded(2),
)


def chunks(more: dict[str, Any]) -> list[Any]:
    ask = Ask("chat", Settings(model="m", stream=True, more=more), (), ())
    writer = dialect("chat").stream_writer(ask, Losses("chat"))
    events = (Began("id", "m", 1), *PARTS, Ended("calls"))
    told = SseParser().feed(b"".join(writer.write(event) for event in events))
    return [msgspec.json.decode(event.data) for event in told if event.data != b"[DONE]"]


def test_the_client_of_cerebras_makes_objects_of_every_chunk() -> None:
    for chunk in chunks({"reasoning_format": "parsed"}):
        made: Any = construct_type(type_=ChatCompletion, value=chunk)
        assert isinstance(made, ChatChunkResponse)


@pytest.mark.parametrize(
    ("more", "member"),
    [
        ({}, "reasoning_content"),
        ({"reasoning_format": "parsed"}, "reasoning"),
        ({"include_reasoning": True}, "reasoning"),
    ],
)
def test_thinking_stands_where_the_client_asked_for_it(more: dict[str, Any], member: str) -> None:
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks(more)]
    thinking = [d for d in deltas if {"reasoning", "reasoning_content"} & set(d)]
    assert thinking == [{member: "hm"}]


def test_base64_of_googles_clients_is_written_in_the_alphabet_of_all() -> None:
    image = b"\xfb\xff\xfe\x00"
    part = {"inline_data": {"mime_type": "image/png", "data": base64.urlsafe_b64encode(image)}}
    part["inline_data"]["data"] = part["inline_data"]["data"].decode().rstrip("=")
    (turn,) = dialect("gemini").read_message({"role": "user", "parts": [part]}, "contents[0]")
    (media,) = turn.parts
    assert isinstance(media, Media)
    assert media.data is not None
    assert base64.b64decode(media.data, validate=True) == image
