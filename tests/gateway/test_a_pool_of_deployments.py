"""Pooled routes: which deployment answers, what the client sees, what it costs."""

import itertools
import json
import time

import pytest

from reflexarc.gateway.config import Limits
from reflexarc.gateway.config_pool import TierConfig
from reflexarc.sim.faulty import FaultyUpstream
from reflexarc.wire.dialects import NAMES

from .conftest import Starter
from .pools import ask, asked, pooled


@pytest.mark.parametrize("spoken", NAMES)
async def test_the_first_fails_and_the_second_answers_whatever_both_speak(
    start: Starter, two: tuple[FaultyUpstream, FaultyUpstream], spoken: str
) -> None:
    running = await pooled(start, two, ("chat", spoken))
    for client, stream in itertools.product(NAMES, (False, True)):
        two[0].script.append("error=503")
        status, headers, seen = await asked(running, client, "answer: tools=2", stream=stream)
        assert status == 200
        assert [name for _, name, _ in seen.calls] == ["get_weather", "get_time"]
        assert headers["x-reflexarc-upstream"] == "b/faulty-2"
        assert headers["x-reflexarc-attempts"] in ("1", "2")
    assert not two[0].refusals
    assert not two[1].refusals
    assert all("mine" not in json.dumps(one.headers) for one in two[1].received)


async def test_the_cheapest_is_asked_where_both_are_fast_enough(
    start: Starter, two: tuple[FaultyUpstream, FaultyUpstream]
) -> None:
    running = await pooled(start, two)
    for _ in range(4):
        _, headers, _ = await asked(running, "chat", stream=True)
        assert headers["x-reflexarc-upstream"] == "a/faulty-1"
    assert not two[1].received


async def test_an_alias_is_its_model_and_an_unknown_one_is_told_with_the_nearest(
    start: Starter, two: tuple[FaultyUpstream, FaultyUpstream]
) -> None:
    running = await pooled(start, two)
    status, _, _ = await asked(running, "chat", stream=False, model="gpt-4o")
    assert status == 200
    status, _, said = await asked(running, "chat", stream=False, model="agemt")
    assert status == 404
    assert "did you mean agent?" in said["error"]["message"]


async def test_only_model_and_key_differ_from_what_the_client_sent(
    start: Starter, two: tuple[FaultyUpstream, FaultyUpstream]
) -> None:
    running = await pooled(start, two)
    body = b'{ "messages" : [{"role":"user","content":"hi"}],  "model":\t"agent" ,"stream":false}'
    answer = await running.chat(body)
    assert answer.status == 200
    assert two[0].received[0].body == body.replace(b'"agent"', b'"faulty-1"')


@pytest.mark.parametrize("stream", [False, True])
async def test_both_down_is_the_real_status_of_the_last_and_not_to_be_tried_again(
    start: Starter, two: tuple[FaultyUpstream, FaultyUpstream], stream: bool
) -> None:
    running = await pooled(start, two)
    two[0].usual, two[1].usual = "error=500", "error=529 retry=7"
    status, headers, said = await asked(running, "chat", stream=stream)
    assert status == 529
    assert headers["retry-after"] == "7"
    assert headers["x-should-retry"] == "false"
    assert "error" in said


async def test_what_asked_for_a_pause_is_left_alone_for_just_so_long(
    start: Starter, two: tuple[FaultyUpstream, FaultyUpstream]
) -> None:
    running = await pooled(start, two)
    two[0].script.append("error=429 retry=30")
    for _ in range(3):
        _, headers, _ = await asked(running, "chat", stream=False)
        assert headers["x-reflexarc-upstream"] == "b/faulty-2"
    assert len(two[0].received) == 1
    circuit = running.gateway.system2.fleet.of("a/faulty-1").circuit
    left_s = circuit.opens_in_s(time.perf_counter())
    assert 28 < left_s <= 30


@pytest.mark.parametrize(
    "words",
    ["error_first=0", "reset=0", "cut=0", "truncate=0", "stall=0", "cut=1", "error_first=1"],
)
async def test_a_stream_that_breaks_before_content_is_anothers_to_answer(
    start: Starter, two: tuple[FaultyUpstream, FaultyUpstream], words: str
) -> None:
    running = await pooled(start, two, ("responses", "messages"), TierConfig(first_token_s=0.4))
    two[0].script.append(words)
    status, headers, seen = await asked(running, "responses", stream=True)
    assert (status, headers["x-reflexarc-upstream"]) == (200, "b/faulty-2")
    assert seen.ended
    assert seen.error is None


async def test_a_stream_that_breaks_after_content_ends_with_an_error_and_nobody_else_is_asked(
    start: Starter, two: tuple[FaultyUpstream, FaultyUpstream]
) -> None:
    running = await pooled(start, two)
    two[0].script.append("cut=4")
    status, _, seen = await asked(running, "chat", "answer: long=20", stream=True)
    assert status == 200
    assert seen.error is not None
    assert not two[1].received


async def test_a_call_that_groq_could_not_read_is_read_here(
    start: Starter, two: tuple[FaultyUpstream, FaultyUpstream]
) -> None:
    running = await pooled(start, two)
    two[0].script.append("toolfail")
    body = ask("chat", stream=False)
    body["tools"][0]["function"]["parameters"] = {
        "type": "object",
        "properties": {"city": {"type": "string"}},
    }
    answer = await running.chat(body)
    (call,) = answer.json["choices"][0]["message"]["tool_calls"]
    assert (call["function"]["name"], call["function"]["arguments"]) == (
        "get_weather",
        '{"city": "Oslo"}',
    )
    assert not two[1].received


async def test_a_second_is_asked_where_the_first_is_silent_past_its_usual_time(
    start: Starter, two: tuple[FaultyUpstream, FaultyUpstream]
) -> None:
    running = await pooled(start, two, tier=TierConfig(hedge=True))
    for _ in range(8):
        await asked(running, "chat", stream=True)
    two[0].script.append("slow=3000")
    status, headers, seen = await asked(running, "chat", stream=True)
    assert (status, headers["x-reflexarc-upstream"]) == (200, "b/faulty-2")
    assert seen.ended
    lost = 'reflexarc_attempts_total{deployment="a/faulty-1",outcome="hedge_lost"'
    await running.eventually(lambda found: any(name.startswith(lost) for name in found))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("spoken", NAMES)
async def test_what_it_used_is_charged_at_the_price_of_who_answered(
    start: Starter, two: tuple[FaultyUpstream, FaultyUpstream], spoken: str, stream: bool
) -> None:
    running = await pooled(start, two, (spoken, "chat"))
    await asked(running, "chat", stream=stream)
    found = await running.eventually(lambda found: _spent(found, "a/faulty-1") > 0)
    # 100 tokens of input at 1 dollar a million, 20 of output at 2.
    assert round(_spent(found, "a/faulty-1") * 1e6) == 140


def _spent(counters: dict[str, float], deployment: str) -> float:
    name = "reflexarc_spent_usd_total{deployment=" + f'"{deployment}"'
    return sum(value for key, value in counters.items() if key.startswith(name))


async def test_usage_nobody_asked_for_is_counted_and_not_told(
    start: Starter, two: tuple[FaultyUpstream, FaultyUpstream]
) -> None:
    running = await pooled(start, two)
    body = {"model": "agent", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    for words in ("", "split=1", "crlf", "noblank"):
        two[0].script.append(words)
        answer = await running.chat(body)
        assert json.loads(two[0].received[-1].body)["stream_options"] == {"include_usage": True}
        assert b"prompt_tokens" not in answer.body
        assert answer.body.rstrip().endswith(b"data: [DONE]")
    found = await running.eventually(lambda found: _spent(found, "a/faulty-1") > 500e-6)
    assert round(_spent(found, "a/faulty-1") * 1e6) == 4 * 140


async def test_an_answer_too_long_to_keep_is_estimated_by_its_size(
    start: Starter, two: tuple[FaultyUpstream, FaultyUpstream]
) -> None:
    running = await pooled(start, two, limits=Limits(observed_bytes=2000))
    await asked(running, "chat", "answer: long=400", stream=True)
    name = 'reflexarc_tokens_total{deployment="a/faulty-1",kind="output"}'
    found = await running.eventually(lambda found: name in found)
    assert found[name] > 400
