"""Prefix breaks through a real gateway: found, named, priced, counted; what is none is not told."""

import copy
from typing import Any

import pytest

from reflexarc.gateway.config import Price, Repair, Route
from reflexarc.gateway.config_prune import PruneConfig
from reflexarc.sim.faulty import FaultyUpstream
from tests.context.prompts import Body, request, turn

from .conftest import Running, Starter
from .pools import Two, pool_of

PRICE = Price(input=3.0, output=15.0, cached=0.3)


def told(value: str | None) -> dict[str, str]:
    """The items of the header, the first as `how`."""
    assert value is not None
    how, *items = value.split("; ")
    return {"how": how, **dict(item.split("=", 1) for item in items)}


async def ask(running: Running, body: Body, session: str = "", path: str = "/v1/messages") -> Any:
    headers = {"x-reflexarc-session": session} if session else {}
    answer = await running.post(path, body, {"anthropic-version": "2023-06-01", **headers})
    assert answer.status == 200, answer.body
    return answer


async def prefix(running: Running, body: Body, session: str = "") -> dict[str, str]:
    return told((await ask(running, body, session)).header("x-reflexarc-prefix"))


def system(clock: str) -> str:
    return f"You mend programs.\nToday is 2026-12-01 {clock}.\nBe brief." + " Be kind." * 200


@pytest.mark.parametrize("mode", ["off", "shadow"])
async def test_a_clock_is_found_named_and_priced(
    start: Starter, faulty: FaultyUpstream, mode: str
) -> None:
    running = await start(upstream=faulty.url, dialect="messages", mode=mode, price=PRICE)
    assert await prefix(running, request(0, system=system("09:59:01"))) == {"how": "new"}
    kept = await prefix(running, request(1, system=system("09:59:01")))
    assert kept["how"] == "kept"
    assert int(kept["tokens"]) > 0
    broken = await prefix(running, request(2, system=system("09:59:08")))
    assert (broken["how"], broken["cause"], broken["at"]) == ("break", "clock", "system")
    assert int(broken["byte"]) == len("You mend programs.\nToday is 2026-12-01 09:59:0")
    lost = int(broken["lost_tokens"])
    assert lost > int(kept["tokens"]) / 2
    assert float(broken["usd"]) == pytest.approx(lost * 2.7e-6, abs=1e-6)
    counted = await running.eventually(
        lambda found: 'reflexarc_prefix_breaks_total{cause="clock",route="/v1"}' in found
    )
    labels = '{cause="clock",route="/v1"}'
    assert counted[f"reflexarc_prefix_breaks_total{labels}"] == 1
    assert counted[f"reflexarc_prefix_lost_tokens_total{labels}"] == lost
    assert counted[f"reflexarc_prefix_lost_usd_total{labels}"] == float(broken["usd"])
    assert counted['reflexarc_prefix_kept_tokens_total{route="/v1"}'] >= int(kept["tokens"])


async def test_bytes_pass_untouched_all_the_same(start: Starter, faulty: FaultyUpstream) -> None:
    running = await start(upstream=faulty.url, dialect="messages", mode="off")
    for clock in ("09:59:01", "09:59:08"):
        await ask(running, request(1, system=system(clock)))
    assert [one.json for one in faulty.received] == [
        request(1, system=system(clock)) for clock in ("09:59:01", "09:59:08")
    ]


async def test_what_comes_too_late_is_expired(start: Starter, faulty: FaultyUpstream) -> None:
    running = await start(upstream=faulty.url, dialect="messages", mode="off", cache_s=0.001)
    await prefix(running, request(1))
    found = await prefix(running, request(2))
    assert (found["how"], found["cause"]) == ("break", "expired")
    assert "usd" not in found  # nobody said what it costs


async def test_an_hour_asked_for_is_an_hour(start: Starter, faulty: FaultyUpstream) -> None:
    running = await start(upstream=faulty.url, dialect="messages", mode="off", cache_s=0.001)
    mark = {"type": "ephemeral", "ttl": "1h"}
    marked = [{"type": "text", "text": system("09:59"), "cache_control": mark}]
    await prefix(running, request(1, system=marked))
    assert (await prefix(running, request(2, system=marked)))["how"] == "kept"


async def test_sessions_and_their_agents_are_told_apart(
    start: Starter, faulty: FaultyUpstream
) -> None:
    running = await start(upstream=faulty.url, dialect="messages", mode="off")
    bodies = {"a": request(0), "b": request(0, system="You look.", tools=[])}
    bodies["b"]["messages"][0]["content"] = "Look."
    for at in range(4):
        for name, body in bodies.items():
            found = await prefix(running, copy.deepcopy(body), "one session")
            assert found["how"] == ("kept" if at else "new")
            body["messages"] += [{"role": "assistant", "content": name}, turn(at)[0]][:1]
            body["messages"].append({"role": "user", "content": f"{name} {at}"})


async def test_other_keys_share_nothing(start: Starter, faulty: FaultyUpstream) -> None:
    running = await start(upstream=faulty.url, dialect="messages", mode="off")
    for key in ("one", "two"):
        answer = await running.post(
            "/v1/messages", request(1), {"x-api-key": key, "anthropic-version": "2023-06-01"}
        )
        assert told(answer.header("x-reflexarc-prefix")) == {"how": "new"}


async def test_converted_and_pooled_routes_are_watched_too(start: Starter, two: Two) -> None:
    pool = pool_of(two, ("chat", "messages"))
    environment = {"KEY_a": "one", "KEY_b": "two"}
    route = Route(upstream="models", mode="off")
    running = await start(routes=(route,), pool=pool, environment=environment)
    body = request(1, model="agent")
    assert await prefix(running, body, "s") == {"how": "new"}
    assert (await prefix(running, request(2, model="agent"), "s"))["how"] == "kept"
    two[0].usual = "error=503"  # from now on the other one answers
    moved = await prefix(running, request(3, model="agent"), "s")
    assert (moved["how"], moved["cause"]) == ("break", "deployment")
    lost = int(moved["lost_tokens"])
    assert lost > 0
    assert float(moved["usd"]) == 0  # its price for what is cached is the same
    assert (await prefix(running, request(4, model="agent"), "s"))["how"] == "kept"


async def test_a_body_only_some_read_passes_without_a_word(
    start: Starter, faulty: FaultyUpstream
) -> None:
    running = await start(upstream=faulty.url, dialect="messages", mode="off")
    twice = b'{"model":"faulty-1","model":"faulty-1","max_tokens":5,"messages":[]}'
    answer = await running.post("/v1/messages", twice)
    assert answer.header("x-reflexarc-prefix") is None


@pytest.mark.parametrize("kind", ["responses", "gemini"])
async def test_every_dialect_is_watched(start: Starter, faulty: FaultyUpstream, kind: str) -> None:
    upstream = faulty.gemini_url if kind == "gemini" else faulty.url
    running = await start(upstream=upstream, dialect=kind, mode="off")

    def body(clock: str) -> tuple[str, Body]:
        if kind == "gemini":
            said = {"parts": [{"text": system(clock)}]}
            contents = [{"role": "user", "parts": [{"text": "go"}]}]
            path = "/v1beta/models/faulty-1:generateContent"
            return path, {"systemInstruction": said, "contents": contents}
        whole = {"model": "faulty-1", "instructions": system(clock), "store": False}
        return "/v1/responses", {**whole, "input": [{"role": "user", "content": "go"}]}

    found: list[dict[str, str]] = []
    for clock in ("09:59:01", "09:59:01", "09:59:08"):
        path, asked = body(clock)
        answer = await ask(running, asked, "s", path)
        found.append(told(answer.header("x-reflexarc-prefix")))
    assert [one["how"] for one in found] == ["new", "kept", "break"]
    assert found[2]["cause"] == "clock"


@pytest.mark.parametrize(
    "options", [{}, {"repair": Repair("stable", "move")}, {"prune": PruneConfig()}]
)
async def test_a_name_that_is_none_is_for_the_upstream_to_judge(
    start: Starter, faulty: FaultyUpstream, options: dict[str, Any]
) -> None:
    running = await start(upstream=faulty.url, mode="off", **options)
    for name in (b'{"a":1,"a":2}', b"[1e999]", b"null", b"5"):
        body = b'{"messages":[{"role":"user","content":"a"}],"prompt_cache_key":%s}' % name
        answer = await running.post("/v1/chat/completions", body)
        assert answer.header("request-id") == "req_faulty"  # the upstream's own words
        assert faulty.received[-1].body == body


async def test_null_names_nothing_that_is_elsewhere(start: Starter, faulty: FaultyUpstream) -> None:
    running = await start(upstream=faulty.url, dialect="responses", mode="off")
    items = [{"role": "user", "content": "Find the fault."}]
    body = {"model": "m", "input": items, "previous_response_id": None, "conversation": None}
    for how in ("new", "kept"):
        answer = await ask(running, body, path="/v1/responses")
        assert told(answer.header("x-reflexarc-prefix"))["how"] == how
    answer = await ask(running, {**body, "conversation": "c"}, path="/v1/responses")
    assert answer.header("x-reflexarc-prefix") is None
