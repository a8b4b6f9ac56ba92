"""Every client dialect over every upstream dialect, by raw HTTP, the upstream misbehaving."""

import asyncio
import itertools
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from reflexarc.gateway.config import Route
from reflexarc.sim.faulty import FaultyUpstream
from reflexarc.upstream import Timeouts
from reflexarc.wire.dialects import NAMES

from .asking import TOOLS, Seen, client_of
from .conftest import Running, Starter

FOREIGN = [(client, upstream) for client in NAMES for upstream in NAMES if client != upstream]
HEADERS = {"authorization": "Bearer mine", "anthropic-version": "2023-06-01"}


@pytest.fixture
async def faulty() -> AsyncIterator[FaultyUpstream]:
    running = FaultyUpstream(key="secret")
    await running.start()
    yield running
    await running.stop()


async def _gateway(start: Starter, faulty: FaultyUpstream, **more: Any) -> Running:
    """With a route for each dialect that is spoken upstream."""
    routes = tuple(
        Route(
            upstream=faulty.gemini_url if spoken == "gemini" else faulty.url,
            path=f"/{spoken}/v1",
            dialect=spoken,
            api_key_env="FAULTY_KEY",
            mode="off",
        )
        for spoken in NAMES
    )
    return await start(routes=routes, environment={"FAULTY_KEY": "secret"}, **more)


async def _asked(
    running: Running,
    pair: tuple[str, str],
    words: str,
    *,
    stream: bool,
    more: list[Any] | None = None,
    think: bool = False,
) -> tuple[int, dict[str, str], Any]:
    """Of a client's dialect and an upstream's: status, headers, and the answer as seen or, of an
    error, its body."""
    client = client_of(pair[0])
    body = client.ask(words, stream=stream, more=more or [], think=think)
    answer = await running.post(f"/{pair[1]}{client.path(stream=stream)}", body, HEADERS)
    headers = {key.decode().lower(): value.decode() for key, value in answer.headers}
    if answer.status != 200:
        return answer.status, headers, answer.json
    seen = client.gathered(answer.body) if stream else client.whole(answer.json)
    return 200, headers, seen


@pytest.mark.parametrize("think", [False, True], ids=["plain", "thinking"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_parallel_calls_and_usage_go_round_a_loop_of_two_turns(
    start: Starter, faulty: FaultyUpstream, stream: bool, think: bool
) -> None:
    running = await _gateway(start, faulty)
    words = "answer: tools=2 text" + (" thinking" if think else " nothinking")
    for name, spoken in itertools.product(NAMES, NAMES):
        client, pair = client_of(name), (name, spoken)
        _, _, seen = await _asked(running, pair, words, stream=stream, think=think)
        assert faulty.refusals == [], pair
        assert isinstance(seen, Seen), seen
        assert seen.text == "Let me look."
        assert [(call[1], call[2]) for call in seen.calls] == [
            (TOOLS[0], '{"zip":"Oslo","at":"Oslo"}'),
            (TOOLS[1], '{"zip":"Rome","at":"Rome"}'),
        ]
        assert len({call[0] for call in seen.calls}) == 2 or pair == ("gemini", "gemini")
        assert (seen.stop, seen.ended) == (client.stops["calls"], True)
        assert seen.usage == (100, 64, 20)
        more = client.results(seen, ["Rain", "Sun"])
        _, _, seen = await _asked(running, pair, words, stream=stream, more=more, think=think)
        assert faulty.refusals == [], pair
        assert isinstance(seen, Seen), seen
        assert (seen.text, seen.calls) == ("Got: Rain | Sun.", [])
        assert seen.stop == client.stops["end"]
        # What the upstream signed has come back to it, and it refuses what it did not sign.
        asked = faulty.received[-1].body
        signs = {"messages": b'"signature":', "responses": b'"encrypted_content":'}
        assert not think or signs.get(spoken, b"") in asked, pair


WAYS = (
    "split=7 crlf comments",
    "seed=3 cr unicode bom nospace",
    "gzip split=11 pings",
    "interleave",
    "twoinone emptyfirst nochoices",
    "repeat usagetwice",
    "oneindex stopaftertools",
    "wholecalls usageonlast noblank",
    "multiline nonames nolifecycle",
)


async def test_streams_in_any_bytes_are_the_same_answer(
    start: Starter, faulty: FaultyUpstream
) -> None:
    running = await _gateway(start, faulty)
    for words, pair in itertools.product(WAYS, FOREIGN):
        said = f"answer: tools=3\nfault: {words}"
        status, _, seen = await _asked(running, pair, said, stream=True)
        assert (status, faulty.refusals) == (200, []), (words, pair)
        given = [json.loads(call[2])["zip"] for call in seen.calls]
        assert given == ["Oslo", "Rome", "Bonn"], (words, pair)
        assert [call[1] for call in seen.calls] == [*TOOLS, TOOLS[0]]
        assert (seen.stop, seen.ended) == (client_of(pair[0]).stops["calls"], True), (words, pair)
        assert seen.usage == (100, 64, 20), (words, pair)


BREAKS = ("reset=4", "cut=4", "truncate=4", "error_after=4", "nofinish nodone")


async def test_a_stream_that_breaks_off_never_ends_clean(
    start: Starter, faulty: FaultyUpstream
) -> None:
    running = await _gateway(start, faulty)
    for words, pair in itertools.product(BREAKS, FOREIGN):
        said = f"answer: long=8\nfault: {words}"
        status, _, seen = await _asked(running, pair, said, stream=True)
        if status != 200:  # nothing was told yet
            assert client_of(pair[0]).is_error(seen, status), (words, pair)
            continue
        assert not seen.ended, (words, pair)
        assert seen.error is not None, (words, pair)


async def test_an_error_before_content_has_its_own_status(
    start: Starter, faulty: FaultyUpstream
) -> None:
    running = await _gateway(start, faulty)
    for pair in FOREIGN:
        overloaded = 529 if pair[0] == "messages" else 503
        first = "error_first=0" if pair[1] == "gemini" else "error_first=1"
        for stream, words in ((True, first), (False, "error_in_200")):
            status, _, body = await _asked(running, pair, f"fault: {words}", stream=stream)
            assert status == overloaded, (words, pair, body)
            assert client_of(pair[0]).is_error(body, status)


async def test_a_refusal_to_answer_keeps_status_and_hint(
    start: Starter, faulty: FaultyUpstream
) -> None:
    running = await _gateway(start, faulty)
    for pair in FOREIGN:
        client = client_of(pair[0])
        for words in ("error=429 retry=7", "error=429 retry=7 inbody"):
            if "inbody" in words and pair[1] == "messages":
                continue  # there it stands in a header alone
            status, headers, body = await _asked(running, pair, f"fault: {words}", stream=True)
            assert status == 429
            assert client.is_error(body, 429)
            assert headers["retry-after"] == "7", (words, pair)
        status, _, body = await _asked(running, pair, "fault: error=500 gzip", stream=False)
        assert status == 500
        assert client.is_error(body, 500)
        status, _, body = await _asked(running, pair, "fault: html=502", stream=False)
        assert status == 502
        assert client.is_error(body, 502)
        assert "<" not in json.dumps(body)


def _stalling(spoken: str) -> str:
    """Words for a stream that stands still once there was some content."""
    return f"answer: long=9\nfault: stall={7 if spoken == 'responses' else 4}"


async def test_a_stream_that_stalls_is_ended_by_the_idle_limit(
    start: Starter, faulty: FaultyUpstream
) -> None:
    running = await _gateway(start, faulty, timeouts=Timeouts(idle_s=0.2))
    for pair in FOREIGN:
        _, _, seen = await _asked(running, pair, _stalling(pair[1]), stream=True)
        assert not seen.ended, pair
        assert seen.error is not None, pair


async def test_a_client_that_goes_cancels_the_upstream_within_a_second(
    start: Starter, faulty: FaultyUpstream
) -> None:
    running = await _gateway(start, faulty)
    for name, spoken in FOREIGN:
        client, left = client_of(name), faulty.left
        body = client.ask(_stalling(spoken), stream=True, more=[], think=False)
        url = f"{running.base}/{spoken}{client.path(stream=True)}"
        async with running.client.post(url, json=body, headers=HEADERS) as answer:
            assert await answer.content.readany()
        gone_s = time.monotonic()
        while faulty.left == left:
            assert time.monotonic() - gone_s < 1.0, (name, spoken)
            await asyncio.sleep(0.01)
