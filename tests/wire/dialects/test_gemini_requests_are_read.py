"""Requests for `generateContent`, as clients send them."""

import base64
from typing import Any

import msgspec
import pytest

from reflexarc.steps.errors import RequestError
from reflexarc.wire.converting import TurnMemory
from reflexarc.wire.dialect import Where
from reflexarc.wire.dialects.gemini import DIALECT
from reflexarc.wire.ids import CHAT_IDS
from reflexarc.wire.sealed import Sealed, seal
from reflexarc.wire.turns import (
    Call,
    Media,
    Part,
    Result,
    Text,
    Thinking,
)
from tests.wire.dialects.gemini_asks import (
    WHOLE,
    answered,
    called,
    read,
    said,
)


def _snake(value: Any) -> Any:
    """The same request as a reader of proto3 JSON may get it, data left alone."""
    if isinstance(value, list):
        return [_snake(one) for one in value]
    if not isinstance(value, dict):
        return value
    data = ("args", "response", "parametersJsonSchema", "responseJsonSchema", "labels")
    return {
        "".join(f"_{c.lower()}" if c.isupper() else c for c in name): held
        if name in data
        else _snake(held)
        for name, held in value.items()
    }


def test_both_spellings_of_members_are_read() -> None:
    snake = _snake({k: v for k, v in WHOLE.items() if k != "toolConfig"})
    camel = {k: v for k, v in WHOLE.items() if k != "toolConfig"}
    found, meant = read(snake), read(camel)
    assert found.turns[1:4] == meant.turns[1:4]
    left = ("more",)
    assert {k: v for k, v in msgspec.structs.asdict(found.settings).items() if k not in left} == {
        k: v for k, v in msgspec.structs.asdict(meant.settings).items() if k not in left
    }
    assert [(t.name, t.parameters) for t in found.tools[:3]] == [
        (t.name, t.parameters) for t in meant.tools[:3]
    ]


def test_a_member_in_two_spellings_is_refused() -> None:
    with pytest.raises(RequestError, match="two spellings"):
        read({"generationConfig": {"topK": 1, "top_k": 2}})


def test_model_and_stream_come_from_the_url() -> None:
    settings = read({"model": "models/x"}, Where("models/y", stream=True)).settings
    assert (settings.model, settings.stream) == ("y", True)
    assert read({"model": "models/x"}, Where()).settings.model == "x"


def test_calls_without_ids_get_the_same_ones_whenever_they_are_read() -> None:
    turn = said(called("f"), called("f"), called("g"))
    go_on = said({"text": "and?"}, role="user")
    short = read({"contents": [go_on, turn]})
    long = read({"contents": [go_on, turn, go_on, turn]})
    ids = [p.id for t in long.turns for p in t.parts if isinstance(p, Call)]
    assert long.turns[:2] == short.turns
    assert len(set(ids)) == 6
    assert all(CHAT_IDS.fits.fullmatch(i) for i in ids)


def test_what_one_conversation_was_read_as_changes_no_ids_of_another() -> None:
    memory = TurnMemory()
    turn, other = said(called("f")), said(called("g"))
    read({"contents": [other, turn]}, memory=memory)
    assert read({"contents": [turn]}, memory=memory) == read({"contents": [turn]})


def test_responses_without_ids_go_to_the_calls_of_their_name_in_order() -> None:
    contents = [
        said({"text": "?"}, role="user"),
        said(called("f", args={"x": 1}), called("g")),
        said(called("f", args={"x": 2})),
        said(answered("g", {"result": "g"}), answered("f", {"result": "1"}), role="user"),
        said(answered("f", {"result": "2"}), role="function"),
    ]
    turns = read({"contents": contents}).turns
    assert [turn.role for turn in turns] == ["user", "assistant", "tool"]
    calls = {c.id: c.arguments + c.name for c in turns[1].parts if isinstance(c, Call)}
    found = [
        (calls[r.call_id], r.parts[0].text)
        for r in turns[2].parts
        if isinstance(r, Result) and isinstance(r.parts[0], Text)
    ]
    assert found == [("{}g", "g"), ('{"x":1}f', "1"), ('{"x":2}f', "2")]


def test_a_call_of_an_earlier_turn_does_not_get_a_later_ones_result() -> None:
    contents = [
        said(called("f")),
        said({"text": "never mind"}, role="user"),
        said(called("f")),
        said(answered("f", {}), role="user"),
    ]
    turns = read({"contents": contents}).turns
    late = turns[2].parts[0]
    result = turns[3].parts[0]
    assert isinstance(late, Call)
    assert isinstance(result, Result)
    assert result.call_id == late.id


def test_results_stand_first_and_apart_from_what_the_user_says() -> None:
    content = said({"text": "so"}, answered("f", {}), role="user")
    tool, user = DIALECT.read_message(content, "contents[2]")
    assert (tool.role, user.role, user.parts) == ("tool", "user", (Text("so"),))


def test_open_api_schemas_are_read_as_json_schema() -> None:
    schema = {
        "type": "OBJECT",
        "nullable": True,
        "properties": {
            "type": {"type": "STRING", "nullable": True, "enum": ["a"], "format": "enum"},
            "nullable": {"type": "ARRAY", "items": {"type": "INTEGER"}, "minItems": "1"},
            "either": {"anyOf": [{"type": "NUMBER"}, {"type": "STRING"}], "nullable": True},
        },
        "propertyOrdering": ["either", "type"],
        "required": ["type"],
        "additionalProperties": False,
    }
    body = {"tools": [{"functionDeclarations": [{"name": "f", "parameters": schema}]}]}
    parameters = read(body).tools[0].parameters
    assert parameters == {
        "type": ["object", "null"],
        "properties": {
            "type": {"type": ["string", "null"], "enum": ["a", None]},
            "nullable": {"type": "array", "items": {"type": "integer"}, "minItems": 1},
            "either": {"anyOf": [{"type": "number"}, {"type": "string"}, {"type": "null"}]},
        },
        "required": ["type"],
        "additionalProperties": False,
    }
    assert parameters is not None
    assert list(parameters["properties"]) == ["either", "type", "nullable"]


@pytest.mark.parametrize("alphabet", ["standard", "urlsafe"])
def test_sealed_signatures_are_opened_after_clients_wrote_them_again(alphabet: str) -> None:
    sealed = Sealed("messages", "sig?>~ÿ", redacted=True, id="i", more={"k": 1})
    raw = seal(sealed).encode()
    encode = base64.b64encode if alphabet == "standard" else base64.urlsafe_b64encode
    content = said({"text": "", "thought": True, "thoughtSignature": encode(raw).decode()})
    part = DIALECT.read_message(content, "contents[0]")[0].parts[0]
    assert part == Thinking("", "sig?>~ÿ", "messages", True, "i", {"k": 1})


def test_files_at_google_are_no_addresses_for_others() -> None:
    def read(uri: str) -> Part:
        part = {"fileData": {"fileUri": uri, "mimeType": "image/png"}}
        return DIALECT.read_message(said(part, role="user"), "contents[0]")[0].parts[0]

    own = "https://generativelanguage.googleapis.com/v1beta/files/a"
    assert read(own) == Media("image", "image/png", file=own)
    assert read("gs://b/a") == Media("image", "image/png", file="gs://b/a")
    assert read("https://e.org/a") == Media("image", "image/png", url="https://e.org/a")


@pytest.mark.parametrize(
    ("content", "param"),
    [
        ("hi", "contents[3]"),
        (said({"text": 1}), "contents[3].parts[0].text"),
        (said({}), "contents[3].parts[0]"),
        (said({"text": "a", "inlineData": {}}), "contents[3].parts[0]"),
        (said({"text": "a"}, role="system"), "contents[3].role"),
        (said(called("f"), role="user"), "contents[3]"),
        (said(answered("f", {})), "contents[3].parts[0]"),
        (said({"functionCall": {"args": {}}}), "contents[3].parts[0].functionCall.name"),
        (said(called("f", args=[])), "contents[3].parts[0].functionCall.args"),
        (
            said({"functionResponse": {"response": {}}}, role="user"),
            "contents[3].parts[0].functionResponse.name",
        ),
        ({"role": "user", "parts": "hi"}, "contents[3].parts"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_path(content: Any, param: str) -> None:
    with pytest.raises(RequestError) as caught:
        DIALECT.read_message(content, "contents[3]")
    assert caught.value.param == param


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"generationConfig": {"topK": 1.5}}, "generationConfig.topK"),
        ({"generationConfig": {"temperature": True}}, "generationConfig.temperature"),
        (
            {"toolConfig": {"functionCallingConfig": {"mode": "SOME"}}},
            "toolConfig.functionCallingConfig.mode",
        ),
        ({"tools": "x"}, "tools"),
        ({"systemInstruction": "x"}, "systemInstruction"),
        ({"store": 1}, "store"),
    ],
)
def test_a_head_that_does_not_fit_is_refused_with_its_path(
    body: dict[str, Any], param: str
) -> None:
    with pytest.raises(RequestError) as caught:
        read(body)
    assert caught.value.param == param


def test_an_answer_kept_chunk_by_chunk_is_one_turn_again() -> None:
    contents = [
        said({"text": "?"}, role="user"),
        said({"text": "Hel"}),
        said({"text": "lo"}, called("f")),
        said({"text": "", "thoughtSignature": "c2ln"}),
        said({"text": "!"}),
        said({"text": "?"}),
        said({"text": ".", "thoughtSignature": "c2ln"}),
    ]
    _, turn = read({"contents": contents}).turns
    texts = [part.text for part in turn.parts if isinstance(part, Text)]
    assert texts == ["Hello", "!?", "."]
    assert Text("Hello") in turn.parts
