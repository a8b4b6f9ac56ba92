"""Requests and answers of the messages dialect go to the hub and back unchanged."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reflexarc.wire.dialects.messages import DIALECT
from reflexarc.wire.losses import Losses
from tests.wire.dialects.messages_asked import asked, from_chat, written

words = st.text(min_size=1, max_size=8)
names = st.from_regex(r"[a-zA-Z_]{1,8}", fullmatch=True)
ids = st.from_regex(r"toolu_[a-zA-Z0-9]{4}", fullmatch=True)
numbers = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False))
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, words),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(words, inner, max_size=2)),
    max_leaves=4,
)
objects = st.dictionaries(words, json_values, max_size=3)
marks = st.sampled_from([{"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}])
own = {"vendor_member": st.one_of(words, objects)}


def block(kind: str, needed: dict[str, Any], **optional: Any) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({"type": st.just(kind), **needed}, optional={**optional, **own})


citations = st.lists(st.fixed_dictionaries({"cited_text": words}), min_size=1, max_size=2)
text = block("text", {"text": words}, cache_control=marks, citations=citations)
source = st.one_of(
    st.fixed_dictionaries({"type": st.just("url"), "url": words}),
    st.fixed_dictionaries({"type": st.just("file"), "file_id": words}),
    st.fixed_dictionaries(
        {"type": st.just("base64"), "media_type": st.just("image/png"), "data": words}
    ),
    st.fixed_dictionaries({"type": st.just("vendor"), "place": words}),
)
image = block("image", {"source": source}, cache_control=marks, transformations=objects)
words_of_it = st.fixed_dictionaries(
    {"type": st.just("text"), "media_type": st.just("text/plain"), "data": words}
)
inner = st.fixed_dictionaries({"type": st.just("content"), "content": words})
document = block(
    "document",
    {"source": st.one_of(source, words_of_it, inner)},
    title=words,
    context=words,
    cache_control=marks,
)
found = block("search_result", {"source": words, "title": words, "content": st.just([])})
upload = block("container_upload", {"file_id": words})
user_blocks = st.lists(st.one_of(text, image, document, found, upload), min_size=2, max_size=4)
call = block("tool_use", {"id": ids, "name": names, "input": objects}, cache_control=marks)
thinking = block("thinking", {"thinking": words, "signature": words})
redacted = block("redacted_thinking", {"data": words})
hosted = block("server_tool_use", {"id": ids, "name": names, "input": objects})
hosted_result = block("web_search_tool_result", {"tool_use_id": ids, "content": st.just([])})
assistant_blocks = st.lists(
    st.one_of(text, call, thinking, redacted, hosted, hosted_result), min_size=2, max_size=4
)
result = block(
    "tool_result",
    {"tool_use_id": ids},
    content=st.one_of(words, st.lists(st.one_of(text, image, found), min_size=2, max_size=3)),
    is_error=st.just(True),
    cache_control=marks,
)
user = st.one_of(
    words,
    user_blocks,
    st.tuples(st.lists(result, min_size=2, max_size=3), user_blocks).map(
        lambda two: two[0] + two[1]
    ),
)


@st.composite
def conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Roles in turn; instructions amid where a client may put them."""
    messages: list[dict[str, Any]] = []
    for _ in range(draw(st.integers(1, 3))):
        messages.append({"role": "user", "content": draw(user)})
        if draw(st.booleans()):
            messages.append({"role": "system", "content": draw(words)})
        messages.append({"role": "assistant", "content": draw(st.one_of(words, assistant_blocks))})
    if draw(st.booleans()):
        messages[-1]["vendor_member"] = draw(words)
    return messages


tool = st.fixed_dictionaries(
    {"name": names, "input_schema": objects},
    optional={
        "description": words,
        "strict": st.booleans(),
        "cache_control": marks,
        "defer_loading": st.booleans(),
    },
)
hosted_tool = st.fixed_dictionaries(
    {"type": st.just("web_search_20250305"), "name": names}, optional=own
)
choice = st.one_of(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["auto", "any"])},
        optional={"disable_parallel_tool_use": st.booleans()},
    ),
    st.fixed_dictionaries(
        {"type": st.just("tool"), "name": names},
        optional={"disable_parallel_tool_use": st.booleans()},
    ),
    st.just({"type": "none"}),
    st.just({"type": "vendor", "x": 1}),
)
display = st.sampled_from(["summarized", "omitted"])
thinking_given = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("enabled"), "budget_tokens": st.integers(1024, 9999)},
        optional={"display": display},
    ),
    st.fixed_dictionaries({"type": st.just("adaptive")}, optional={"display": display}),
    st.sampled_from([{"type": "disabled"}, {"type": "between_tools"}, {"type": "x", "y": 1}]),
)
output_config = st.fixed_dictionaries(
    {"effort": st.sampled_from(["low", "max", "new"])},
    optional={
        "format": st.one_of(
            st.fixed_dictionaries({"type": st.just("json_schema"), "schema": objects}),
            st.just({"type": "grammar", "text": "x"}),
        ),
        "task_budget": objects,
    },
)
requests = st.fixed_dictionaries(
    {"model": words, "messages": conversations()},
    optional={
        "max_tokens": st.integers(1, 99),
        "system": st.one_of(words, st.lists(text, min_size=2, max_size=2)),
        "tools": st.lists(st.one_of(tool, hosted_tool), min_size=1, max_size=3),
        "tool_choice": choice,
        "thinking": thinking_given,
        "output_config": output_config,
        "temperature": st.floats(0, 1),
        "top_p": st.floats(0, 1),
        "top_k": st.integers(1, 9),
        "stop_sequences": st.lists(words, min_size=1, max_size=2),
        "metadata": st.fixed_dictionaries({"user_id": words}, optional=own),
        "service_tier": st.sampled_from(["auto", "standard_only"]),
        "stream": st.just(True),
        "cache_control": marks,
        "container": words,
        "mcp_servers": st.lists(objects, max_size=2),
        "context_management": objects,
    },
)


@given(requests)
def test_a_request_comes_back_as_it_was(body: dict[str, Any]) -> None:
    back, lost = written(asked(body))
    assert back == body
    assert lost == ()


def keys_in_order(value: Any) -> Any:
    if isinstance(value, dict):
        members: dict[str, Any] = value
        return [(name, keys_in_order(inner)) for name, inner in members.items()]
    return value


@given(objects, objects)
def test_the_order_of_keys_is_kept_in_whatever_is_passed_on_whole(
    schema: dict[str, Any], given_input: dict[str, Any]
) -> None:
    back, _ = written(
        asked(
            {
                "model": "m",
                "messages": [
                    {"role": "user", "content": "x"},
                    {
                        "role": "assistant",
                        "content": [
                            {"type": "tool_use", "id": "t", "name": "f", "input": given_input}
                        ],
                    },
                ],
                "tools": [{"name": "f", "input_schema": schema}],
            }
        )
    )
    assert keys_in_order(back["tools"][0]["input_schema"]) == keys_in_order(schema)
    held = back["messages"][1]["content"][0]["input"]
    assert keys_in_order(held) == keys_in_order(given_input)


usage = st.fixed_dictionaries(
    {
        "input_tokens": st.integers(0, 99),
        "output_tokens": st.integers(0, 99),
        "cache_creation_input_tokens": st.integers(0, 99),
        "cache_read_input_tokens": st.integers(0, 99),
    },
    optional={
        "service_tier": st.sampled_from(["standard", "priority", "batch"]),
        "server_tool_use": st.just({"web_search_requests": 1}),
        "output_tokens_details": st.just({"thinking_tokens": 3}),
    },
)
answers = st.fixed_dictionaries(
    {
        "id": words,
        "type": st.just("message"),
        "role": st.just("assistant"),
        "model": words,
        "content": st.lists(
            st.one_of(text, call, thinking, redacted, hosted, hosted_result)
        ).filter(lambda blocks: all("cache_control" not in block for block in blocks)),
        "stop_reason": st.sampled_from(
            ["tool_use", "max_tokens", "pause_turn", "refusal", "model_context_window_exceeded"]
        ),
        "stop_sequence": st.none(),
        "usage": usage,
    },
    optional={"container": objects, "context_management": objects},
)


@given(answers)
def test_an_answer_comes_back_as_it_was(body: dict[str, Any]) -> None:
    losses = Losses("messages")
    assert DIALECT.write_reply(DIALECT.read_reply(body), from_chat(), losses) == body
    assert losses.names == ()
