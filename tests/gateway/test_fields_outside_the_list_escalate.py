"""System 1 answers only requests whose every top-level field it understands."""

import json
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.chat import completion_create_params

from reflexarc.gateway.admission import admit
from reflexarc.gateway.deciding import Decider
from reflexarc.gateway.frames import Decide, ReflexSource, Setup
from reflexarc.gateway.worker import load
from reflexarc.wire.json import split_object

# For every field of the current API: values with which System 1 may act, and values with which it
# must not. A field that the SDK gains and this table lacks fails a test below.
TABLE: dict[str, tuple[list[Any], list[Any]]] = {
    "messages": ([], [None, "hi", {}, []]),
    "model": (["desk-model"], [None, 3, "", "m" * 300, ["desk-model"]]),
    "audio": ([None], [{"voice": "a", "format": "wav"}, {}]),
    "frequency_penalty": ([None, 0, -2, 1.5], [2.1, "0", True, []]),
    "function_call": ([None], ["auto", "none", {"name": "get_order"}]),
    "functions": ([None], [[], [{"name": "get_order"}]]),
    "logit_bias": ([None, {}], [{"50256": -100}]),
    "logprobs": ([None, False], [True, 0, "false"]),
    "max_completion_tokens": ([None, 4096], [0, -1, 1.5, True, "100", 1]),
    "max_tokens": ([None, 4096], [0, -1, 1.5, True, "100", 1]),
    "metadata": ([None, {}, {"run": "7"}], [{"run": 7}, [], {str(i): "" for i in range(17)}]),
    "modalities": ([None, ["text"]], [["audio"], ["text", "audio"], [], "text"]),
    "moderation": ([None], [{"model": "omni"}, {}]),
    "n": ([None, 1], [0, 2, "1", True]),
    "parallel_tool_calls": ([None, True, False], ["no", 1]),
    "prediction": ([None], [{"type": "content", "content": "x"}, {}]),
    "presence_penalty": ([None, 0, 2], [-2.1, "0", False]),
    "prompt_cache_key": ([None, "k"], [1]),
    "prompt_cache_options": ([None], [{"mode": "implicit"}, {}]),
    "prompt_cache_retention": ([None, "24h"], [24]),
    "reasoning_effort": ([None, "none"], ["minimal", "low", "medium", "high", "xhigh", ""]),
    "response_format": (
        [None, {"type": "text"}],
        [{"type": "json_object"}, {"type": "json_schema", "json_schema": {}}, {}, "text"],
    ),
    "safety_identifier": ([None, "s"], [1]),
    "seed": ([None, 7, -1], [1.5, "7", True]),
    "service_tier": ([None, "auto", "flex"], [1, {}]),
    "stop": ([None, []], ["\n", ["END"], ""]),
    "store": ([None, False], [True, 0]),
    "stream": ([None, False, True], ["true", 1]),
    # Without `stream` an upstream refuses these, so System 1 must not answer.
    "stream_options": ([None, {}], [{"include_usage": True}, [], "x"]),
    "temperature": ([None, 0, 1, 2.0], [-0.1, 2.1, "1", True]),
    "tool_choice": (
        [None, "auto"],
        ["none", "required", {"type": "function", "function": {"name": "get_order"}}, {}],
    ),
    "tools": ([], [None, [], {}, "x", [{"type": "custom", "custom": {"name": "sh"}}]]),
    "top_logprobs": ([None, 0], [1, 20, "0"]),
    "top_p": ([None, 0, 1, 0.5], [1.1, -1, "1"]),
    "user": ([None, "u"], [1]),
    "verbosity": ([None], ["low", "medium", "high"]),
    "web_search_options": ([None], [{}, {"search_context_size": "low"}]),
}


@pytest.fixture(scope="module")
def decide(reflex_path: Path, desk: Any) -> Any:
    """Action and reason for a request, by a really learned reflex that acts on the plain one."""
    setup = Setup(reflexes=[])
    loaded = load(ReflexSource("/v1", str(reflex_path)))
    decider = Decider({"/v1": loaded}, setup, lambda: 0.0, lambda: 0.0)

    def deciding(body: bytes) -> tuple[str, str]:
        decided, _ = decider.decide(Decide(1, "/v1", b"t", True, 0.05), body)
        return decided.action, decided.reason

    assert deciding(json.dumps(desk.request()).encode()) == ("act", "certified")
    return deciding


def test_the_table_names_every_field_of_the_sdk() -> None:
    known: set[str] = set()
    for kind in (
        completion_create_params.CompletionCreateParamsNonStreaming,
        completion_create_params.CompletionCreateParamsStreaming,
    ):
        known |= set(get_type_hints(kind))
    assert known == set(TABLE)


@pytest.mark.parametrize(
    ("field", "value"), [(f, v) for f, (understood, _) in TABLE.items() for v in understood]
)
def test_understood_values_leave_system_1_free_to_act(
    field: str, value: Any, decide: Any, desk: Any
) -> None:
    assert decide(json.dumps(desk.request(**{field: value})).encode()) == ("act", "certified")


@pytest.mark.parametrize(
    ("field", "value"), [(f, v) for f, (_, refused) in TABLE.items() for v in refused]
)
def test_other_values_escalate_with_the_field_as_reason(
    field: str, value: Any, decide: Any, desk: Any
) -> None:
    action, reason = decide(json.dumps({**desk.request(), field: value}).encode())
    expected = {
        ("tools", "[]"): "no_tools",
        ("tools", '[{"type": "custom", "custom": {"name": "sh"}}]'): "tool_type:custom",
        ("max_completion_tokens", "1"): "field:max_tokens",
        # Not lists: they cannot be taken apart.
        ("messages", "null"): "malformed_body",
        ("messages", '"hi"'): "malformed_body",
        ("messages", "{}"): "malformed_body",
    }.get((field, json.dumps(value)), f"field:{field}")
    assert (action, reason) == ("escalate", expected)


def test_usage_may_be_asked_for_in_a_stream(decide: Any, desk: Any) -> None:
    wanted = desk.request(stream=True, stream_options={"include_usage": True})
    assert decide(json.dumps(wanted).encode())[0] == "act"
    for odd in ({"include_obfuscation": True}, {"include_usage": "yes"}, {"x": False}):
        request = desk.request(stream=True, stream_options=odd)
        assert decide(json.dumps(request).encode()) == ("escalate", "field:stream_options")


def test_both_token_limits_at_once_escalate(decide: Any, desk: Any) -> None:
    request = desk.request(max_tokens=900, max_completion_tokens=900)
    assert decide(json.dumps(request).encode()) == ("escalate", "field:max_tokens")


@settings(max_examples=150, deadline=None)
@given(
    name=st.text(max_size=20).filter(lambda name: name not in TABLE),
    value=st.recursive(
        st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
        max_leaves=4,
    ),
    first=st.booleans(),
)
def test_a_field_nobody_foresaw_never_acts(
    name: str, value: Any, first: bool, decide: Any, desk: Any
) -> None:
    request = desk.request()
    request = {name: value, **request} if first else {**request, name: value}
    action, reason = decide(json.dumps(request).encode())
    assert (action, reason) == ("escalate", f"field:{name}")


@pytest.mark.parametrize("field", ["model", "messages", "tools"])
def test_a_field_that_is_missing_escalates(field: str, decide: Any, desk: Any) -> None:
    request = desk.request()
    del request[field]
    assert decide(json.dumps(request).encode()) == ("escalate", f"field:{field}")


def test_a_key_given_twice_escalates_at_any_depth(decide: Any, desk: Any) -> None:
    body = json.dumps(desk.request(metadata={"run": "7"})).encode()
    for once, twice in (
        (b'"model": "desk-model"', b'"model": "desk-model", "model": "desk-model"'),
        (b'"run": "7"', b'"run": "7", "run": "8"'),
        (b'"role": "user"', b'"role": "user", "role": "user"'),
        (b'"type": "object"', b'"type": "object", "type": "object"'),
    ):
        assert once in body
        assert decide(body.replace(once, twice, 1)) == ("escalate", "malformed_body")


def test_what_is_not_text_escalates(decide: Any, desk: Any) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:,"}}
    request = desk.request()
    request["messages"][1]["content"] = [{"type": "text", "text": "see"}, image]
    assert decide(json.dumps(request).encode()) == ("escalate", "opaque_content")
    thinking = desk.request()
    thinking["messages"][2]["reasoning_content"] = "hm"
    assert decide(json.dumps(thinking).encode()) == ("escalate", "thinking")


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'{"model": "\\ud800"}', b"{" * 500, b"\xff\xfe", b'{"a":NaN}'],
)
def test_what_cannot_be_read_escalates(body: bytes, decide: Any) -> None:
    assert decide(body)[0] == "escalate"


def test_admission_reads_no_messages_and_no_tools() -> None:
    fields = split_object(b'{"model":"m","messages":[{"bad":1,"bad":2}],"tools":[1]}')
    assert admit(fields, 128).refusal is None
