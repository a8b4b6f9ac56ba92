"""Off is off at once: by file, by request, by header, by itself; and it stays off."""

import asyncio
import json
import stat
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from reflexarc.gateway.health import Health
from reflexarc.gateway.switch import Switch
from reflexarc.lifecycle.off import FILE, Off, entry_of, read_off, switch_off, switch_on
from reflexarc.steps.errors import ConfigError
from reflexarc.store.place import locked


def _entry(what: Any = "all", name: str = "") -> Any:
    return entry_of(what, name, 0.0, "a test", "why not")


async def _acts(gateway: Any, desk: Any, task: int) -> bool:
    return "; act; " in (await gateway.chat(desk.request(task, 4))).decision


async def _eventually_label(gateway: Any, desk: Any, wanted: str) -> None:
    seen = ""
    for attempt in range(100):
        seen = (await gateway.chat(desk.request(6000 + attempt, 4))).decision
        if seen.startswith(wanted):
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"it stayed {seen!r}")


async def test_the_file_switches_off_and_on(
    start: Any, desk: Any, reflex_path: Any, state_dir: Path
) -> None:
    gateway = await start(reflex=str(reflex_path), mode="live")
    assert await _acts(gateway, desk, 6100)
    switch_off(state_dir, _entry())
    await _eventually_label(gateway, desk, "live; escalate; off:switch")
    switch_on(state_dir, "all", "", 0.0)
    await _eventually_label(gateway, desk, "live; act;")


async def test_what_was_off_is_off_after_a_restart(
    start: Any, desk: Any, reflex_path: Any, state_dir: Path
) -> None:
    switch_off(state_dir, _entry())
    gateway = await start(reflex=str(reflex_path), mode="live")
    answer = await gateway.chat(desk.request(6200, 4))
    assert answer.decision == "live; escalate; off:switch"


async def test_a_request_switches_off_at_once(
    start: Any, desk: Any, reflex_path: Any, state_dir: Path
) -> None:
    gateway = await start(reflex=str(reflex_path), mode="live")
    assert await _acts(gateway, desk, 6300)
    said = await gateway.post("/admin/off", {"why": "a drill", "who": "me"})
    assert said.status == 200
    assert said.json["written"]
    assert not await _acts(gateway, desk, 6301)
    (entry,) = read_off(state_dir, 0.0).entries
    assert (entry.what, entry.who, entry.why) == ("all", "me", "a drill")


async def test_one_tool_or_one_reflex_can_be_off(start: Any, desk: Any, reflex_path: Any) -> None:
    gateway = await start(reflex=str(reflex_path), mode="live")
    tool = desk.next_call(6400, 4).name
    await gateway.post("/admin/off", {"tool": tool})
    assert (await gateway.chat(desk.request(6400, 4))).decision == "live; escalate; off:tool"
    assert await _acts(gateway, desk, 6401) is False
    other = await gateway.chat(desk.request(6402, 2))
    assert other.decision.startswith("live; act; find_customer")
    await gateway.post("/admin/off", {"reflex": reflex_path.name})
    assert (await gateway.chat(desk.request(6403, 2))).decision == "live; escalate; off:reflex"


async def test_on_needs_the_token_and_off_does_not(
    start: Any, desk: Any, reflex_path: Any, state_dir: Path
) -> None:
    gateway = await start(reflex=str(reflex_path), mode="live")
    await gateway.post("/admin/off", b"")
    assert (await gateway.post("/admin/on", b"")).status == 401
    wrong = {"authorization": "Bearer 00"}
    assert (await gateway.post("/admin/on", b"", wrong)).status == 401
    assert not await _acts(gateway, desk, 6500)
    token = {"authorization": f"Bearer {(state_dir / 'admin.token').read_text().strip()}"}
    assert (await gateway.post("/admin/on", b"", token)).status == 200
    assert await _acts(gateway, desk, 6501)


@pytest.mark.parametrize(
    "header", ["x-forwarded-for", "origin", "forwarded", "via", "x-real-ip", "host"]
)
async def test_who_only_passes_through_this_machine_needs_the_token_to_switch_off(
    start: Any, header: str
) -> None:
    gateway = await start(mode="shadow")
    assert (await gateway.post("/admin/off", b"", {header: "elsewhere"})).status == 401


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"[]", 422),
        (b'{"tol": "x"}', 422),
        (b'{"tool": ""}', 422),
        (b'{"tool": 1}', 422),
        (b'{"tool": "a", "reflex": "b"}', 422),
        (b'{"why": "' + b"x" * 600 + b'"}', 409),
        (b" " * 20_000, 400),
    ],
)
async def test_an_admin_request_that_is_not_understood_changes_nothing(
    start: Any, body: bytes, status: int, state_dir: Path
) -> None:
    gateway = await start(mode="shadow")
    assert (await gateway.post("/admin/off", body)).status == status
    assert read_off(state_dir, 0.0).entries == ()
    assert (await gateway.get("/admin/off")).status == 405


async def test_a_header_switches_one_request_off(
    start: Any, upstream: Any, desk: Any, reflex_path: Any
) -> None:
    gateway = await start(reflex=str(reflex_path), mode="live")
    request = desk.request(6600, 4)
    answer = await gateway.chat(request, {"x-reflexarc": "off"})
    assert answer.decision == "live; escalate; off:header"
    assert upstream.received[0].header(b"x-reflexarc") is None
    assert (await gateway.chat(request, {"x-reflexarc": "of"})).status == 400
    assert (await gateway.chat(request)).decision.startswith("live; act")


async def test_the_native_endpoint_is_off_too(start: Any, desk: Any, reflex_path: Any) -> None:
    gateway = await start(reflex=str(reflex_path), mode="live")
    request = desk.request(6700, 4)
    body = {"messages": request["messages"], "tools": request["tools"]}
    assert (await gateway.post("/api/v1/reflex", body)).json["decision"] == "act"
    tool = desk.next_call(6700, 4).name
    await gateway.post("/admin/off", {"tool": tool})
    answer = (await gateway.post("/api/v1/reflex", body)).json
    assert (answer["decision"], answer["reason"], answer["calls"]) == ("escalate", "off:tool", [])
    await gateway.post("/admin/off", b"")
    answer = (await gateway.post("/api/v1/reflex", body)).json
    assert (answer["decision"], answer["reason"]) == ("escalate", "off:switch")


async def test_switched_off_it_still_looks_on(
    start: Any, upstream: Any, desk: Any, reflex_path: Any, http: Any
) -> None:
    gateway = await start(reflex=str(reflex_path), mode="live")
    await gateway.post("/admin/off", b"")
    call = desk.next_call(6800, 4)
    upstream.answer = http.completion(None, (call.name, call.arguments))
    await gateway.chat(desk.request(6800, 4))
    found = f'reflexarc_shadow_total{{outcome="agree",route="/v1",tool="{call.name}"}}'
    await gateway.eventually(lambda counters: counters.get(found) == 1)


def test_a_file_that_cannot_be_read_means_everything_is_off(tmp_path: Path) -> None:
    for content in (b"", b"{", b'{"entries": [{"what": "tol"}]}', b'{"entrys": []}'):
        (tmp_path / FILE).write_bytes(content)
        assert read_off(tmp_path, 0.0).reason("/v1", None) == "off:switch"
    switch = Switch(tmp_path)
    switch.look()
    assert switch.off.reason("/v1", None) == "off:switch"


async def test_what_cannot_be_written_down_is_off_in_this_process(tmp_path: Path) -> None:
    (tmp_path / ".off.json.lock").mkdir()  # so that it cannot be locked, nor written
    switch = Switch(tmp_path)
    assert not await switch.turn_off(_entry("tool", "get_order"))
    switch.look()
    assert switch.off.reason("/v1", None, "get_order") == "off:tool"
    assert switch.off.reason("/v1", None, "find_customer") is None


def test_a_file_that_was_there_and_is_gone_means_everything_is_off(tmp_path: Path) -> None:
    switch = Switch(tmp_path)
    switch.look()
    assert switch.off.reason("/v1", None) is None
    switch_off(tmp_path, _entry("tool", "get_order"))
    switch.look()
    (tmp_path / FILE).unlink()
    switch.look()
    assert switch.off.reason("/v1", None) == "off:switch"
    switch_on(tmp_path, "all", "", 0.0, "me")
    switch.look()
    assert switch.off.reason("/v1", None, "get_order") is None


def test_everything_can_always_be_switched_off(tmp_path: Path) -> None:
    full = Off(tuple(_entry("tool", f"tool{number}") for number in range(1000)))
    with pytest.raises(ConfigError):
        full.with_off(_entry("tool", "one more"))
    (tmp_path / FILE).write_bytes(msgspec.json.encode(full))
    switch_off(tmp_path, _entry())
    assert any(entry.what == "all" for entry in read_off(tmp_path, 0.0).entries)


def test_a_lock_that_is_held_is_told_and_not_waited_for_for_good(tmp_path: Path) -> None:
    with locked(tmp_path, FILE), pytest.raises(OSError, match="lock"):
        switch_off(tmp_path, _entry())


async def test_off_is_looked_at_while_an_artifact_is_loaded(
    start: Any, desk: Any, reflex_path: Any, state_dir: Path, tmp_path: Path
) -> None:
    path = tmp_path / "agent.reflex"
    path.write_bytes(reflex_path.read_bytes())
    gateway = await start(reflex=str(path), mode="live")

    async def slowly() -> bool:
        await asyncio.sleep(30)
        return True

    gateway.gateway.system1.reload = slowly
    path.write_bytes(reflex_path.read_bytes())
    await asyncio.sleep(1.2)
    switch_off(state_dir, _entry())
    await asyncio.sleep(0.5)
    assert not await _acts(gateway, desk, 6900)


async def test_the_native_endpoint_hears_the_header(
    start: Any, desk: Any, reflex_path: Any
) -> None:
    gateway = await start(reflex=str(reflex_path), mode="live")
    request = desk.request(6710, 4)
    body = {"messages": request["messages"], "tools": request["tools"]}
    answer = (await gateway.post("/api/v1/reflex", body, {"x-reflexarc": "off"})).json
    assert (answer["decision"], answer["reason"]) == ("escalate", "off:header")
    assert (await gateway.post("/api/v1/reflex", body, {"x-reflexarc": "of"})).status == 400


def test_the_file_is_for_its_owner_alone_and_loses_nothing(tmp_path: Path) -> None:
    for number in range(20):
        switch_off(tmp_path, _entry("tool", f"tool{number}"))
    assert len(read_off(tmp_path, 0.0).entries) == 20
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".off.json.")] == [
        ".off.json.lock"
    ]
    switch_on(tmp_path, "tool", "tool3", 0.0)
    assert len(read_off(tmp_path, 0.0).entries) == 19


def test_an_entry_without_a_name_or_with_too_long_a_one_is_refused() -> None:
    with pytest.raises(ConfigError):
        entry_of("tool", "", 0.0, "me", "")
    with pytest.raises(ConfigError):
        entry_of("tool", "x" * 501, 0.0, "me", "")


class _Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def _health() -> tuple[Health, _Clock, list[str]]:
    clock, said = _Clock(), list[str]()
    return Health(clock, said.append), clock, said


def test_a_late_event_loop_is_off_for_a_while() -> None:
    health, clock, said = _health()
    health.late(0.1)
    assert health.why_off == ""
    health.late(0.8)
    assert "late" in health.why_off
    clock.now_s += 11
    assert health.why_off == ""
    assert [bool(text) for text in said] == [True, False]


def test_a_process_replaced_again_and_again_is_off() -> None:
    health, clock, _ = _health()
    for _ in range(3):
        health.replaced()
        clock.now_s += 40
    assert health.why_off == ""
    for _ in range(3):
        health.replaced()
        clock.now_s += 1
    assert "replaced" in health.why_off


def test_decisions_that_fail_are_off_a_few_are_not() -> None:
    health, clock, _ = _health()
    for number in range(100):
        health.decision(failed=number % 10 == 0)
    assert health.why_off == ""
    for _ in range(30):
        health.decision(failed=True)
    assert "decisions" in health.why_off
    clock.now_s += 61
    assert health.why_off == ""


async def test_a_reflex_that_keeps_failing_is_off_by_itself(start: Any, desk: Any) -> None:
    gateway = await start(loader="moody", mode="live")
    request = desk.request()
    request["messages"].append({"role": "user", "content": "raise"})
    for _ in range(20):
        assert (await gateway.chat(request)).decision == "live; escalate; system1_error"
    assert (await gateway.chat(desk.request())).decision == "live; escalate; off:health"
    assert (await gateway.get("/admin/state")).json["health"] != "ok"


async def test_under_load_nothing_acts_a_second_later(
    start: Any, desk: Any, reflex_path: Any, state_dir: Path
) -> None:
    gateway = await start(reflex=str(reflex_path), mode="live")
    bodies = [json.dumps(desk.request(task, 4)).encode() for task in range(40)]
    acted: list[float] = []
    answered = 0
    stop_s = time.monotonic() + 3.0

    async def client(number: int) -> None:
        nonlocal answered
        while time.monotonic() < stop_s:
            answer = await gateway.chat(bodies[number])
            assert answer.status == 200
            answered += 1
            if "; act; " in answer.decision:
                acted.append(time.monotonic())
            await asyncio.sleep(0.02)

    clients = [asyncio.create_task(client(number)) for number in range(4)]
    await asyncio.sleep(0.8)
    switch_off(state_dir, _entry())
    off_s = time.monotonic()
    await asyncio.gather(*clients)
    assert any(when < off_s for when in acted)
    assert [when for when in acted if when > off_s + 1.0] == []
    assert answered > 50
