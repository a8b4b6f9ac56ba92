"""Promotion, audits that demote, changes, rollback: a real gateway and its processes."""

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from reflexarc.gateway.config import Mode, Route
from reflexarc.gateway.frames import Decided
from reflexarc.gateway.standings import StandingDesk
from reflexarc.lifecycle.by_hand import demote, promote, roll_back
from reflexarc.lifecycle.oversight import MAX_UNWRITTEN
from reflexarc.lifecycle.standing import ReflexState, Version, demoted, promoted
from reflexarc.lifecycle.standing_file import FILE, change, digest_of, name_of, read_standings
from reflexarc.reflex import Reflex
from reflexarc.reflex.decision import Guarantee
from reflexarc.steps.errors import ConfigError
from reflexarc.store.store import Store
from reflexarc.store.trail import links


@pytest.fixture
def artifact(reflex_path: Path, tmp_path: Path) -> Path:
    """A copy that a test may replace."""
    path = tmp_path / "agent.reflex"
    path.write_bytes(reflex_path.read_bytes())
    return path


_WRONG = 'reflexarc_audits_total{outcome="disagree",route="/v1",tool="get_order"}'


async def _until(true: Callable[[], bool], within_s: float = 20.0) -> float:
    began_s = time.monotonic()
    while not true():
        assert time.monotonic() < began_s + within_s, "it never came to be"
        await asyncio.sleep(0.02)
    return time.monotonic() - began_s


async def _decides(gateway: Any, request: Any, wanted: str, within_s: float = 20.0) -> None:
    began_s = time.monotonic()
    while not (await gateway.chat(request)).decision.startswith(wanted):
        assert time.monotonic() < began_s + within_s, f"it never said {wanted}"
        await asyncio.sleep(0.02)


def _trail(directory: Path, what: str) -> list[dict[str, Any]]:
    store = Store.open(directory / "reflexarc.db")
    with store.reading() as connection:
        found = [one.evidence | {"who": one.who} for one in links(connection, what=what)]
    store.close()
    return found


def _state(directory: Path, artifact: Path) -> ReflexState:
    state = read_standings(directory).of(name_of(artifact))
    assert state is not None
    return state


async def test_a_managed_reflex_acts_once_promoted_and_until_demoted(
    start: Any, desk: Any, artifact: Path, state_dir: Path, upstream: Any
) -> None:
    gateway = await start(reflex=str(artifact), mode="managed")
    request = desk.request(7000, 4)
    assert (await gateway.chat(request)).decision == "managed; escalate; not_promoted"
    await gateway.eventually(
        lambda counters: any(name.startswith("reflexarc_shadow_total{") for name in counters)
    )
    assert len(upstream.received) == 1
    promote(state_dir, artifact, "reads", "ann", "", time.time())
    await _decides(gateway, request, "managed; act; get_order")
    demote(state_dir, artifact, "reads:get_order", "ann", "odd", time.time())
    await _decides(gateway, request, "managed; escalate; demoted")
    assert (await gateway.chat(desk.request(7000, 2))).decision.startswith("managed; act; find")
    demote(state_dir, artifact, "all", "ann", "", time.time())
    await _decides(gateway, desk.request(7000, 2), "managed; escalate; demoted")


async def test_when_system_2_does_otherwise_audits_demote(
    start: Any, desk: Any, artifact: Path, state_dir: Path, upstream: Any, http: Any
) -> None:
    upstream.answer = http.completion(None, ("find_customer", {"email": "x"}))
    gateway = await start(reflex=str(artifact), mode="live", audit="adaptive")
    acts = 0
    for task in range(100):
        answer = await gateway.chat(desk.request(7100 + task, 4))
        if answer.decision == "live; escalate; demoted":
            break
        assert answer.decision.startswith("live; act; get_order")
        assert "audit=pending" in (answer.header("x-reflexarc-cost") or "")
        acts += 1
        await gateway.eventually(lambda counters, acts=acts: counters.get(_WRONG) == acts)
    assert 2 <= acts <= 12
    await _until(lambda: _state(state_dir, artifact).current.scopes != ())
    scope = _state(state_dir, artifact).current.scopes[0]
    assert (scope.word, scope.by) == ("demoted", "audits")
    await _until(lambda: bool(_trail(state_dir, "demote")))
    assert _trail(state_dir, "demote")[0]["who"] == "audits"
    assert (await gateway.metrics())["reflexarc_demotions"] == 1
    # It holds over a restart, for a route that says live too, until somebody promotes it.
    again = await start(reflex=str(artifact), mode="live")
    assert (await again.chat(desk.request(7100, 4))).decision == "live; escalate; demoted"
    promote(state_dir, artifact, "reads", "ann", "looked into it", time.time())
    await _decides(again, desk.request(7100, 4), "live; act")


async def test_a_prompt_that_changed_for_good_demotes_without_evidence(
    start: Any, desk: Any, artifact: Path, state_dir: Path
) -> None:
    gateway = await start(reflex=str(artifact), mode="live")
    assert (await gateway.chat(desk.request(7200, 4))).decision.startswith("live; act")

    def changed(task: int) -> Any:
        request = desk.request(task, 4)
        request["messages"][0]["content"] = "You help with orders, kindly."
        return request

    for task in (7201, 7202):
        assert (await gateway.chat(changed(task))).decision == "live; escalate; prompt_changed"
    assert (await gateway.chat(desk.request(7200, 4))).decision.startswith("live; act")
    for task in (7203, 7203, 7204, 7205):
        assert (await gateway.chat(changed(task))).decision == "live; escalate; prompt_changed"
    assert (await gateway.chat(desk.request(7200, 4))).decision == "live; escalate; demoted"
    await _until(lambda: _state(state_dir, artifact).current.scopes != ())
    scope = _state(state_dir, artifact).current.scopes[0]
    assert (scope.by, scope.why) == ("identity", "prompt_changed in 3 sessions in a row")


async def test_a_rollback_puts_the_version_before_back_with_its_standing(
    start: Any, desk: Any, artifact: Path, state_dir: Path
) -> None:
    gateway = await start(reflex=str(artifact), mode="managed")
    promote(state_dir, artifact, "reads", "ann", "", time.time())
    request = desk.request(7300, 4)
    await _decides(gateway, request, "managed; act")
    first = (await gateway.chat(request)).json["id"]  # names the version, too
    learned = Reflex.load(artifact)
    learned.card = msgspec.structs.replace(learned.card, items=learned.card.items + 1)
    learned.save(artifact)
    second = digest_of(artifact.read_bytes())
    await _decides(gateway, request, "managed; escalate; not_promoted")
    promote(state_dir, artifact, "reads", "ann", "", time.time())
    await _decides(gateway, request, "managed; act")
    assert (await gateway.chat(request)).json["id"] != first
    desk_of = gateway.gateway.acting.standings
    await _until(lambda: any("@" in name for name in gateway.gateway.system1.digests))
    began_s = time.monotonic()
    changed = roll_back(state_dir, artifact, "bob", "worse", time.time())
    assert changed.was is not None
    assert changed.was.in_use == second
    while True:
        answer = await gateway.chat(request)
        if answer.decision.startswith("managed; act") and answer.json["id"] == first:
            break
        assert time.monotonic() < began_s + 10
    state = _state(state_dir, artifact)
    assert digest_of(artifact.read_bytes()) == state.in_use != second
    left = state.version(second)
    assert left is not None
    assert {one.word for one in left.scopes} == {"demoted"}
    assert desk_of.shown()[0]["in_use"] == state.in_use
    with pytest.raises(ConfigError, match="nothing to go back to"):
        roll_back(state_dir, artifact, "bob", "", time.time())


async def test_what_was_replaced_while_no_gateway_ran_is_held_ready_too(
    start: Any, artifact: Path, state_dir: Path
) -> None:
    promote(state_dir, artifact, "reads", "ann", "", time.time())
    learned = Reflex.load(artifact)
    first = digest_of(artifact.read_bytes())
    learned.card = msgspec.structs.replace(learned.card, items=learned.card.items + 1)
    learned.save(artifact)
    gateway = await start(reflex=str(artifact), mode="managed")
    await _until(lambda: f"/v1@{first}" in gateway.gateway.system1.digests)


async def test_audits_nobody_answers_stop_a_tool_until_one_is_answered(
    start: Any, desk: Any, artifact: Path, upstream: Any, http: Any
) -> None:
    gateway = await start(reflex=str(artifact), mode="live", audit="adaptive")
    upstream.answer = http.answer(b"{}", status="500 No")
    failed = 'reflexarc_audits_total{outcome="upstream_failed",route="/v1",tool="get_order"}'
    for task in range(10):
        answer = await gateway.chat(desk.request(7400 + task, 4))
        assert answer.decision.startswith("live; act")
        await gateway.eventually(lambda counters, task=task: counters.get(failed) == task + 1)
    answer = await gateway.chat(desk.request(7410, 4))
    assert answer.decision == "live; escalate; audits_unanswered"
    right = desk.next_call(7411, 4)
    upstream.answer = http.completion(None, (right.name, right.arguments))
    await gateway.chat(desk.request(7411, 4))
    await _decides(gateway, desk.request(7412, 4), "live; act")


async def test_a_file_nobody_can_read_stops_everything(
    start: Any, desk: Any, artifact: Path, state_dir: Path
) -> None:
    gateway = await start(reflex=str(artifact), mode="live")
    await _decides(gateway, desk.request(7500, 4), "live; act")
    (state_dir / FILE).write_text("{")
    await _decides(gateway, desk.request(7500, 4), "live; escalate; off:standing")
    said = json.loads((await gateway.get("/admin/state")).body)
    assert said["routes"][0]["may_not_act"] == "off:standing"


def _desk(directory: Path, version: Version, mode: Mode = "managed") -> tuple[StandingDesk, Route]:
    name = name_of(directory / "x.reflex")
    change(directory, name, lambda _: ReflexState(name, version.digest, (version,)))
    route = Route("http://s/v1", reflex=name, mode=mode, writes=("refund",))
    standings = StandingDesk(directory, [route], lambda: 0.0, lambda _: None)
    standings.look()
    return standings, route


_READ = Decided(
    1, "act", "certified", "find", 0.99, 0.05, reflex="a" * 32, audit=True,
    guarantee=Guarantee(0.05, 0.9, "reads", 100, 0, "model-based"),
)  # fmt: skip


async def test_a_file_that_is_taken_away_takes_promotions_back_and_no_demotion(
    tmp_path: Path,
) -> None:
    version = promoted(Version("a" * 32, "file", 0.0), "reads", "ann", 1.0)
    version = demoted(promoted(version, "writes:refund", "ann", 1.0), "reads:get", "ann", 2.0, "")
    standings, route = _desk(tmp_path, version)
    assert standings.why_not(route, _READ) is None
    assert standings.writes(route) == ("refund",)
    (tmp_path / FILE).unlink()
    standings.look()
    assert (standings.why_not(route, _READ), standings.writes(route)) == ("not_promoted", ())
    get = msgspec.structs.replace(_READ, tool="get")
    assert standings.why_not(route, get) == "demoted"
    # Nor does what is gathered here write them back.
    standings.acted(route, _READ, 1.0)
    await standings.close()
    state = read_standings(tmp_path).of(name_of(tmp_path / "x.reflex"))
    assert state is not None
    assert {one.word for one in state.current.scopes} == {"demoted"}


def test_a_directory_that_could_not_be_looked_at_for_a_while_is_no_fault_for_ever(
    tmp_path: Path,
) -> None:
    here, away = tmp_path / "state", tmp_path / "away"
    standings, route = _desk(here, promoted(Version("a" * 32, "file", 0.0), "reads", "ann", 1.0))
    here.rename(away)
    here.write_text("")
    standings.look()
    assert standings.why_not(route, _READ) == "off:standing"
    here.unlink()
    away.rename(here)
    standings.look()
    assert standings.why_not(route, _READ) is None


async def test_an_audit_that_disagrees_is_told_the_other_gateways_at_once(tmp_path: Path) -> None:
    version = promoted(Version("a" * 32, "file", 0.0), "reads", "ann", 1.0)
    standings, route = _desk(tmp_path, version)
    other = StandingDesk(tmp_path, [route], lambda: 0.0, lambda _: None)
    other.look()
    for number, outcome in enumerate(["agree"] * 50 + ["disagree"]):
        standings.acted(route, msgspec.structs.replace(_READ, id=number), 1.0)
        standings.audited("/v1", number, outcome)
        if number == 0:
            standings.look()  # writes, and the clock stands still from then on
            await standings.close()
    standings.look()
    written = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert len(written) == 1
    await asyncio.wait(written)
    other.look()
    assert other.share(route, _READ) == 1.0


async def test_what_cannot_be_written_down_stops_everything_before_it_is_too_much(
    tmp_path: Path,
) -> None:
    version = promoted(Version("a" * 32, "file", 0.0), "reads", "ann", 1.0)
    standings, route = _desk(tmp_path, version)
    assert standings.why_none(route) is None
    for _ in range(MAX_UNWRITTEN):
        standings.acted(route, _READ, 1.0)
    assert standings.why_none(route) == "off:standing"
    await standings.close()
    assert standings.why_none(route) is None


@pytest.mark.parametrize(
    ("policy", "scope", "approved", "wanted"),
    [
        ((), "writes:refund", True, "writes:no_policy"),
        (("refund",), "reads", True, "writes:no_certificate"),
        (("refund",), "recalled writes", True, "writes:no_certificate"),
        (("refund",), "recalled writes:refund", True, None),
        (("refund",), "writes:refund", False, "writes:no_approver"),
        (("refund",), "writes:refund", True, None),
    ],
)
def test_a_write_acts_with_policy_certificate_and_approver_alone(
    tmp_path: Path, policy: tuple[str, ...], scope: str, approved: bool, wanted: str | None
) -> None:
    digest = "a" * 32
    version = promoted(Version(digest, "file", 0.0), "reads", "ann", 1.0)
    if approved:
        version = promoted(version, "writes:refund", "ann", 1.0)
    name = name_of(tmp_path / "x.reflex")
    change(tmp_path, name, lambda _: ReflexState(name, digest, (version,)))
    route = Route("http://s/v1", reflex=name, mode="live", writes=policy)
    standings = StandingDesk(tmp_path, [route], time.monotonic, lambda _: None)
    standings.look()
    write = Decided(
        1, "act", "certified", "refund", 0.99, 0.05, reflex=digest, writes=True,
        guarantee=Guarantee(0.05, 0.9, scope, 100, 0, "model-based"),
    )  # fmt: skip
    assert standings.why_not(route, write) == wanted
    assert standings.writes(route) == (("refund",) if policy and approved else ())
