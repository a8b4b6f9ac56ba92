"""Requests for `generateContent`, written from what other dialects asked."""

from typing import Any

import pytest

from reflexarc.wire.dialects.gemini import DIALECT
from reflexarc.wire.dialects.gemini.signatures import SKIP_SIGNATURE
from reflexarc.wire.turns import (
    Call,
    Foreign,
    Media,
    OutputFormat,
    Part,
    Reasoning,
    Result,
    Text,
    Thinking,
    ToolChoice,
    ToolOffer,
    Turn,
)
from tests.wire.dialects.gemini_asks import (
    HI,
    answered,
    asked,
    read,
    said,
    write,
)


def _user(*parts: Part) -> Turn:
    return Turn("user", parts)


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
    body, lost = write(asked(*turns))
    assert body["contents"][2]["parts"] == [answered("f", response, id="c1")]
    assert lost == ()
    back = DIALECT.read_message(body["contents"][2], "contents[2]")[0].parts[0]
    assert isinstance(back, Result)
    assert not back.is_error


def test_an_error_is_told_as_one() -> None:
    result = Result("c1", (Text("gone"),), is_error=True, name="f")
    body, lost = write(asked(HI, Turn("tool", (result,))))
    assert body["contents"][1]["parts"][0]["functionResponse"]["response"] == {"error": "gone"}
    assert lost == ()


PICTURE = Media("image", "image/png", data="AAAA")


def test_media_of_a_result_stands_inside_it_from_gemini_3_on() -> None:
    turn = Turn("tool", (Result("c1", (Text("see"), PICTURE), name="f"),))
    body, lost = write(asked(HI, turn, model="gemini-3-flash"))
    parts = body["contents"][1]["parts"]
    inline = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    assert parts == [answered("f", {"result": "see"}, id="c1", parts=[inline])]
    assert lost == ()


def test_media_of_results_stands_after_all_of_them_before() -> None:
    turn = Turn(
        "tool",
        (Result("c1", (PICTURE,), name="f"), Result("c2", (Text("2"),), name="f")),
    )
    parts = write(asked(HI, turn))[0]["contents"][1]["parts"]
    assert [next(iter(part)) for part in parts] == [
        "functionResponse",
        "functionResponse",
        "text",
        "inlineData",
    ]
    assert "c1" in parts[2]["text"]


SCHEMA = {
    "type": "object",
    "properties": {"z": {"type": ["object", "null"], "properties": {"y": {"$ref": "#/$defs/t"}}}},
    "$defs": {"t": {"type": "string"}},
    "additionalProperties": False,
}


def test_json_schemas_go_through_whole_and_in_order() -> None:
    offer = ToolOffer("f", "does", SCHEMA, strict=True)
    body, lost = write(asked(HI, tools=(offer,)))
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
    body, lost = write(asked(HI, tools=(ToolOffer("f"),), choice=choice))
    assert body["toolConfig"] == {"functionCallingConfig": config}
    assert lost == ()
    back = read(body).settings.choice
    assert back is not None
    assert (back.mode, back.names) == (choice.mode, choice.names)


def test_a_choice_that_nobody_else_knows_is_named() -> None:
    choice = ToolChoice("other", value={"type": "web_search"})
    assert write(asked(HI, tools=(ToolOffer("f"),), choice=choice))[1] == ("tool_choice",)


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
    body, named = write(asked(HI, model=model, reasoning=reasoning))
    assert body["generationConfig"] == {"thinkingConfig": config}
    assert named == lost


def test_who_asks_for_thinking_in_messages_sees_it() -> None:
    reasoning = Reasoning(enabled=True, budget=2000)
    body, lost = write(asked(HI, dialect="messages", reasoning=reasoning))
    assert body["generationConfig"] == {
        "thinkingConfig": {"thinkingBudget": 2000, "includeThoughts": True}
    }
    assert lost == ()


def test_settings_that_cannot_be_said_are_named_in_their_own_words() -> None:
    ask = asked(
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
    body, lost = write(ask)
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
    body, lost = write(asked(*turns))
    assert body["systemInstruction"] == {"parts": [{"text": "a"}, {"text": "b"}]}
    assert body["contents"] == [
        said({"text": "hi"}, role="user"),
        said({"text": "c"}, role="user"),
    ]
    assert lost == ("messages.system (moved)",)


def test_turns_of_the_assistant_that_follow_each_other_are_one() -> None:
    turns = (HI, Turn("assistant", (Text("a"),)), Turn("assistant", (Call("c", "f", "{}"),)))
    contents = write(asked(*turns))[0]["contents"]
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
    body, named = write(asked(HI, Turn("assistant", (Call("c", "f", arguments),))))
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
    contents = write(asked(*turns))[0]["contents"]
    made = contents[1]["parts"][0]["functionCall"]["id"]
    assert len(made) < 40
    assert contents[2]["parts"][0]["functionResponse"]["id"] == made


def test_calls_that_no_gemini_made_skip_the_check_of_signatures_from_gemini_3_on() -> None:
    turn = Turn("assistant", (Call("a", "f", "{}"), Call("b", "f", "{}")))
    for model, signatures in (
        ("gemini-3-pro", [SKIP_SIGNATURE, None]),
        ("gemini-2.5-pro", [None, None]),
    ):
        parts = write(asked(HI, turn, model=model))[0]["contents"][1]["parts"]
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
    parts = write(asked(HI, turn, model="gemini-3-pro"))[0]["contents"][1]["parts"]
    assert parts == [
        {"text": "", "thoughtSignature": "dGV4dA=="},
        {"text": "so", "thoughtSignature": "c28="},
        {"functionCall": {"id": "a", "name": "f", "args": {}}, "thoughtSignature": "Y2FsbA=="},
    ]


def test_others_signatures_are_left_out_and_named() -> None:
    turn = Turn("assistant", (Thinking("hm", "s", "messages"), Thinking("aha"), Text("so")))
    body, lost = write(asked(HI, turn))
    assert body["contents"][1]["parts"] == [{"text": "aha", "thought": True}, {"text": "so"}]
    assert lost == ("content.thinking (signed by messages)",)


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
    body, lost = write(asked(turn, tools=offers))
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
