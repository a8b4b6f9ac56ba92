"""Random requests and answers of what all dialects can say, and what of them must stay the same."""

import json
from typing import Any

from hypothesis import strategies as st

from reflexarc.wire.replies import Reply, Stop
from reflexarc.wire.turns import (
    Ask,
    Call,
    Media,
    Refusal,
    Result,
    Settings,
    Text,
    Thinking,
    ToolChoice,
    ToolOffer,
    Turn,
)
from reflexarc.wire.usage import Usage

_words = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cs",)), min_size=1, max_size=12
).filter(lambda text: bool(text.strip()) and text == text.strip() and text[0] not in "{[")
_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | _words | st.just(1.5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_words, inner, max_size=3),
    max_leaves=6,
)
_objects = st.dictionaries(_words, _values, max_size=3)
_names = st.sampled_from(["get_weather", "find", "a-b_C9"])
_schemas = st.fixed_dictionaries(
    {"type": st.just("object"), "properties": st.dictionaries(_words, st.just({"type": "string"}))},
    optional={"additionalProperties": st.booleans(), "required": st.lists(_words, max_size=2)},
)


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


@st.composite
def _exchange(draw: st.DrawFn, number: int) -> list[Turn]:
    """The user's words, calls with their results, and an answer."""
    said: list[Any] = [Text(draw(_words)) for _ in range(draw(st.integers(1, 2)))]
    if draw(st.booleans()):
        said.append(Media("image", "image/png", "iVBORw0KGgo="))
    turns = [Turn("user", tuple(said))]
    for round_ in range(draw(st.integers(0, 2))):
        calls = [
            Call(f"call_{number}_{round_}_{at}", draw(_names), compact(draw(_objects)))
            for at in range(draw(st.integers(1, 3)))
        ]
        first = (Text(draw(_words)),) if draw(st.booleans()) else ()
        turns.append(Turn("assistant", (*first, *calls)))
        results = tuple(
            Result(call.id, (Text(draw(_words | _objects.map(compact))),), name=call.name)
            for call in calls
        )
        turns.append(Turn("tool", results))
    turns.append(Turn("assistant", (Text(draw(_words)),)))
    return turns


@st.composite
def asks(draw: st.DrawFn) -> Ask:
    turns: list[Turn] = []
    if draw(st.booleans()):
        turns.append(Turn("system", (Text(draw(_words)),)))
    for number in range(draw(st.integers(1, 2))):
        turns += draw(_exchange(number))
    turns.append(Turn("user", (Text(draw(_words)),)))
    names = draw(st.lists(_names, unique=True, min_size=1, max_size=3))
    tools = tuple(ToolOffer(n, draw(st.none() | _words), draw(_schemas)) for n in names)
    choices = [None, ToolChoice("auto"), ToolChoice("required"), ToolChoice("tool", (names[0],))]
    # Some models take one of the two alone.
    temperature, top_p = draw(st.sampled_from([(None, None), (0, None), (0.5, None), (None, 0.9)]))
    settings = Settings(
        "model-a",
        max_tokens=draw(st.integers(16, 9000)),
        temperature=temperature,
        top_p=top_p,
        choice=draw(st.sampled_from(choices)),
    )
    return Ask("", settings, tuple(turns), tools)


def meaning(ask: Ask) -> Any:
    """What must be the same after any way through dialects: turns of one speaker may be put
    together."""
    said: list[Any] = []
    for turn in ask.turns:
        for part in turn.parts:
            if isinstance(part, Text):
                said.append((turn.role, "text", part.text))
            elif isinstance(part, Media):
                said.append((turn.role, part.kind, part.media_type, part.data, part.url))
            elif isinstance(part, Call):
                said.append(("call", part.id, part.name, part.arguments))
            elif isinstance(part, Result):
                texts = [one.text for one in part.parts if isinstance(one, Text)]
                said.append(("result", part.call_id, part.name, texts))
    settings = ask.settings
    choice = settings.choice and (settings.choice.mode, settings.choice.names)
    offers = [(one.name, one.description, compact(one.parameters)) for one in ask.tools]
    sampling = settings.max_tokens, settings.temperature, settings.top_p
    return said, offers, choice, sampling, settings.model


@st.composite
def replies(draw: st.DrawFn) -> Reply:
    parts: list[Any] = [Text(draw(_words))] if draw(st.booleans()) else []
    parts += [
        Call(f"call_{at}", draw(_names), compact(draw(_objects)))
        for at in range(draw(st.integers(0, 3)))
    ]
    if not parts:
        parts.append(Text("x"))
    usage = None
    if draw(st.booleans()):
        cached, reasoning = draw(st.integers(0, 50)), draw(st.integers(0, 50))
        given, made = draw(st.integers(cached, 100)), draw(st.integers(max(1, reasoning), 100))
        usage = Usage(given, made, cache_read=cached, reasoning=reasoning)
    calls = any(isinstance(part, Call) for part in parts)
    ends: list[Stop] = ["calls" if calls else "end", "length"]
    stop = draw(st.sampled_from(ends))
    return Reply("answer1", "model-a", tuple(parts), stop, usage=usage, created_s=1)


def answered(reply: Reply) -> Any:
    """What of an answer must be the same."""
    texts = "".join(part.text for part in reply.parts if isinstance(part, Text | Refusal))
    thinking = "".join(part.text for part in reply.parts if isinstance(part, Thinking))
    calls = [(call.id, call.name, call.arguments) for call in reply.calls]
    return texts, thinking, calls, reply.stop, reply.usage, reply.model
