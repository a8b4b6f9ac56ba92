"""What counts as an answer, what as a fault, and what each attempt is charged, however it ends."""

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from reflexarc.gateway.config_pool import TierConfig

from .asking import client_of
from .conftest import Starter
from .pools import Two, asked, pooled

LONG = "hello\nanswer: long=400"


async def charges(state: Path, count: int) -> list[tuple[Any, ...]]:
    """Provider, outcome, tokens in and out, cost, partial, estimated, in the order they began."""
    found: list[tuple[Any, ...]] = []
    async with asyncio.timeout(10):
        while len(found) < count:
            await asyncio.sleep(0.02)
            connection = sqlite3.connect(state / "accounts.db")
            found = connection.execute(
                "select provider, outcome, input, output, micro_usd, partial, estimated"
                " from charges order by number, attempt"
            ).fetchall()
            connection.close()
    return found


@pytest.mark.parametrize("client", ["chat", "responses", "messages", "gemini"])
async def test_a_stream_that_passes_as_it_is_and_has_no_end_is_ended_with_an_error(
    start: Starter, two: Two, state_dir: Path, client: str
) -> None:
    running = await pooled(start, two, (client, "chat"))
    two[0].script.append("truncate=6" if client == "responses" else "truncate=3")
    status, _, seen = await asked(running, client, LONG, stream=True)
    assert status == 200
    assert seen.error is not None
    [row] = await charges(state_dir, 1)
    assert row[:2] == ("a", "cut")
    assert row[5:] == (1, 1)


@pytest.mark.parametrize("client", ["chat", "responses", "messages", "gemini"])
async def test_a_providers_own_error_inside_a_stream_passes_once_and_is_no_answer(
    start: Starter, two: Two, state_dir: Path, client: str
) -> None:
    running = await pooled(start, two, (client, "chat"))
    two[0].script.append("error_after=6" if client == "responses" else "error_after=3")
    _, _, seen = await asked(running, client, LONG, stream=True)
    assert "Told to fail." in json.dumps(seen.error)
    assert (await charges(state_dir, 1))[0][:2] == ("a", "cut")
    counted = await running.metrics()
    assert any('outcome="cut"' in name and "a/faulty-1" in name for name in counted)


@pytest.mark.parametrize(
    ("spoken", "events"), [("responses", 4), ("messages", 2), ("chat", 1), ("responses", 3)]
)
async def test_a_text_of_which_there_is_nothing_yet_binds_nobody(
    start: Starter, two: Two, spoken: str, events: int
) -> None:
    running = await pooled(start, two, (spoken, "chat"))
    for client in ("chat", spoken):
        two[0].script.append(f"error_first={events}")
        status, headers, seen = await asked(running, client, stream=True)
        assert (status, headers["x-reflexarc-upstream"]) == (200, "b/faulty-2")
        assert seen.ended


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("spoken", ["chat", "responses", "messages", "gemini"])
@pytest.mark.parametrize("words", ["", "nodone"])
async def test_usage_that_was_told_is_not_estimated(
    start: Starter, two: Two, state_dir: Path, spoken: str, stream: bool, words: str
) -> None:
    if words and spoken != "chat":
        words = ""  # in the other dialects a stream without its last word has no end
    running = await pooled(start, two, (spoken, "chat"))
    two[0].script.append(words)
    await asked(running, "chat", stream=stream)
    assert await charges(state_dir, 1) == [("a", "answered", 100, 20, 140, 0, 0)]


async def test_calls_that_cannot_be_read_are_asked_for_once_more_and_then_elsewhere(
    start: Starter, two: Two
) -> None:
    running = await pooled(start, two)
    two[0].usual = "toolfail unreadable"
    _, headers, seen = await asked(running, "chat", stream=False)
    assert headers["x-reflexarc-upstream"] == "b/faulty-2"
    assert seen.ended
    assert len(two[0].received) == 2


async def test_a_redirect_is_not_followed_and_not_paid(
    start: Starter, two: Two, state_dir: Path
) -> None:
    running = await pooled(start, two)
    two[0].script.append("redirect")
    await asked(running, "chat", stream=False)
    assert await charges(state_dir, 2) == [
        ("a", "failed", 0, 0, 0, 0, 0), ("b", "answered", 100, 20, 1400, 0, 0),
    ]  # fmt: skip


async def test_attempts_are_charged_in_the_order_they_began(
    start: Starter, two: Two, state_dir: Path
) -> None:
    running = await pooled(start, two, tier=TierConfig(hedge=True))
    for wait_ms in (300, 100, 100, 100, 100, 100):
        two[0].script.append(f"slow={wait_ms}")
        await asked(running, "chat", stream=True)
    two[0].script.append("slow=1200")
    two[1].usual = "slow=20000"
    _, headers, _ = await asked(running, "chat", stream=True)
    assert headers["x-reflexarc-upstream"] == "a/faulty-1"
    rows = await charges(state_dir, 8)
    assert [row[:2] for row in rows[6:]] == [("a", "answered"), ("b", "hedge_lost")]


async def test_a_client_is_told_not_to_try_again_where_retries_are_spent(
    start: Starter, two: Two
) -> None:
    running = await pooled(start, two)
    two[0].usual = "error=429 retryms=0"
    told: list[tuple[int, str | None]] = []
    for _ in range(14):
        status, headers, _ = await asked(running, "chat", stream=False)
        told.append((status, headers.get("x-should-retry")))
    assert told[0] == (200, None)
    assert told[-1] == (429, "false")


async def test_the_state_of_each_deployment_is_shown(start: Starter, two: Two) -> None:
    running = await pooled(start, two)
    two[0].script.append("error=429 retry=30")
    await asked(running, "chat", stream=False)
    shown = {
        one["deployment"]: one for one in (await running.get("/admin/state")).json["deployments"]
    }
    assert set(shown) == {"a/faulty-1", "b/faulty-2"}
    assert 28 < shown["a/faulty-1"]["opens_in_s"] <= 30
    assert shown["b/faulty-2"]["opens_in_s"] == 0
    assert shown["b/faulty-2"]["busy"] == 0


@pytest.mark.parametrize("client", ["chat", "responses", "messages", "gemini"])
@pytest.mark.parametrize(("words", "wanted"), [("html=502", 502), ("toolfail unreadable", 400)])
async def test_a_page_or_the_error_of_another_api_reaches_no_client(
    start: Starter, two: Two, client: str, words: str, wanted: int
) -> None:
    running = await pooled(start, two, (client, client))
    two[0].usual = two[1].usual = words
    status, headers, said = await asked(running, client, stream=False)
    assert status == wanted
    assert client_of(client).is_error(said, wanted)
    assert headers["content-type"] == "application/json"
    assert headers["x-should-retry"] == "false"


async def test_providers_words_do_not_grow_what_is_counted(start: Starter, two: Two) -> None:
    metrics = (await pooled(start, two)).gateway.metrics
    for number in range(1000):
        metrics.upstream_error("/v1", f"fault-{number}")
    metrics.upstream_error("/v1", "no word at all")
    page = metrics.text().decode()
    assert page.count("reflexarc_upstream_errors_total{") <= 201
    assert 'code="other"' in page
