"""LiteLLM's proxy before and behind a live gateway, run from the recipes: agents, ids, errors."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import openai
import pytest
from acceptance.litellm_proxy import ABSENT, LITELLM

from tests.beside.conftest import DONE, ask_for, check_history, learned_through
from tests.beside.litellm_desk import (
    CHAT_TOOLS,
    There,
    arranged,
    opening,
    run_agent,
    run_plainly,
)
from tests.gateway.upstream import MODEL, Received, http_answer

PIECE = (
    b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"desk-model",'
    b'"choices":[{"index":0,"delta":{"role":"assistant","content":"first"},"finish_reason":null}]}'
    b"\n\n"
)
pytestmark = [
    pytest.mark.beside,
    pytest.mark.skipif(not LITELLM.exists(), reason=ABSENT),
]


@pytest.fixture(scope="module")
def _arranged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], There]]:
    """Both arrangements, each started when it is first asked for: LiteLLM takes its time."""
    reflex = learned_through(run_plainly)
    made: dict[str, There] = {}
    with ExitStack() as stack:

        def get(where: str) -> There:
            if where not in made:
                folder = tmp_path_factory.mktemp(where)
                made[where] = stack.enter_context(arranged(where, reflex, folder))
            return made[where].afresh()

        yield get


@pytest.fixture(params=["before", "behind"])
def there(request: pytest.FixtureRequest, _arranged: Callable[[str], There]) -> There:
    return _arranged(request.param)


@pytest.fixture
def before(_arranged: Callable[[str], There]) -> There:
    return _arranged("before")


@pytest.fixture
def behind(_arranged: Callable[[str], There]) -> There:
    return _arranged("behind")


async def ask(there: There, task: int, **more: Any) -> tuple[str, Any]:
    """The first step of a task, which System 1 has learned: what the gateway says of its decision,
    and the completion, or all chunks of its stream."""
    asked: dict[str, Any] = {"model": MODEL, "messages": opening(task), "tools": CHAT_TOOLS}
    async with there.client() as client:
        raw = await client.chat.completions.with_raw_response.create(**{**asked, **more})
        answer: Any = raw.parse()
        if more.get("stream"):
            answer = [chunk async for chunk in answer]
    return raw.headers.get(there.decision_header, "none said"), answer


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_agents_do_their_tasks_and_system_1_makes_the_reads(
    there: There, stream: bool
) -> None:
    messages = opening(40_001)
    async with there.client() as client:
        assert await run_agent(client, messages, stream=stream) == DONE
        # the user goes on in the same conversation, which holds turns of System 1
        messages.append({"role": "user", "content": ask_for(40_002)})
        assert await run_agent(client, messages, stream=stream) == DONE
    ids = check_history(there.desk.requests[-1])
    by_system_1 = [identity.startswith("call_s1") for identity in ids]
    assert by_system_1[:3] == [True, True, False]
    assert not by_system_1[-1]
    assert sum(by_system_1) + len(there.desk.requests) == 8


async def test_turns_kept_as_the_sdk_read_them_are_understood_too(there: There) -> None:
    async with there.client() as client:
        assert await run_agent(client, opening(40_011), as_it_came=True) == DONE
    ids = check_history(there.desk.requests[-1])
    assert [identity.startswith("call_s1") for identity in ids] == [True, True, False]


async def test_an_answer_of_system_1_is_as_the_gateway_made_it(there: There) -> None:
    decision, answer = await ask(there, 40_003)
    assert decision.startswith("live; act")
    [choice] = answer.choices
    [call] = choice.message.tool_calls
    assert choice.finish_reason == "tool_calls"
    assert call.id.startswith("call_s1")
    assert (call.function.name, call.function.arguments) == (
        "find_customer", '{"customer":"C-40003"}'
    )  # fmt: skip
    assert answer.model == MODEL
    assert answer.usage.completion_tokens == 0
    assert answer.usage.prompt_tokens > 0
    assert there.desk.requests == []


async def test_a_stream_of_system_1_is_as_the_gateway_made_it(there: There) -> None:
    decision, chunks = await ask(there, 40_004, stream=True, stream_options={"include_usage": True})
    assert decision.startswith("live; act")
    parts = [part for chunk in chunks for choice in chunk.choices
             for part in choice.delta.tool_calls or ()]  # fmt: skip
    assert "".join(part.id or "" for part in parts).startswith("call_s1")
    assert "".join(part.function.arguments or "" for part in parts) == '{"customer":"C-40004"}'
    ends = [c.finish_reason for chunk in chunks for c in chunk.choices if c.finish_reason]
    assert ends == ["tool_calls"]
    [usage] = [chunk.usage for chunk in chunks if chunk.usage]
    assert usage.completion_tokens == 0
    assert usage.prompt_tokens > 0
    assert there.desk.requests == []


async def test_headers_for_the_gateway_reach_it_and_go_no_further(there: There) -> None:
    told = {"x-reflexarc": "off", "x-reflexarc-task": "t", "x-reflexarc-session": "s"}
    headers = {**told, "x-request-id": "request-40005"}
    decision, _ = await ask(there, 40_005, extra_headers=headers)
    assert "off:header" in decision
    [received] = there.upstream.received
    assert received.header(b"x-request-id") == b"request-40005"
    assert [name for name, _ in received.headers if name.startswith(b"x-reflexarc")] == []
    assert received.header(b"authorization") == b"Bearer key-of-system-2"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("status", [400, 401, 403, 404, 422, 429, 500, 503])
async def test_errors_of_system_2_pass_with_their_status(
    there: There, status: int, stream: bool
) -> None:
    error = {"error": {"message": "said by System 2", "type": "x", "param": None, "code": "c"}}
    there.upstream.answer = http_answer(
        json.dumps(error).encode(), ("retry-after", "7"), status=f"{status} Some"
    )
    # what binds the answer is System 2's: without it System 1 would have answered
    with pytest.raises(openai.APIStatusError) as raised:
        await ask(there, 40_006, stream=stream, tool_choice="required")
    assert raised.value.status_code == status
    assert "said by System 2" in str(raised.value.body)
    assert len(there.upstream.received) == 1
    assert raised.value.response.headers.get("retry-after") == "7"


async def test_an_answer_of_ours_that_forbids_another_try_still_does(before: There) -> None:
    async def hang_up(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.close()

    before.upstream.answer = hang_up
    with pytest.raises(openai.APIStatusError) as raised:
        await ask(before, 40_012, tool_choice="required")
    assert raised.value.status_code == 502
    assert raised.value.response.headers["x-should-retry"] == "false"


async def test_a_stream_is_not_held_back_and_a_client_that_leaves_is_told(there: There) -> None:
    there.upstream.left.clear()

    async def one_piece(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + PIECE)
        await asyncio.Event().wait()

    there.upstream.answer = one_piece
    asked: Any = {"model": MODEL, "messages": opening(40_013), "tools": CHAT_TOOLS}
    async with there.client() as client:
        off = {"x-reflexarc": "off"}
        answer = await client.chat.completions.create(**asked, stream=True, extra_headers=off)
        # System 2 sends no more than this: a proxy that collects would wait for ever
        first = await anext(chunk async for chunk in answer)
        assert first.choices[0].delta.content == "first"
        await answer.close()
    for _ in range(750):
        if there.upstream.left.is_set():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("System 2 was not told that the client left")


async def test_what_is_cached_is_told(there: There) -> None:
    usage = {
        "prompt_tokens": 2000, "completion_tokens": 2, "total_tokens": 2002,
        "prompt_tokens_details": {"cached_tokens": 1920},
    }  # fmt: skip
    message = {"role": "assistant", "content": "hello"}
    body = {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage,
    }  # fmt: skip
    there.upstream.answer = http_answer(json.dumps(body).encode())
    _, answer = await ask(there, 40_007, tool_choice="required", prompt_cache_key="desk")
    assert answer.usage.prompt_tokens_details.cached_tokens == 1920
    assert json.loads(there.upstream.received[-1].body)["prompt_cache_key"] == "desk"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_litellm_adds_only_what_the_gateway_understands(there: There, stream: bool) -> None:
    sent = {"model": MODEL, "messages": opening(40_008), "tools": CHAT_TOOLS}
    async with there.client() as client:
        answer: Any = await client.chat.completions.create(
            **sent, stream=stream, extra_headers={"x-reflexarc": "off"}
        )
        if stream:
            assert [chunk async for chunk in answer]
    [got] = there.desk.requests
    added = {name: got.pop(name) for name in set(got) - set(sent)}
    assert got == sent
    assert added == ({"stream": True, "stream_options": {"include_usage": True}} if stream else {})


@pytest.mark.parametrize("model", ["gpt-4.1", "gpt-5", "o3", "claude-sonnet-4-5"])
async def test_models_that_litellm_knows_are_asked_as_any_other(before: There, model: str) -> None:
    sent = {
        "model": model, "messages": opening(40_014), "tools": CHAT_TOOLS, "temperature": 0,
        "max_tokens": 500, "reasoning_effort": "low", "verbosity": "low", "user": "somebody",
        "parallel_tool_calls": False,
    }  # fmt: skip
    async with before.client() as client:
        await client.chat.completions.create(**sent)
    assert before.desk.requests == [sent]
    assert before.upstream.received[-1].target == b"/v1/chat/completions"


async def test_models_asked_through_another_endpoint_get_a_clear_404(before: There) -> None:
    with pytest.raises(openai.NotFoundError, match="/v1/responses: no such path"):
        await ask(before, 40_015, model="gpt-5-codex")
    assert before.upstream.received == []


HARMLESS: dict[str, Any] = {
    "temperature": 0,
    "top_p": 1,
    "seed": 7,
    "max_tokens": 2000,
    "max_completion_tokens": 2000,
    "parallel_tool_calls": False,
    "tool_choice": "auto",
    "n": 1,
    "user": "somebody",
    "metadata": {"a": "b"},
    "service_tier": "auto",
    "safety_identifier": "s",
    "prompt_cache_key": "k",
    "store": False,
    "presence_penalty": 0,
    "logprobs": False,
    "response_format": {"type": "text"},
}
"""What clients send that leaves System 1 free to act, asked of the gateway without LiteLLM."""

WEIGHTY: dict[str, Any] = {
    "tool_choice": "required",
    "n": 2,
    "logprobs": True,
    "stop": ["END"],
    "response_format": {"type": "json_object"},
    "max_tokens": 1,
    "logit_bias": {"50256": -100},
    "verbosity": "low",
}


@pytest.mark.parametrize("field", HARMLESS)
async def test_fields_that_leave_system_1_free_do_so_through_litellm(
    before: There, field: str
) -> None:
    decision, _ = await ask(before, 40_009, **{field: HARMLESS[field]})
    assert decision.startswith("live; act"), decision


@pytest.mark.parametrize("field", WEIGHTY)
async def test_fields_that_bind_the_answer_still_escalate_through_litellm(
    before: There, field: str
) -> None:
    decision, _ = await ask(before, 40_010, **{field: WEIGHTY[field]})
    assert decision.startswith("live; escalate"), decision
    assert len(before.upstream.received) == 1
