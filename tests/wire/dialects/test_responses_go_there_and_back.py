"""Random requests and answers of the Responses dialect come back as they were."""

import copy
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from reflexarc.wire.assembling import Assembler, events_of
from reflexarc.wire.dialects.responses import DIALECT
from reflexarc.wire.json import encode_json
from reflexarc.wire.losses import Losses
from reflexarc.wire.sse import SseParser
from tests.wire.dialects.responses_asked import message, read, said, written

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
words = st.text("abc_-09", min_size=1, max_size=8)
flags = st.booleans()
_numbers = st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | flags | st.integers(-(2**70), 2**70) | _numbers | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
given_values = values.filter(lambda value: value is not None)


def _some(required: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(required, optional=optional)


def _kind(name: str, required: Any = None, optional: Any = None) -> Any:
    return _some({"type": st.just(name), **(required or {})}, optional or {})


breakpoints = {"prompt_cache_breakpoint": st.just({"mode": "explicit"})}
inputs = st.one_of(
    _kind("input_text", {"text": texts}, breakpoints),
    _kind(
        "input_image",
        {"image_url": st.sampled_from(["https://x/y", "data:image/png;base64,AA=="])},
        {"detail": words, **breakpoints},
    ),
    _kind("input_image", {"file_id": words}),
    _kind("input_file", {"file_data": st.just("data:a/b;base64,AA==")}, {"filename": texts}),
    _kind("input_file", {"file_data": words}, {"filename": texts}),
    _kind("input_file", {"file_url": texts}, {"detail": words}),
    _kind("input_file", {"file_id": words}),
    _kind("input_audio", {"input_audio": _some({"data": words, "format": st.just("wav")}, {})}),
    _kind("hologram", {"x": values}),
)


def _shortest(content: list[Any]) -> Any:
    """The normal form of content: one plain text is a string."""
    if len(content) == 1 and content[0].keys() == {"type", "text"}:
        return content[0]["text"]
    return content


contents = st.lists(inputs, min_size=1, max_size=3).map(_shortest)
outputs = st.lists(
    _kind(
        "output_text",
        {"text": texts, "annotations": st.lists(st.just({"type": "url_citation"}), max_size=2)},
        {"logprobs": st.just([{"token": "t"}])},
    )
    | _kind("refusal", {"refusal": texts}),
    min_size=1,
    max_size=3,
)
ids = {"id": words}
messages = st.builds(
    lambda role, content, more: message(role, content, **more),
    st.sampled_from(["user", "developer", "system"]),
    contents,
    _some({}, {**ids, "x_more": given_values}),
)
model_messages = st.builds(
    lambda content, more: {
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": content,
        **more,
    },
    outputs,
    _some({}, {**ids, "phase": st.just("commentary"), "x_more": given_values}),
)
arguments = st.dictionaries(texts, values, max_size=3).map(json.dumps)
summaries = st.lists(_kind("summary_text", {"text": texts.filter(bool)}), max_size=3)
results = {"call_id": words, "output": texts | contents}
items = st.one_of(
    messages,
    model_messages,
    _kind(
        "function_call",
        {"call_id": words, "name": words, "arguments": arguments},
        {**ids, "status": st.just("incomplete"), "namespace": words},
    ),
    _kind("custom_tool_call", {"call_id": words, "name": words, "input": texts}, ids),
    _kind("reasoning", {"summary": summaries}, {**ids, "encrypted_content": words}),
    _kind(
        "reasoning",
        {
            "summary": summaries,
            "content": st.lists(_kind("reasoning_text", {"text": texts}), min_size=1, max_size=2),
        },
        ids,
    ),
    _kind("function_call_output", results, {**ids, "caller": st.just({"type": "direct"})}),
    _kind("web_search_call", {"id": words, "action": values}),
    _kind("computer_call_output", {"call_id": words, "output": values}),
    _kind("item_reference", {"id": words}),
    _kind("additional_tools", {"role": st.just("developer"), "tools": values}),
)
schemas = st.fixed_dictionaries(
    {"type": st.just("object"), "properties": st.dictionaries(texts, values, max_size=3)},
    optional={"additionalProperties": flags, "required": st.lists(texts, max_size=2)},
)
tools = st.one_of(
    _kind(
        "function",
        {"name": words, "parameters": schemas},
        {"description": texts, "strict": flags, "defer_loading": flags},
    ),
    _kind("custom", {"name": words}, {"description": texts}),
    _kind("web_search", {}, {"filters": values}),
    _kind("mcp", {"server_label": words}),
)
choices = st.one_of(
    st.sampled_from(["auto", "none", "required"]),
    _kind("function", {"name": words}),
    _kind("custom", {"name": words}),
    _kind("web_search"),
    _kind("allowed_tools", {"mode": st.just("auto"), "tools": st.lists(tools, max_size=2)}),
)
forms = st.one_of(
    _kind("json_object"),
    _kind("json_schema", {"name": words, "schema": schemas}, {"strict": flags}),
    _kind("grammar", {"definition": texts}),
)
requests = _some(
    {"model": words, "input": st.lists(items, max_size=6)},
    {
        "instructions": texts,
        "tools": st.lists(tools, min_size=1, max_size=3),
        "tool_choice": choices,
        "parallel_tool_calls": flags,
        "max_output_tokens": st.integers(0, 10**6),
        "temperature": st.floats(0, 2),
        "top_p": st.floats(0, 1),
        "text": _some({"format": forms}, {"verbosity": words, "x_more": given_values}),
        "reasoning": _some(
            {},
            {
                "effort": st.sampled_from(["none", "low", "xhigh"]),
                "summary": st.sampled_from(["auto", "detailed"]),
                "context": st.just("auto"),
            },
        ),
        "user": texts,
        "metadata": st.dictionaries(words, texts, max_size=2),
        "service_tier": words,
        "store": flags,
        "stream": st.just(True),
        "previous_response_id": words,
        "prompt_cache_key": texts,
        "include": st.sampled_from(
            [
                ["reasoning.encrypted_content"],
                ["a"],
                ["a", "reasoning.encrypted_content"],
            ]
        ),
        "truncation": st.just("auto"),
        "background": st.just(True),
        "conversation": words | _some({"id": words}, {}),
        "safety_identifier": words,
        "top_logprobs": st.integers(1, 20),
        "x_more": given_values,
    },
)


@settings(max_examples=200, deadline=None)
@given(requests)
def test_a_request_comes_back_as_it_was(request: dict[str, Any]) -> None:
    ask = read(**request)
    before = copy.deepcopy(ask)
    body, lost = written(ask)
    assert lost == ()
    assert body == request
    # Turns are remembered from one request to the next: writing changes nothing in them.
    assert ask == before
    # Not only equal: what is passed on whole keeps its order too.
    if "tools" in request:
        kept = [tool.get("parameters") for tool in request["tools"]]
        assert json.dumps([tool.get("parameters") for tool in body["tools"]]) == json.dumps(kept)


def test_normal_forms_are_those_that_are_documented() -> None:
    body, lost = written(
        read(
            input="hi",
            truncation="disabled",
            background=False,
            stream=False,
            text={"format": {"type": "text"}},
            include=[],
            top_logprobs=0,
            temperature=None,
            tools=[{"type": "function", "name": "f", "parameters": None, "strict": None}],
        )
    )
    assert lost == ()
    assert body == {
        "model": "m",
        "input": [message("user", "hi")],
        "tools": [
            {
                "type": "function",
                "name": "f",
                "parameters": {"type": "object", "properties": {}},
            }
        ],
    }
    easy = read(input=[{"role": "assistant", "content": "yes"}])
    assert written(easy)[0]["input"] == [said("yes")]


def _answer_items(item: dict[str, Any], at: int) -> dict[str, Any]:
    """An item as an answer has it: with an id, and a status where its type has one."""
    item = {**item, "id": f"item_{at}"}
    item.pop("x_more", None)
    if item["type"] in ("function_call", "custom_tool_call"):
        item["status"] = "completed"
    if item["type"] == "reasoning":
        for name in ("summary", "content"):
            if name in item:
                item[name] = item[name][:1]
        if item.get("content"):
            item["summary"] = []
    if item["type"] == "message":
        item["content"] = [
            {"logprobs": [], **part} if part["type"] == "output_text" else part
            for part in item["content"]
        ]
    return item


answer_items = st.lists(
    st.one_of(
        model_messages,
        _kind("function_call", {"call_id": words, "name": words, "arguments": arguments}),
        _kind("custom_tool_call", {"call_id": words, "name": words, "input": texts}),
        _kind("reasoning", {"summary": summaries}, {"encrypted_content": words}),
        _kind(
            "reasoning",
            {
                "summary": st.just([]),
                "content": st.lists(
                    _kind("reasoning_text", {"text": texts.filter(bool)}), min_size=1, max_size=1
                ),
            },
        ),
        _kind("web_search_call", {"action": values}),
    ),
    max_size=5,
).map(lambda given: [_answer_items(item, at) for at, item in enumerate(given)])
usages = st.builds(
    lambda read, more, reasoning, out: {
        "input_tokens": read + more,
        "input_tokens_details": {"cached_tokens": read, "cache_write_tokens": 0},
        "output_tokens": reasoning + out,
        "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": read + more + reasoning + out,
    },
    *[st.integers(0, 10**6)] * 4,
)
answers = st.builds(
    lambda output, usage, more: {
        "id": "resp_abc",
        "object": "response",
        "created_at": 1_700_000_000,
        "model": "m",
        "status": "completed",
        "output": output,
        "usage": usage,
        **more,
    },
    answer_items,
    st.none() | usages,
    _some({}, {"service_tier": st.just("flex"), "tool_usage": given_values}),
)


@settings(max_examples=200, deadline=None)
@given(answers)
def test_an_answer_comes_back_as_it_was(answer: dict[str, Any]) -> None:
    losses = Losses("responses")
    reply = DIALECT.read_reply(answer)
    before = copy.deepcopy(reply)
    back = DIALECT.write_reply(reply, read(), losses)
    assert reply == before
    assert losses.names == ()
    assert {name: back[name] for name in answer} == answer


@settings(max_examples=200, deadline=None)
@given(answers, st.lists(st.integers(0, 3000), max_size=4))
def test_a_stream_says_the_same_as_the_whole(answer: dict[str, Any], cuts: list[int]) -> None:
    reply = DIALECT.read_reply(answer)
    writer = DIALECT.stream_writer(read(), Losses("responses"))
    data = b"".join(writer.write(event) for event in events_of(reply))
    reader, parser, assembler = DIALECT.stream_reader(), SseParser(), Assembler()
    places = sorted({min(cut, len(data)) for cut in cuts})
    for start, end in zip([0, *places], [*places, len(data)], strict=True):
        for event in parser.feed(data[start:end]):
            for told in reader.read(event):
                assembler.take(told)
    again = assembler.reply()
    assert (again.id, again.model, again.created_s) == (reply.id, reply.model, reply.created_s)
    assert again.parts == reply.parts
    assert (again.stop, again.usage, again.origin) == (reply.stop, reply.usage, reply.origin)
    # The last frame holds the answer whole.
    last = json.loads(data.split(b"\ndata: ")[-1])
    whole = DIALECT.write_reply(reply, read(), Losses("responses"))
    assert encode_json(last["response"]["output"]) == encode_json(whole["output"])
