"""Requests for `generateContent` are the same after they were read and written."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.wire.turns import (
    Result,
    Text,
)
from tests.wire.dialects.gemini_asks import (
    WHOLE,
    answered,
    called,
    read,
    said,
    write,
)


def test_a_request_goes_there_and_back_unchanged() -> None:
    assert write(read(WHOLE)) == (WHOLE, ())


@pytest.mark.parametrize(
    ("response", "text", "is_error"),
    [
        ({"result": "plain"}, "plain", False),
        ({"output": "plain"}, "plain", False),
        ({"output": [1, 2.0]}, "[1,2.0]", False),
        ({"result": {"a": 1}}, '{"a":1}', False),
        ({"result": None}, "null", False),
        ({"error": "gone"}, "gone", True),
        ({"b": 1, "a": "ü"}, '{"b":1,"a":"ü"}', False),
        ({"output": 1, "error": "e"}, '{"output":1,"error":"e"}', False),
        ({"result": '{"a":1}'}, '{"a":1}', False),
        ({"result": {"result": 1}}, '{"result":1}', False),
        ({}, "{}", False),
    ],
)
def test_a_response_is_read_as_text_and_written_as_it_was(
    response: dict[str, Any], text: str, is_error: bool
) -> None:
    body = {
        "contents": [said(called("f")), said(answered("f", response), role="user")],
    }
    ask = read(body)
    result = ask.turns[1].parts[0]
    assert isinstance(result, Result)
    assert result.parts == (Text(text),)
    assert result.is_error is is_error
    assert write(ask)[0]["contents"] == body["contents"]


_words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | _words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_words, inner, max_size=2),
    max_leaves=4,
)


_objects = st.dictionaries(_words, _values, max_size=3)


_names = st.sampled_from(["f", "g"])


_signed = st.fixed_dictionaries({}, optional={"thoughtSignature": st.just("c2ln")})


_ids = st.fixed_dictionaries({}, optional={"id": st.uuids().map(str)})


_said_text = st.builds(lambda t, s: {"text": t, **s}, _words, _signed)


_thought = st.builds(lambda t, s: {"text": t, "thought": True, **s}, _words, _signed)


_call = st.builds(
    lambda n, a, i, s: {"functionCall": {**i, "name": n, "args": a}, **s},
    _names,
    _objects,
    _ids,
    _signed,
)


_foreign = _objects.map(lambda o: {"executableCode": {"code": "1", **o}})


_signature = st.sampled_from(
    [{"text": "", "thoughtSignature": "AA=="}, {"thoughtSignature": "AA=="}]
)


_model = st.lists(_said_text | _thought | _call | _foreign | _signature, min_size=1, max_size=4)


_media = st.sampled_from(["image/png", "audio/wav", "application/pdf"]).map(
    lambda t: {"inlineData": {"mimeType": t, "data": "AAAA"}}
)


_plain = st.lists(_words.map(lambda t: {"text": t}) | _media, min_size=1, max_size=3)


_response = _objects | st.builds(
    lambda name, value: {name: value}, st.sampled_from(["result", "output", "error"]), _values
)


_responses = st.lists(
    st.builds(
        lambda n, r, i, m: {
            "functionResponse": {**i, "name": n, "response": r, **({"parts": m} if m else {})}
        },
        _names,
        _response,
        _ids,
        st.lists(_media, max_size=1),
    ),
    min_size=1,
    max_size=2,
)


_exchange = st.tuples(
    st.builds(lambda r, p: said(*r, *p, role="user"), _responses | st.just([]), _plain),
    _model.map(lambda parts: said(*parts)),
)


@given(
    exchanges=st.lists(_exchange, min_size=1, max_size=3),
    schema=_objects,
    config=st.fixed_dictionaries(
        {},
        optional={
            "temperature": st.floats(0, 2),
            "seed": st.integers(-(2**31), 2**31 - 1),
            "stopSequences": st.lists(_words, min_size=1, max_size=2),
            "thinkingConfig": st.sampled_from(
                [
                    {"thinkingBudget": -1},
                    {"thinkingBudget": 0, "includeThoughts": False},
                    {"thinkingBudget": 9},
                    {"thinkingLevel": "HIGH"},
                ]
            ),
            "speechConfig": _objects,
        },
    ),
)
def test_any_conversation_goes_there_and_back_unchanged(
    exchanges: list[tuple[Any, Any]], schema: dict[str, Any], config: dict[str, Any]
) -> None:
    body: dict[str, Any] = {
        "contents": [content for exchange in exchanges for content in exchange],
        "tools": [
            {"functionDeclarations": [{"name": "f", "parametersJsonSchema": schema}]},
            {"urlContext": {}},
        ],
    }
    if config:
        body["generationConfig"] = config
    assert write(read(body)) == (body, ())
