"""Requests for `generateContent`: read, written, and there and back again."""

import base64
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.steps.errors import RequestError
from reflexarc.wire.dialect import Where
from reflexarc.wire.dialects.gemini import DIALECT
from reflexarc.wire.dialects.gemini.signatures import SKIP_SIGNATURE
from reflexarc.wire.ids import GEMINI_IDS, IdMap
from reflexarc.wire.losses import Losses
from reflexarc.wire.sealed import Sealed, seal
from reflexarc.wire.turns import (
    Ask,
    Call,
    Foreign,
    Media,
    OutputFormat,
    Part,
    Reasoning,
    Result,
    Settings,
    Text,
    Thinking,
    ToolChoice,
    ToolOffer,
    Turn,
    joined,
)

AT = Where("gemini-3-pro")


def _read(body: dict[str, Any], where: Where = AT) -> Ask:
    head = DIALECT.read_head({k: v for k, v in body.items() if k != "contents"}, where)
    turns = list(head.turns)
    for at, content in enumerate(body.get("contents", [])):
        turns += DIALECT.read_message(content, f"contents[{at}]")
    return Ask("gemini", head.settings, joined(turns), head.tools)


def _write(ask: Ask) -> tuple[dict[str, Any], tuple[str, ...]]:
    losses = Losses("gemini")
    return DIALECT.write_ask(ask, losses, IdMap(GEMINI_IDS)), losses.names


def _asked(*turns: Turn, model: str = "gemini-2.5-flash", **settings: Any) -> Ask:
    tools = settings.pop("tools", ())
    dialect = settings.pop("dialect", "chat")
    return Ask(dialect, Settings(model=model, **settings), turns, tools)


def _user(*parts: Part) -> Turn:
    return Turn("user", parts)


def _said(*parts: dict[str, Any], role: str = "model") -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


def _called(name: str, **more: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": {}, **more}}


def _answered(name: str, response: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"functionResponse": {"name": name, "response": response, **more}}


HI = Turn("user", (Text("hi"),))

WHOLE: dict[str, Any] = {
    "systemInstruction": {"parts": [{"text": "Be brief."}]},
    "contents": [
        _said(
            {"text": "look"},
            {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
            {
                "fileData": {"mimeType": "video/mp4", "fileUri": "https://e.org/v"},
                "videoMetadata": {"fps": 2},
            },
            role="user",
        ),
        _said(
            {"text": "hm", "thought": True, "thoughtSignature": "c2ln"},
            {"text": "so", "thoughtSignature": "c2ln"},
            {
                "functionCall": {"id": "a1", "name": "look", "args": {"b": 1, "a": None}},
                "thoughtSignature": "c2ln",
            },
            _called("look"),
        ),
        _said(
            _answered("look", {"result": "42"}, id="a1"),
            _answered(
                "look",
                {"error": {"why": "gone"}},
                parts=[{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}],
                scheduling="SILENT",
            ),
            {"text": "and now?"},
            role="user",
        ),
        _said(
            {"executableCode": {"language": "PYTHON", "code": "1"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK"}, "thoughtSignature": "c2ln"},
            {"text": "", "thoughtSignature": "bGF0ZQ=="},
            {"thoughtSignature": "YmFyZQ=="},
        ),
    ],
    "tools": [
        {
            "functionDeclarations": [
                {"name": "look", "parameters": {"type": "OBJECT", "nullable": True}},
                {"name": "see", "parametersJsonSchema": {"$ref": "#/$defs/a"}, "behavior": "X"},
                {"name": "bare", "description": "d"},
            ]
        },
        {"googleSearch": {}},
        {"codeExecution": {}},
    ],
    "toolConfig": {
        "functionCallingConfig": {"mode": "VALIDATED", "allowedFunctionNames": ["look", "see"]},
        "retrievalConfig": {"languageCode": "en"},
    },
    "generationConfig": {
        "temperature": 0.5,
        "topP": 0.9,
        "topK": 40,
        "maxOutputTokens": 100,
        "stopSequences": ["END"],
        "candidateCount": 2,
        "seed": 7,
        "presencePenalty": 0.1,
        "frequencyPenalty": -0.1,
        "responseMimeType": "application/json",
        "responseJsonSchema": {"type": "object"},
        "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "LOW"},
        "responseModalities": ["TEXT"],
        "mediaResolution": "MEDIA_RESOLUTION_LOW",
    },
    "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
    "cachedContent": "cachedContents/1",
    "serviceTier": "standard",
    "store": False,
    "labels": {"a": "b"},
}


def test_a_request_goes_there_and_back_unchanged() -> None:
    assert _write(_read(WHOLE)) == (WHOLE, ())


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
    read, meant = _read(snake), _read(camel)
    assert read.turns[1:4] == meant.turns[1:4]
    left = ("more",)
    assert {k: v for k, v in msgspec.structs.asdict(read.settings).items() if k not in left} == {
        k: v for k, v in msgspec.structs.asdict(meant.settings).items() if k not in left
    }
    assert [(t.name, t.parameters) for t in read.tools[:3]] == [
        (t.name, t.parameters) for t in meant.tools[:3]
    ]


def test_a_member_in_two_spellings_is_refused() -> None:
    with pytest.raises(RequestError, match="two spellings"):
        _read({"generationConfig": {"topK": 1, "top_k": 2}})


def test_model_and_stream_come_from_the_url() -> None:
    settings = _read({"model": "models/x"}, Where("models/y", stream=True)).settings
    assert (settings.model, settings.stream) == ("y", True)
    assert _read({"model": "models/x"}, Where()).settings.model == "x"


def test_calls_without_ids_get_the_same_ones_whenever_they_are_read() -> None:
    contents = [_said({"text": "?"}, role="user"), _said(_called("f"), _called("f"), _called("g"))]
    first, again = _read({"contents": contents}), _read({"contents": contents})
    ids = [part.id for part in first.turns[1].parts if isinstance(part, Call)]
    assert first == again
    assert len(set(ids)) == 3
    assert all(_fits_chat(i) for i in ids)


def _fits_chat(identity: str) -> bool:
    return len(identity) <= 40 and identity.isascii()


def test_responses_without_ids_go_to_the_calls_of_their_name_in_order() -> None:
    contents = [
        _said({"text": "?"}, role="user"),
        _said(_called("f", args={"x": 1}), _called("g")),
        _said(_called("f", args={"x": 2})),
        _said(_answered("g", {"result": "g"}), _answered("f", {"result": "1"}), role="user"),
        _said(_answered("f", {"result": "2"}), role="function"),
    ]
    turns = _read({"contents": contents}).turns
    assert [turn.role for turn in turns] == ["user", "assistant", "tool"]
    calls = {c.id: c.arguments + c.name for c in turns[1].parts if isinstance(c, Call)}
    answered = [
        (calls[r.call_id], r.parts[0].text)
        for r in turns[2].parts
        if isinstance(r, Result) and isinstance(r.parts[0], Text)
    ]
    assert answered == [("{}g", "g"), ('{"x":1}f', "1"), ('{"x":2}f', "2")]


def test_a_call_of_an_earlier_turn_does_not_get_a_later_ones_result() -> None:
    contents = [
        _said(_called("f")),
        _said({"text": "never mind"}, role="user"),
        _said(_called("f")),
        _said(_answered("f", {}), role="user"),
    ]
    turns = _read({"contents": contents}).turns
    late = turns[2].parts[0]
    result = turns[3].parts[0]
    assert isinstance(late, Call)
    assert isinstance(result, Result)
    assert result.call_id == late.id


def test_results_stand_first_and_apart_from_what_the_user_says() -> None:
    content = _said({"text": "so"}, _answered("f", {}), role="user")
    tool, user = DIALECT.read_message(content, "contents[2]")
    assert (tool.role, user.role, user.parts) == ("tool", "user", (Text("so"),))


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
        "contents": [_said(_called("f")), _said(_answered("f", response), role="user")],
    }
    ask = _read(body)
    result = ask.turns[1].parts[0]
    assert isinstance(result, Result)
    assert result.parts == (Text(text),)
    assert result.is_error is is_error
    assert _write(ask)[0]["contents"] == body["contents"]


@pytest.mark.parametrize(
    ("text", "response"),
    [
        ("sunny", {"result": "sunny"}),
        ("[1]", {"result": "[1]"}),
        ('{"b": 1, "a": {"$ref": "#/x"}}', {"b": 1, "a": {"$ref": "#/x"}}),
        ('{"a": 1, "a": 2}', {"result": '{"a": 1, "a": 2}'}),
        ('{"error": "as data"}', {"result": {"error": "as data"}}),
        ("", {"result": ""}),
    ],
)
def test_a_results_text_becomes_an_object_that_reads_back_the_same(
    text: str, response: dict[str, Any]
) -> None:
    turns = (
        HI,
        Turn("assistant", (Call("c1", "f", "{}"),)),
        Turn("tool", (Result("c1", (Text(text),), name="f"),)),
    )
    body, lost = _write(_asked(*turns))
    assert body["contents"][2]["parts"] == [_answered("f", response, id="c1")]
    assert lost == ()
    back = DIALECT.read_message(body["contents"][2], "contents[2]")[0].parts[0]
    assert isinstance(back, Result)
    assert not back.is_error


def test_an_error_is_told_as_one() -> None:
    result = Result("c1", (Text("gone"),), is_error=True, name="f")
    body, lost = _write(_asked(HI, Turn("tool", (result,))))
    assert body["contents"][1]["parts"][0]["functionResponse"]["response"] == {"error": "gone"}
    assert lost == ()


PICTURE = Media("image", "image/png", data="AAAA")


def test_media_of_a_result_stands_inside_it_from_gemini_3_on() -> None:
    turn = Turn("tool", (Result("c1", (Text("see"), PICTURE), name="f"),))
    body, lost = _write(_asked(HI, turn, model="gemini-3-flash"))
    parts = body["contents"][1]["parts"]
    inline = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    assert parts == [_answered("f", {"result": "see"}, id="c1", parts=[inline])]
    assert lost == ()


def test_media_of_results_stands_after_all_of_them_before() -> None:
    turn = Turn(
        "tool",
        (Result("c1", (PICTURE,), name="f"), Result("c2", (Text("2"),), name="f")),
    )
    parts = _write(_asked(HI, turn))[0]["contents"][1]["parts"]
    assert [next(iter(part)) for part in parts] == [
        "functionResponse",
        "functionResponse",
        "text",
        "inlineData",
    ]
    assert "c1" in parts[2]["text"]


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
    parameters = _read(body).tools[0].parameters
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


SCHEMA = {
    "type": "object",
    "properties": {"z": {"type": ["object", "null"], "properties": {"y": {"$ref": "#/$defs/t"}}}},
    "$defs": {"t": {"type": "string"}},
    "additionalProperties": False,
}


def test_json_schemas_go_through_whole_and_in_order() -> None:
    offer = ToolOffer("f", "does", SCHEMA, strict=True)
    body, lost = _write(_asked(HI, tools=(offer,)))
    declared = body["tools"][0]["functionDeclarations"][0]
    assert declared == {"name": "f", "description": "does", "parametersJsonSchema": SCHEMA}
    assert repr(declared["parametersJsonSchema"]) == repr(SCHEMA)
    assert lost == ("tools.strict",)


@pytest.mark.parametrize(
    ("choice", "config"),
    [
        (ToolChoice("auto"), {"mode": "AUTO"}),
        (ToolChoice("none"), {"mode": "NONE"}),
        (ToolChoice("required"), {"mode": "ANY"}),
        (ToolChoice("tool", ("f",)), {"mode": "ANY", "allowedFunctionNames": ["f"]}),
        (
            ToolChoice("allowed", ("f", "g"), required=True),
            {"mode": "ANY", "allowedFunctionNames": ["f", "g"]},
        ),
        (ToolChoice("allowed", ("f",)), {"mode": "VALIDATED", "allowedFunctionNames": ["f"]}),
    ],
)
def test_every_choice_of_tools_is_said_and_read_back(
    choice: ToolChoice, config: dict[str, Any]
) -> None:
    body, lost = _write(_asked(HI, tools=(ToolOffer("f"),), choice=choice))
    assert body["toolConfig"] == {"functionCallingConfig": config}
    assert lost == ()
    back = _read(body).settings.choice
    assert back is not None
    assert (back.mode, back.names) == (choice.mode, choice.names)


def test_a_choice_that_nobody_else_knows_is_named() -> None:
    choice = ToolChoice("other", value={"type": "web_search"})
    assert _write(_asked(HI, tools=(ToolOffer("f"),), choice=choice))[1] == ("tool_choice",)


@pytest.mark.parametrize(
    ("model", "reasoning", "config", "lost"),
    [
        ("gemini-2.5-pro", Reasoning(effort="low"), {"thinkingBudget": 1024}, ()),
        ("gemini-2.5-pro", Reasoning(effort="high"), {"thinkingBudget": 24576}, ()),
        (
            "gemini-2.5-pro",
            Reasoning(effort="xhigh"),
            {"thinkingBudget": 24576},
            ("reasoning_effort",),
        ),
        ("gemini-3-pro", Reasoning(effort="minimal"), {"thinkingLevel": "MINIMAL"}, ()),
        ("gemini-pro-latest", Reasoning(effort="xhigh"), {"thinkingLevel": "XHIGH"}, ()),
        (
            "gemini-3-pro",
            Reasoning(effort="max"),
            {"thinkingLevel": "XHIGH"},
            ("reasoning_effort",),
        ),
        ("gemini-3-pro", Reasoning(effort="none"), {"thinkingBudget": 0}, ()),
        ("gemini-2.5-pro", Reasoning(enabled=False), {"thinkingBudget": 0}, ()),
        (
            "gemini-2.5-pro",
            Reasoning(enabled=True, budget=5000, shown=True),
            {"thinkingBudget": 5000, "includeThoughts": True},
            (),
        ),
    ],
)
def test_thinking_is_asked_for_as_the_model_knows_it(
    model: str, reasoning: Reasoning, config: dict[str, Any], lost: tuple[str, ...]
) -> None:
    body, named = _write(_asked(HI, model=model, reasoning=reasoning))
    assert body["generationConfig"] == {"thinkingConfig": config}
    assert named == lost


def test_settings_that_cannot_be_said_are_named_in_their_own_words() -> None:
    ask = _asked(
        HI,
        parallel=False,
        count=3,
        seed=2**40,
        user="u",
        cache_key="k",
        verbosity="low",
        metadata={"a": "b"},
        service_tier="scale",
        output=OutputFormat("json_schema", {"type": "object"}, "n", "d"),
        more={"logit_bias": {}, "absent": None},
    )
    body, lost = _write(ask)
    assert sorted(lost) == sorted(
        [
            "parallel_tool_calls",
            "n",
            "seed",
            "user",
            "prompt_cache_key",
            "verbosity",
            "metadata",
            "service_tier",
            "response_format.json_schema.description",
            "logit_bias",
        ]
    )
    assert body["generationConfig"] == {
        "responseMimeType": "application/json",
        "responseJsonSchema": {"type": "object"},
    }


def test_instructions_stand_first_and_later_ones_are_moved_and_named() -> None:
    turns = (
        Turn("system", (Text("a"),)),
        Turn("developer", (Text("b"),)),
        HI,
        Turn("system", (Text("c"),)),
    )
    body, lost = _write(_asked(*turns))
    assert body["systemInstruction"] == {"parts": [{"text": "a"}, {"text": "b"}]}
    assert body["contents"] == [
        _said({"text": "hi"}, role="user"),
        _said({"text": "c"}, role="user"),
    ]
    assert lost == ("messages.system (moved)",)


def test_turns_of_the_assistant_that_follow_each_other_are_one() -> None:
    turns = (HI, Turn("assistant", (Text("a"),)), Turn("assistant", (Call("c", "f", "{}"),)))
    contents = _write(_asked(*turns))[0]["contents"]
    assert [content["role"] for content in contents] == ["user", "model"]
    assert len(contents[1]["parts"]) == 2


@pytest.mark.parametrize(
    ("arguments", "args", "lost"),
    [
        ('{"b": 1.0, "a": 12345678901234567890123}', {"b": 1.0, "a": 12345678901234567890123}, ()),
        ("  ", {}, ()),
        ("[1]", {"arguments_text": "[1]"}, ("tool_calls.arguments",)),
        ('{"a": 1', {"arguments_text": '{"a": 1'}, ("tool_calls.arguments",)),
        ('{"a":1,"a":2}', {"arguments_text": '{"a":1,"a":2}'}, ("tool_calls.arguments",)),
    ],
)
def test_arguments_become_an_object_in_their_order(
    arguments: str, args: dict[str, Any], lost: tuple[str, ...]
) -> None:
    body, named = _write(_asked(HI, Turn("assistant", (Call("c", "f", arguments),))))
    held = body["contents"][1]["parts"][0]["functionCall"]["args"]
    assert (held, list(held)) == (args, list(args))
    assert named == lost


def test_long_ids_fit_wherever_they_stand() -> None:
    long = "x" * 300
    turns = (
        HI,
        Turn("assistant", (Call(long, "f", "{}"),)),
        Turn("tool", (Result(long, (Text("1"),), name="f"),)),
    )
    contents = _write(_asked(*turns))[0]["contents"]
    made = contents[1]["parts"][0]["functionCall"]["id"]
    assert len(made) < 40
    assert contents[2]["parts"][0]["functionResponse"]["id"] == made


def test_calls_that_no_gemini_made_skip_the_check_of_signatures_from_gemini_3_on() -> None:
    turn = Turn("assistant", (Call("a", "f", "{}"), Call("b", "f", "{}")))
    for model, signatures in (
        ("gemini-3-pro", [SKIP_SIGNATURE, None]),
        ("gemini-2.5-pro", [None, None]),
    ):
        parts = _write(_asked(HI, turn, model=model))[0]["contents"][1]["parts"]
        assert [part.get("thoughtSignature") for part in parts] == signatures


def test_geminis_own_signatures_come_back_from_other_dialects_byte_for_byte() -> None:
    turn = Turn(
        "assistant",
        (
            Thinking("", "dGV4dA==", "gemini", redacted=True, more={"signs": "part"}),
            Text("so"),
            Thinking("", "c28=", "gemini", redacted=True, more={"signs": "part"}),
            Call("a", "f", "{}", signature="Y2FsbA==", origin="gemini"),
        ),
    )
    parts = _write(_asked(HI, turn, model="gemini-3-pro"))[0]["contents"][1]["parts"]
    assert parts == [
        {"text": "", "thoughtSignature": "dGV4dA=="},
        {"text": "so", "thoughtSignature": "c28="},
        {"functionCall": {"id": "a", "name": "f", "args": {}}, "thoughtSignature": "Y2FsbA=="},
    ]


def test_others_signatures_are_left_out_and_named() -> None:
    turn = Turn("assistant", (Thinking("hm", "s", "messages"), Thinking("aha"), Text("so")))
    body, lost = _write(_asked(HI, turn))
    assert body["contents"][1]["parts"] == [{"text": "aha", "thought": True}, {"text": "so"}]
    assert lost == ("content.thinking (signed by messages)",)


@pytest.mark.parametrize("alphabet", ["standard", "urlsafe"])
def test_sealed_signatures_are_opened_after_clients_wrote_them_again(alphabet: str) -> None:
    sealed = Sealed("messages", "sig?>~ÿ", redacted=True, id="i", more={"k": 1})
    raw = seal(sealed).encode()
    encode = base64.b64encode if alphabet == "standard" else base64.urlsafe_b64encode
    content = _said({"text": "", "thought": True, "thoughtSignature": encode(raw).decode()})
    part = DIALECT.read_message(content, "contents[0]")[0].parts[0]
    assert part == Thinking("", "sig?>~ÿ", "messages", True, "i", {"k": 1})


def test_what_only_others_know_is_named() -> None:
    turn = _user(
        Text("a", cache={"type": "ephemeral"}, more={"x": 1}),
        Foreign("input_audio", {}),
        Media("image", file="file-1"),
        Media("document", "application/pdf", data="AA", name="a.pdf"),
        Media("image", url="https://e.org/a.png?b", detail="high"),
    )
    offers = (
        ToolOffer("w", kind="hosted", value={"type": "web_search"}),
        ToolOffer("p", kind="custom", value={"type": "custom", "name": "p"}),
    )
    body, lost = _write(_asked(turn, tools=offers))
    assert set(lost) == {
        "cache_control",
        "content.text.x",
        "content.input_audio",
        "content.image.file",
        "content.document.name",
        "content.image.detail",
        "tools.web_search",
        "tools.custom",
    }
    assert "tools" not in body
    assert body["contents"][0]["parts"][-1] == {
        "fileData": {"mimeType": "image/png", "fileUri": "https://e.org/a.png?b"}
    }


def test_files_at_google_are_no_addresses_for_others() -> None:
    def read(uri: str) -> Part:
        part = {"fileData": {"fileUri": uri, "mimeType": "image/png"}}
        return DIALECT.read_message(_said(part, role="user"), "contents[0]")[0].parts[0]

    own = "https://generativelanguage.googleapis.com/v1beta/files/a"
    assert read(own) == Media("image", "image/png", file=own)
    assert read("gs://b/a") == Media("image", "image/png", file="gs://b/a")
    assert read("https://e.org/a") == Media("image", "image/png", url="https://e.org/a")


@pytest.mark.parametrize(
    ("content", "param"),
    [
        ("hi", "contents[3]"),
        (_said({"text": 1}), "contents[3].parts[0].text"),
        (_said({}), "contents[3].parts[0]"),
        (_said({"text": "a", "inlineData": {}}), "contents[3].parts[0]"),
        (_said({"text": "a"}, role="system"), "contents[3].role"),
        (_said(_called("f"), role="user"), "contents[3]"),
        (_said(_answered("f", {})), "contents[3].parts[0]"),
        (_said({"functionCall": {"args": {}}}), "contents[3].parts[0].functionCall.name"),
        (_said(_called("f", args=[])), "contents[3].parts[0].functionCall.args"),
        (
            _said({"functionResponse": {"response": {}}}, role="user"),
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
        _read(body)
    assert caught.value.param == param


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
    st.builds(lambda r, p: _said(*r, *p, role="user"), _responses | st.just([]), _plain),
    _model.map(lambda parts: _said(*parts)),
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
    assert _write(_read(body)) == (body, ())
