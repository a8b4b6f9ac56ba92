"""Pings of idle sessions through a real gateway: where they pay, on whose account."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from reflexarc.gateway.config import GatewayConfig, Price, Repair, Route
from reflexarc.gateway.config_checks import checked
from reflexarc.gateway.config_pool import AccountsConfig
from reflexarc.sim.faulty import FaultyUpstream
from reflexarc.steps.errors import ConfigError
from tests.context.prompts import Body, request

from .conftest import Running, Starter
from .test_accounts_bind_requests import Maker, key
from .test_prefixes_are_watched import prefix

__all__ = ["key"]
# Anthropic's, to one another.
PRICE = Price(input=3.0, output=15.0, cached=0.3, cache_write=3.75)
VERSION = {"anthropic-version": "2023-06-01"}
CACHE_S, IDLE_S = 0.8, 1.0


def long(turns: int, **more: Any) -> Body:
    return request(turns, system="You mend programs. " * 600, **more)


def pings_in(faulty: FaultyUpstream) -> list[Body]:
    return [one.json for one in faulty.received if one.json["max_tokens"] == 1]


async def warm(start: Starter, faulty: FaultyUpstream, **more: Any) -> Running:
    """A gateway that has seen a dozen sessions come back a little too late."""
    faulty.usual = "input=3000"
    running = await start(
        upstream=faulty.url, dialect="messages", mode="off", price=PRICE, cache_s=CACHE_S,
        repair=Repair(keep_warm=True), **more,
    )  # fmt: skip
    names = [f"earlier {at}" for at in range(12)]
    await asyncio.gather(*(prefix(running, long(0), name) for name in names))
    await asyncio.sleep(IDLE_S)
    found = await asyncio.gather(*(prefix(running, long(1), name) for name in names))
    assert {one["cause"] for one in found} == {"expired"}
    assert pings_in(faulty) == []  # nothing was known yet
    return running


async def test_a_session_that_is_expected_back_finds_its_cache_warm(
    start: Starter, faulty: FaultyUpstream
) -> None:
    running = await warm(start, faulty)
    await prefix(running, long(2), "one more")
    await asyncio.sleep(IDLE_S)
    sent = [one for one in pings_in(faulty) if len(one["messages"]) == 5]
    assert sent == [{**long(2), "max_tokens": 1}]
    found = await prefix(running, long(3), "one more")
    assert found["how"] == "kept"
    counted = await running.metrics()
    assert counted['reflexarc_prefix_pings_total{outcome="sent",route="/v1"}'] >= 1


async def test_a_ping_is_charged_to_whom_it_is_for(
    start: Starter, faulty: FaultyUpstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFLEXARC_STATE", str(tmp_path))
    running = await warm(start, faulty)
    await prefix(running, long(2), "one more")
    await asyncio.sleep(IDLE_S)
    pings = len(pings_in(faulty))
    assert pings >= 1
    charged = 0
    for _ in range(100):
        with closing(sqlite3.connect(tmp_path / "accounts.db")) as book:
            (charged,) = book.execute("select count(*) from charges").fetchone()
        if charged >= len(faulty.received):
            break
        await asyncio.sleep(0.05)
    assert charged >= len(faulty.received)


async def test_a_spent_budget_pays_for_no_ping(
    start: Starter, faulty: FaultyUpstream, key: Maker
) -> None:
    """A request costs 9,300 micro-dollars; some 11,400 are kept back for it, and for a ping."""
    poor, rich = key("poor", budgets=("0.015usd",)), key("rich", budgets=("3usd",))
    running = await warm(
        start,
        faulty,
        api_key_env="THEIRS",
        environment={"THEIRS": "x"},
        pool={"accounts": AccountsConfig(keys="optional", max_output_tokens=100)},
    )
    for secret, wanted in ((poor, 0), (rich, 1)):
        body = long(3, max_tokens=10, metadata={"user_id": secret[-4:]})
        answer = await running.post("/v1/messages", body, {"x-api-key": secret, **VERSION})
        assert answer.status == 200, answer.body
        await asyncio.sleep(IDLE_S)
        sent = [one for one in pings_in(faulty) if one.get("metadata") == body["metadata"]]
        assert len(sent) >= wanted if wanted else not sent
    counted = await running.metrics()
    assert counted['reflexarc_prefix_pings_total{outcome="refused",route="/v1"}'] == 1


async def test_short_prompts_and_other_routes_are_left_to_cool(
    start: Starter, faulty: FaultyUpstream
) -> None:
    running = await warm(start, faulty)
    faulty.usual = "input=500"
    before = len(pings_in(faulty))
    await prefix(running, request(4, max_tokens=77), "short")
    await asyncio.sleep(IDLE_S)
    short = [one for one in pings_in(faulty)[before:] if len(one["messages"]) == 9]
    assert short == []


def test_a_pool_keeps_nothing_warm() -> None:
    route = Route(upstream="models", repair=Repair(keep_warm=True))
    with pytest.raises(ConfigError, match="keep_warm has no use"):
        checked(GatewayConfig(route=(route,)), "test")
