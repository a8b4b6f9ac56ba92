"""The simulator over real HTTP: the unmodified OpenAI SDK, usage, errors, waits, lost clients."""

import http.client
import json
import threading
import time
from typing import Any
from urllib.parse import urlsplit

import openai
import pytest

from reflexarc.bench.desk import TOOLS
from reflexarc.bench.desk.record import HANDBOOK
from reflexarc.bench.desk.world import MODEL
from reflexarc.sim import Answer, PlannedCall, load_profiles
from tests.sim.conftest import Start

MESSAGES: list[Any] = [
    {"role": "system", "content": HANDBOOK},
    {"role": "user", "content": "Please work through return queue Q-1234B."},
]
TOOL_LIST: list[Any] = list(TOOLS)


class Says:
    """A policy with one answer."""

    model = "says"

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def answer(self, messages: Any, tools: Any) -> Answer:  # noqa: ARG002 - fits Policy
        return self._answer


@pytest.fixture
def client(start: Start) -> Any:
    with openai.OpenAI(base_url=start(), api_key="none", max_retries=0) as sdk:
        yield sdk


def post(url: str, body: bytes, method: str = "POST", path: str = "/v1/chat/completions") -> Any:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=20)
    try:
        connection.request(method, path, body, {"content-type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def test_the_sdk_lists_the_one_model(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == [MODEL]


def test_the_sdk_reads_a_tool_call_and_usage(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model=MODEL, messages=MESSAGES, tools=TOOL_LIST)
    choice = answer.choices[0]
    assert choice.finish_reason == "tool_calls"
    call: Any = (choice.message.tool_calls or [])[0]
    assert call.function.name == "next_request"
    assert json.loads(call.function.arguments) == {"queue_id": "Q-1234B"}
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_the_second_time_the_prompt_is_cached_in_whole_blocks(client: openai.OpenAI) -> None:
    block = load_profiles()["gpu"].cache_block_tokens
    usages = [
        client.chat.completions.create(model=MODEL, messages=MESSAGES, tools=TOOL_LIST).usage
        for _ in range(2)
    ]
    cold, warm = (usage.prompt_tokens_details.cached_tokens for usage in usages)  # type: ignore[union-attr]
    assert cold == 0
    assert usages[0] is not None
    assert warm == usages[0].prompt_tokens // block * block > 1024


@pytest.mark.parametrize(
    "answer",
    [
        Answer("Hello, größere Wörter und 🙂 Zeichen."),
        Answer(calls=(PlannedCall("look", {"id": "ä🙂", "n": 7}),)),
        Answer("Both.", (PlannedCall("a", {}), PlannedCall("b", {"x": [1, 2]}))),
    ],
)
def test_a_stream_assembles_to_the_whole_answer(start: Start, answer: Answer) -> None:
    with openai.OpenAI(base_url=start(Says(answer)), api_key="none", max_retries=0) as sdk:
        with sdk.chat.completions.stream(
            model="says", messages=MESSAGES, stream_options={"include_usage": True}
        ) as stream:
            streamed = stream.get_final_completion()
        whole = sdk.chat.completions.create(model="says", messages=MESSAGES)
    got, expected = streamed.choices[0], whole.choices[0]
    assert (got.message.content or "") == (expected.message.content or "") == answer.content
    assert got.finish_reason == expected.finish_reason

    def calls(message: Any) -> Any:
        return [
            (c.function.name, json.loads(c.function.arguments)) for c in message.tool_calls or []
        ]

    assert (
        calls(got.message)
        == calls(expected.message)
        == [(c.name, c.arguments) for c in answer.calls]
    )
    assert streamed.usage is not None
    assert whole.usage is not None
    assert streamed.usage.completion_tokens == whole.usage.completion_tokens


def test_usage_ends_a_stream_only_where_it_was_asked_for(client: openai.OpenAI) -> None:
    plain = list(client.chat.completions.create(model=MODEL, messages=MESSAGES, stream=True))
    assert all(chunk.choices for chunk in plain)
    asked = list(
        client.chat.completions.create(
            model=MODEL, messages=MESSAGES, stream=True, stream_options={"include_usage": True}
        )
    )
    assert asked[-1].choices == []
    assert asked[-1].usage is not None
    assert all(chunk.usage is None for chunk in asked[:-1])


def test_the_same_request_gives_the_same_answer_and_ids(client: openai.OpenAI) -> None:
    one, other = (
        client.chat.completions.create(model=MODEL, messages=MESSAGES, tools=TOOL_LIST)
        for _ in range(2)
    )
    assert one.choices == other.choices
    assert one.id == other.id


GOOD = {"model": MODEL, "messages": MESSAGES}


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"{", 400, "not JSON"),
        (b"[]", 400, "does not fit"),
        (json.dumps({"messages": MESSAGES}).encode(), 400, "model"),
        (json.dumps({**GOOD, "messages": []}).encode(), 400, "at least one message"),
        (json.dumps({**GOOD, "messages": [{"role": "boss"}]}).encode(), 400, "messages[0].role"),
        (json.dumps({**GOOD, "n": 2}).encode(), 400, "$.n"),
        (json.dumps({**GOOD, "tool_choice": "required"}).encode(), 400, "$.tool_choice"),
        (json.dumps({**GOOD, "tools": [{"type": "web"}]}).encode(), 400, "tools[0]"),
        (json.dumps({**GOOD, "model": "other"}).encode(), 404, "no model 'other'"),
        (b"[" * 100_000, 400, ""),
        (b'{"model":"\xff"}', 400, ""),
    ],
)
def test_what_a_client_gets_wrong_is_said_in_openais_form(
    start: Start, body: bytes, status: int, said: str
) -> None:
    got, answer = post(start(), body)
    assert got == status
    assert set(answer["error"]) == {"message", "type", "param", "code"}
    assert said in answer["error"]["message"]


def test_other_paths_and_methods_are_refused(start: Start) -> None:
    url = start()
    assert post(url, b"", "GET", "/v1/nothing")[0] == 404
    assert post(url, b"", "GET")[0] == 405


def test_a_conversation_that_was_never_recorded_is_a_404(start: Start) -> None:
    from reflexarc.sim import RecordedPolicy

    body = json.dumps({**GOOD, "model": "recorded"}).encode()
    status, answer = post(start(RecordedPolicy([])), body)
    assert (status, answer["error"]["code"]) == (404, "unknown_conversation")


def test_an_answer_takes_at_least_its_modelled_latency(start: Start) -> None:
    url = start(Says(Answer("Hi.")), time_scale=0.2)
    began = time.perf_counter()
    status, answer = post(url, json.dumps({**GOOD, "model": "says"}).encode())
    waited_ms = (time.perf_counter() - began) * 1e3
    usage = answer["usage"]
    modelled_ms = load_profiles()["gpu"].latency_ms(
        usage["prompt_tokens"], 0, usage["completion_tokens"]
    )
    assert status == 200
    assert waited_ms >= 0.2 * modelled_ms - 1


def test_prompts_read_at_the_same_time_do_not_find_each_other_cached(start: Start) -> None:
    url = start(Says(Answer("Hi.")), time_scale=1)
    body = json.dumps({"model": "says", "messages": MESSAGES}).encode()
    cached: list[int] = []

    def ask() -> None:
        details = post(url, body)[1]["usage"]["prompt_tokens_details"]
        cached.append(details["cached_tokens"])

    together = [threading.Thread(target=ask) for _ in range(2)]
    for thread in together:
        thread.start()
    for thread in together:
        thread.join()
    assert cached == [0, 0]
    ask()
    assert cached[-1] > 1024


def test_many_clients_at_once_each_get_their_own_answer(start: Start) -> None:
    url = start()
    got: dict[str, str] = {}

    def ask(queue: str) -> None:
        messages = [{"role": "user", "content": f"Take queue {queue}"}]
        _, answer = post(url, json.dumps({"model": MODEL, "messages": messages}).encode())
        call = answer["choices"][0]["message"]["tool_calls"][0]
        got[queue] = json.loads(call["function"]["arguments"])["queue_id"]

    threads = [threading.Thread(target=ask, args=(f"Q-{n:04d}A",)) for n in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == {queue: queue for queue in got}
    assert len(got) == 30


def test_a_client_that_leaves_while_waiting_harms_nobody(start: Start) -> None:
    url = start(Says(Answer("word " * 400)), time_scale=1)
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=20)
    body = json.dumps({**GOOD, "model": "says", "stream": True})
    connection.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
    connection.getresponse().read(200)
    connection.close()
    assert post(url, b"", "GET", "/v1/models")[0] == 200
