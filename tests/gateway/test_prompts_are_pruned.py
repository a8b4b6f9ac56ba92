"""Prompts of routes that ask for it are pruned on their way to System 2, and nothing else is: not
what System 1 reads, not another route's, not what a client asks to be left alone."""

import gzip
import itertools
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from reflexarc.gateway.config import Price
from reflexarc.gateway.config_prune import PruneConfig
from reflexarc.gateway.config_reading import config_of
from reflexarc.gateway.pruning_learned import Learned
from reflexarc.sim.faulty import FaultyUpstream
from reflexarc.steps.errors import ConfigError
from reflexarc.store.kept import PURGED
from tests.context.talking import Given, body_of, conversation

from .conftest import Running, Starter
from .pools import Two, pooled
from .upstream import Upstream

SAME = Price(input=1.0, output=1.0)
"""Nothing is cheaper from a cache: a cut pays at once."""
PRUNE = PruneConfig(keep_turns=1)
PATHS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
    "gemini": "/v1beta/models/m:generateContent",
}
OLD, NEW = "old text " * 400, "new text " * 400


def read(identity: str, text: str) -> Given:
    return identity, "read_file", {"path": "a.py"}, text


def request(name: str = "chat", *more: Given) -> bytes:
    """Reads a file twice, then does something else."""
    calls = (read("c1", OLD), read("c2", NEW), ("c3", "look", {}, "fine"), *more)
    items = _plain(conversation(name, *calls))
    return body_of(name, items, **({"max_tokens": 100} if name == "messages" else {}))


def _plain(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without the thinking, which only who signed it takes back."""
    kept = [item for item in items if item.get("type") != "reasoning"]
    for item in kept:
        for part in item.get("parts", ()):
            part.pop("thoughtSignature", None)
        if isinstance(content := item.get("content"), list):
            item["content"] = [one for one in content if one.get("type") != "thinking"]
    return kept


@pytest.fixture
async def faulty() -> AsyncIterator[FaultyUpstream]:
    running = FaultyUpstream()
    await running.start()
    yield running
    await running.stop()


async def pruning(start: Starter, **route: Any) -> Running:
    return await start(mode=route.pop("mode", "off"), prune=PRUNE, price=SAME, **route)


def identities(body: bytes) -> Iterator[str]:
    for part in body.decode().split("Kept as ")[1:]:
        yield part.split(".]")[0]


async def test_what_is_out_of_date_is_left_out_and_can_be_opened(
    start: Starter, upstream: Upstream
) -> None:
    running = await pruning(start)
    answer = await running.post(PATHS["chat"], request(), {"authorization": "Bearer one"})
    assert answer.status == 200
    sent = upstream.received[-1].body
    assert OLD.encode() not in sent
    assert NEW.encode() in sent
    told = answer.header("x-reflexarc-pruned") or ""
    assert told.startswith("cuts=1; new=1; saved_tokens=")
    [identity] = identities(sent)
    opened = await running.get(f"/api/v1/cuts/{identity}", {"authorization": "Bearer one"})
    assert (opened.status, opened.json) == (200, {"id": identity, "content": OLD})
    for key, wanted in (("Bearer two", identity), ("Bearer one", "cut_0000")):
        refused = await running.get(f"/api/v1/cuts/{wanted}", {"authorization": key})
        assert refused.status == 404
        assert refused.json["error"]["code"] == "not_found"


async def test_later_requests_begin_as_the_one_before(start: Starter, upstream: Upstream) -> None:
    running = await pruning(start)
    sent: list[bytes] = []
    more: list[Given] = []
    for at in range(4):
        answer = await running.post(PATHS["chat"], request("chat", *more))
        assert (answer.header("x-reflexarc-pruned") or "").startswith(f"cuts=1; new={int(not at)};")
        sent.append(upstream.received[-1].body)
        more.append((f"m{at}", "look", {"n": at}, f"{at}"))
    for before, after in itertools.pairwise(sent):
        assert after.startswith(before[: before.rindex(b"]")])
    counted = await running.metrics()
    assert counted['reflexarc_pruned_cuts_total{route="/v1"}'] == 1
    assert counted['reflexarc_pruned_tokens_total{route="/v1"}'] > 4 * 500


@pytest.mark.parametrize("client", PATHS)
async def test_clients_of_any_dialect_are_pruned_before_another_upstream(
    start: Starter, faulty: FaultyUpstream, client: str
) -> None:
    running = await pruning(start, upstream=faulty.url, dialect="chat")
    answer = await running.post(PATHS[client], request(client))
    assert answer.status == 200, answer.body
    assert not faulty.refusals
    sent = faulty.received[-1].body
    assert OLD.encode() not in sent
    assert NEW.encode() in sent
    assert len(list(identities(sent))) == 1


@pytest.mark.parametrize("client", ["chat", "responses", "messages"])
async def test_a_strict_upstream_of_the_same_dialect_takes_it(
    start: Starter, faulty: FaultyUpstream, client: str
) -> None:
    running = await pruning(start, upstream=faulty.url, dialect=client)
    answer = await running.post(PATHS[client], request(client), {"anthropic-version": "2023-06-01"})
    assert answer.status == 200, answer.body
    assert OLD.encode() not in faulty.received[-1].body


async def test_routes_of_several_deployments_prune_too(start: Starter, two: Two) -> None:
    running = await pooled(start, two, route={"prune": PRUNE})
    body = request().replace(b'"m"', b'"agent"')
    answer = await running.post(PATHS["chat"], body)
    assert answer.status == 200, answer.body
    assert answer.header("x-reflexarc-pruned") is not None
    assert OLD.encode() not in two[0].received[-1].body


async def test_other_routes_pass_every_byte(start: Starter, upstream: Upstream) -> None:
    running = await start(mode="off", price=SAME)
    answer = await running.post(PATHS["chat"], request())
    assert upstream.received[-1].body == request()
    assert answer.header("x-reflexarc-pruned") is None


async def test_clients_may_ask_to_be_left_alone(start: Starter, upstream: Upstream) -> None:
    running = await pruning(start)
    await running.post(PATHS["chat"], request(), {"x-reflexarc": "off"})
    assert upstream.received[-1].body == request()
    packed = gzip.compress(request())
    await running.post(PATHS["chat"], packed, {"content-encoding": "gzip"})
    assert upstream.received[-1].body == packed


async def test_what_a_dear_cache_holds_is_left(start: Starter, upstream: Upstream) -> None:
    dear = Price(input=3.0, output=15.0, cached=0.3, cache_write=3.75)
    running = await start(mode="off", prune=PRUNE, price=dear)
    looks = [(f"d{at}", "look", {"n": at}, f"{at} " * 20_000) for at in range(3)]
    items = conversation("chat", read("c1", OLD), *looks, read("c2", NEW), ("c3", "look", {}, "x"))
    await running.post(PATHS["chat"], body_of("chat", items))
    assert upstream.received[-1].body == body_of("chat", items)


async def test_system_1_reads_what_its_client_sent(
    start: Starter, upstream: Upstream, reflex_path: Path, desk: Any
) -> None:
    running = await pruning(start, mode="live", reflex=str(reflex_path))
    body = request().replace(b'"model": "m"', b'"model": "m", "tools": %b' % _tools(desk))
    seen: list[bytes] = []
    real = running.gateway.system1.ask

    def ask(request: Any, body: bytes, grown: Any = None) -> Any:
        seen.append(body)
        return real(request, body, grown)

    running.gateway.system1.ask = ask  # type: ignore[method-assign] - it looks on
    answer = await running.post(PATHS["chat"], body)
    assert answer.status == 200
    assert answer.decision.startswith("live; escalate; ")
    assert seen == [body]
    assert OLD.encode() not in upstream.received[-1].body


def _tools(desk: Any) -> bytes:
    return json.dumps(list(desk.tools)).encode()


async def test_a_purge_forgets_what_was_kept(start: Starter, upstream: Upstream) -> None:
    running = await pruning(start)
    await running.post(PATHS["chat"], request())
    [identity] = identities(upstream.received[-1].body)
    assert (await running.get(f"/api/v1/cuts/{identity}")).status == 200
    directory = running.gateway.state.directory
    assert directory is not None
    (directory / PURGED).touch()
    assert (await running.get(f"/api/v1/cuts/{identity}")).status == 404


def test_a_table_of_a_route_turns_it_on() -> None:
    text = '[[route]]\nupstream = "http://127.0.0.1:1/v1"\n'
    assert config_of(text, "f").route[0].prune is None
    assert config_of(text + "[route.prune]\n", "f").route[0].prune == PruneConfig()
    found = config_of(text + "[route.prune]\nkeep_turns = 5\nimage_tokens = 0\n", "f")
    assert found.route[0].prune == PruneConfig(keep_turns=5, image_tokens=0)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("keep_turn = 3", "did you mean keep_turns"),
        ("keep_turns = 0", "keep_turns must be from 1"),
        ("margin = -1.0", "margin must be from 0"),
        ("image_bytes = -1", "image_bytes must be from 0"),
        ("expected_turns = -1.0", "expected_turns must be from 0"),
        ('keep_turns = "3"', "Expected `int`"),
    ],
)
def test_what_is_not_meant_is_refused(line: str, said: str) -> None:
    text = f'[[route]]\nupstream = "http://127.0.0.1:1/v1"\n[route.prune]\n{line}\n'
    with pytest.raises(ConfigError, match=said):
        config_of(text, "f")


def test_what_is_learned_of_sessions_counts_from_the_next_start(tmp_path: Path) -> None:
    first = Learned(tmp_path)
    for at in range(3000):
        first.ended("/v1", at)
        first.gap("/v1", at / 8)
    first.ended("/other", 7)
    assert first.lengths("/v1") == []
    first.keep()
    second = Learned(tmp_path)
    assert second.lengths("/v1") == list(range(1000, 3000))
    assert second.gaps_s("/v1")[-1] == 2999 / 8
    second.ended("/v1", 5)
    second.keep()
    third = Learned(tmp_path)
    assert third.lengths("/v1")[-2:] == [2999, 5]
    assert third.lengths("/other") == [7]


def test_a_file_that_cannot_be_read_or_written_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "pruning.json").write_text('{"/v1": 3}')
    assert Learned(tmp_path).lengths("/v1") == []
    nowhere = Learned(tmp_path / "absent")
    nowhere.ended("/v1", 3)
    nowhere.keep()
    assert Learned(None).gaps_s("/v1") == []
