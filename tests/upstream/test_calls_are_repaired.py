"""A call that a provider refused is read from what the model wrote, where it is certain."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.steps import ToolSpec
from reflexarc.upstream.repairs import MAX_CALLS, repaired

SEARCH = ToolSpec(
    "web_search",
    parameters={
        "type": "object",
        "properties": {"query": {"type": "string"}, "year": {"type": "integer"}},
        "required": ["query"],
        "additionalProperties": False,
    },
)
LISTING = ToolSpec("orders.list", parameters={"type": "object", "properties": {}})
TOOLS = (SEARCH, LISTING)
ARGUMENTS = '{"query": "a </function> of \\"x\\" (1;2)", "year": 2016}'
MEANT = ("web_search", json.loads(ARGUMENTS))


def body(text: Any, **error: Any) -> bytes:
    fields = {"code": "tool_use_failed", "failed_generation": text, "message": "m", **error}
    return json.dumps({"error": fields}).encode()


def read(text: str, tools: tuple[ToolSpec, ...] = TOOLS) -> list[tuple[str, Any]] | None:
    calls = repaired(body(text), tools)
    return None if calls is None else [(call.name, call.arguments) for call in calls]


OBJECT = f'{{"name": "web_search", "arguments": {ARGUMENTS}}}'
QUOTED = json.dumps({"name": "web_search", "arguments": ARGUMENTS})
WITH_PARAMETERS = f'{{"name": "web_search", "parameters": {ARGUMENTS}}}'
NESTED = f'{{"id": "pending", "type": "function", "function": {OBJECT}}}'
BESIDE = (
    '{"tool_calls": [{"id": "pending", "type": "function", "function": {"name": "web_search"}, '
    f'"parameters": {ARGUMENTS}}}]}}'
)


@pytest.mark.parametrize(
    "text",
    [
        f"<function=web_search>{ARGUMENTS}</function>",
        f"<function=web_search{ARGUMENTS}</function>",
        f"<function=web_search={ARGUMENTS}</function>",
        f"<function=web_search={ARGUMENTS}></function>",
        f"<function=web_search> {ARGUMENTS} </function>",
        f"<function=web_search>{ARGUMENTS}<function>",
        f"<function=web_search>{ARGUMENTS}",
        f"<function(web_search)>{ARGUMENTS}</function>",
        f'<function="web_search">{ARGUMENTS}</function>',
        f"I shall look for it.\n\n<function=web_search>{ARGUMENTS}</function>\n",
        f"<function=web_search>{ARGUMENTS}</function><|eot_id|>",
        f"<tool_call>\n{OBJECT}\n</tool_call>",
        f"<tool_call>{OBJECT}",
        f"Let me see. <tool_call>{WITH_PARAMETERS}</tool_call>",
        OBJECT,
        QUOTED,
        WITH_PARAMETERS,
        NESTED,
        BESIDE,
        f"[{OBJECT}]",
        f"<|python_tag|>{WITH_PARAMETERS}<|eom_id|>",
        f"```json\n{OBJECT}\n```",
        f"```\n{BESIDE}\n```",
        f"<tool-use>\n{BESIDE}\n</tool-use>",
        f"[TOOL_CALLS] [{OBJECT}]",
        f"[TOOL_CALLS]web_search[ARGS]{ARGUMENTS}",
        f"[TOOL_CALLS]web_search{ARGUMENTS}",
        f"[TOOL_CALLS]web_search[CALL_ID]a1B2c3D4e[ARGS]{ARGUMENTS}</s>",
        f"web_search({ARGUMENTS})",
        f"web_search{ARGUMENTS}</function>",
    ],
)
def test_one_call_is_read_in_any_shape_that_models_write(text: str) -> None:
    assert read(text) == [MEANT]


@pytest.mark.parametrize(
    "text",
    [
        f"<function=web_search>{ARGUMENTS}</function>\n<function=orders.list></function>",
        f"<function=web_search>{ARGUMENTS}</function><function=orders.list>{{}}</function>",
        f'<tool_call>{OBJECT}</tool_call><tool_call>{{"name":"orders.list","arguments":{{}}}}</tool_call>',
        f'[{OBJECT}, {{"name": "orders.list", "parameters": {{}}}}]',
        f'{OBJECT}; {{"name": "orders.list", "parameters": {{}}}}',
        f'[TOOL_CALLS][{OBJECT}, {{"name": "orders.list", "arguments": {{}}}}]',
        f"[TOOL_CALLS]web_search[ARGS]{ARGUMENTS}[TOOL_CALLS]orders.list[ARGS]{{}}",
        f"web_search({ARGUMENTS})\norders.list({{}})",
    ],
)
def test_several_calls_are_read_in_their_order(text: str) -> None:
    assert read(text) == [MEANT, ("orders.list", {})]


def test_a_call_keeps_its_arguments_as_they_were_written_and_has_an_id_of_its_own() -> None:
    text = f"<function=web_search>{ARGUMENTS}</function>" * 2
    calls = repaired(body(text), TOOLS)
    assert calls is not None
    assert [call.raw for call in calls] == [ARGUMENTS, ARGUMENTS]
    assert len({call.id for call in calls}) == 2
    assert repaired(body(text), TOOLS) == calls


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I cannot do that.",
        "web_search",
        "web_search()",
        "<function=web_search>",
        "<function=web_search></function>",  # it requires a query
        "<function=delete_all>{}</function>",
        f"<function=web_search>{ARGUMENTS}</function> and found nothing",
        f"<function=web_search>{ARGUMENTS}</function><function=delete_all>{{}}</function>",
        '<function=web_search>{"query": 5}</function>',
        '<function=web_search>{"query": "x", "yeer": 3}</function>',
        '<function=web_search>{"query": "x", "year": "2016"}</function>',
        '<function=web_search>{"query": "x", "query": "y"}</function>',
        '<function=web_search>{"query": "x"',
        "<function=web_search>{'query': 'x'}</function>",
        '<function=web_search>["x"]</function>',
        "<function=web_search><parameter=query>x</parameter></function>",
        '{"name": "web_search"}',
        '{"name": "web_search", "arguments": {"query": "x"}, "parameters": {"query": "y"}}',
        '{"name": "web_search", "arguments": {"query": "x"}, "confidence": 0.2}',
        '{"name": "web_search", "arguments": "query=x"}',
        '{"name": ["web_search"], "arguments": {"query": "x"}}',
        '{"query": "x"}',
        f'{OBJECT} or perhaps {{"name": "orders.list", "parameters": {{}}}}',
        f"Here it is: {OBJECT}",
        f"{ARGUMENTS}",
        f"web_search({ARGUMENTS}",
        f"web_search{ARGUMENTS}",
        f"maybe web_search({ARGUMENTS})",
        "[]",
        "[[[" * 3_000,
        '{"a":' * 3_000,
        "<function=web_search>" * 100,
    ],
)
def test_what_is_not_certain_is_not_read(text: str) -> None:
    assert read(text) is None


@pytest.mark.parametrize(
    "given",
    [
        b"",
        b"no json",
        b"[]",
        b'{"error": "tool_use_failed"}',
        body(None),
        body({"name": "orders.list"}),
        body("<function=orders.list></function>", code="json_validate_failed"),
    ],
)
def test_other_errors_hold_no_calls(given: bytes) -> None:
    assert repaired(given, TOOLS) is None


def test_a_tool_that_is_offered_twice_or_cannot_be_checked_is_not_called() -> None:
    text = "<function=orders.list>{}</function>"
    assert read(text) == [("orders.list", {})]
    assert read(text, ()) is None
    assert read(text, (LISTING, LISTING)) is None
    remote = ToolSpec("orders.list", parameters={"$ref": "https://example.com/schema.json"})
    assert read(text, (remote,)) is None


def test_so_many_calls_are_no_repair() -> None:
    one = "<function=orders.list>{}</function>"
    assert len(read(one * MAX_CALLS) or ()) == MAX_CALLS
    assert read(one * (MAX_CALLS + 1)) is None


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
_SHAPES = (
    "<function={name}>{text}</function>",
    "<tool_call>{object}</tool_call>",
    "{object}",
    "[{object}]",
    "[TOOL_CALLS]{name}[ARGS]{text}",
    "{name}({text})",
    "```json\n{object}\n```",
)


@given(
    st.dictionaries(st.text(max_size=6), _VALUES, max_size=4),
    st.sampled_from(_SHAPES),
    st.booleans(),
)
def test_whatever_the_arguments_hold_they_are_read_as_they_were_meant(
    arguments: dict[str, Any], shape: str, ascii_only: bool
) -> None:
    tool = ToolSpec("act", parameters={"type": "object"})
    text = json.dumps(arguments, ensure_ascii=ascii_only)
    whole = json.dumps({"name": "act", "arguments": arguments}, ensure_ascii=ascii_only)
    written = shape.replace("{name}", "act").replace("{text}", text).replace("{object}", whole)
    # A fence inside of a fence, or a mark inside of a value, may make a text unsure, never wrong.
    found = read(written, (tool,))
    assert found in ([("act", arguments)], None)
    if not any(odd in text for odd in ("```", "<", "[", "_", "\\u")):
        assert found is not None


@given(st.text(alphabet='<>{}[]()="function tool_calls/ARGS:,\n`', max_size=60))
def test_nothing_written_breaks_it(text: str) -> None:
    assert read(text, (LISTING,)) in (None, [("orders.list", {})])
