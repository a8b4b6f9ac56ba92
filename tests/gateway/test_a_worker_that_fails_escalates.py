"""A reflex that raises, hangs, dies or is late: the request goes to System 2, and it is told."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from reflexarc.gateway.deciding import Decider
from reflexarc.gateway.frames import Decide, ReflexSource, Setup, frame
from reflexarc.gateway.system1 import System1Limits


def _say(desk: Any, text: str) -> dict[str, Any]:
    request = desk.request()
    request["messages"].append({"role": "user", "content": text})
    return request


async def test_a_reflex_that_raises_escalates(
    start: Any, upstream: Any, desk: Any, capfd: Any
) -> None:
    gateway = await start(loader="moody", mode="live")
    answer = await gateway.chat(_say(desk, "raise"))
    assert (answer.status, answer.decision) == (200, "live; escalate; system1_error")
    assert len(upstream.received) == 1
    assert (await gateway.chat(_say(desk, "fine"))).decision.startswith("live; act")
    assert (await gateway.metrics())['reflexarc_system1_trouble_total{kind="error"}'] == 1
    said = capfd.readouterr().err
    assert "RuntimeError" in said
    assert "secret" not in said


async def test_a_reflex_that_hangs_escalates_and_is_replaced(
    start: Any, upstream: Any, desk: Any
) -> None:
    gateway = await start(
        loader="moody", mode="live", deadline_ms=50.0, system1=System1Limits(hang_s=0.3)
    )
    before = gateway.gateway.system1.pid
    answer = await gateway.chat(_say(desk, "hang"))
    assert (answer.status, answer.decision) == (200, "live; escalate; deadline")
    assert len(upstream.received) == 1
    await gateway.eventually(
        lambda found: (
            found.get('reflexarc_system1_trouble_total{kind="hang"}') == 1
            and found["reflexarc_system1_up"] == 1
        )
    )
    assert gateway.gateway.system1.pid != before
    assert not _alive(before)
    # A fresh process has to warm up: what is asked is that it decides, not how fast.
    answers = [await gateway.chat(_say(desk, "fine")) for _ in range(5)]
    assert any(answer.decision.startswith("live; act") for answer in answers)
    health = (await gateway.get("/healthz")).json
    assert (health["system1"], health["system1_restarts"]) == ("up", 1)


async def test_a_process_that_dies_escalates_and_is_replaced(
    start: Any, upstream: Any, desk: Any
) -> None:
    gateway = await start(loader="moody", mode="live")
    answer = await gateway.chat(_say(desk, "die"))
    assert (answer.status, answer.decision) == (200, "live; escalate; system1_down")
    ready = await gateway.get("/readyz")
    assert (ready.status, ready.json["degraded"]) == (200, True)
    assert (await gateway.chat(_say(desk, "fine"))).decision == "live; escalate; system1_down"
    assert len(upstream.received) == 2
    await gateway.eventually(lambda found: found["reflexarc_system1_up"] == 1)
    assert (await gateway.chat(_say(desk, "fine"))).decision.startswith("live; act")
    assert (await gateway.metrics())['reflexarc_system1_trouble_total{kind="died"}'] == 1


async def test_a_decision_that_is_late_escalates_at_its_deadline(start: Any, desk: Any) -> None:
    gateway = await start(loader="moody", mode="live", deadline_ms=20.0)
    began_s = time.perf_counter()
    answer = await gateway.chat(_say(desk, "slow"))
    assert answer.decision == "live; escalate; deadline"
    assert time.perf_counter() - began_s < 0.29  # the decision takes 0.3 s
    assert (await gateway.metrics())['reflexarc_system1_trouble_total{kind="deadline"}'] == 1


async def test_shadow_does_not_wait_for_a_reflex_that_hangs(
    start: Any, upstream: Any, desk: Any
) -> None:
    gateway = await start(loader="moody", mode="shadow")
    answer = await asyncio.wait_for(gateway.chat(_say(desk, "hang")), 1.5)
    assert (answer.status, answer.decision) == (200, "shadow; pending")
    assert len(upstream.received) == 1


async def test_a_full_queue_goes_without_decisions(start: Any, upstream: Any, desk: Any) -> None:
    gateway = await start(
        loader="moody", mode="shadow", system1=System1Limits(max_waiting=2, hang_s=60)
    )
    answers = [await gateway.chat(_say(desk, "hang")) for _ in range(5)]
    assert [answer.status for answer in answers] == [200] * 5
    assert (await gateway.metrics())['reflexarc_system1_trouble_total{kind="busy"}'] == 3
    assert len(upstream.received) == 5


async def test_the_native_endpoint_escalates_plainly(start: Any, desk: Any) -> None:
    gateway = await start(loader="moody", system1=System1Limits(hang_s=0.3))
    for text, reason in (("raise", "system1_error"), ("hang", "system1_down")):
        body = _say(desk, text)
        del body["model"]
        answer = await gateway.post("/api/v1/reflex", body)
        assert answer.status == 200
        assert (answer.json["decision"], answer.json["reason"]) == ("escalate", reason)
        assert answer.json["calls"] == []


async def test_its_process_ends_with_the_gateway_even_if_it_hangs(start: Any, desk: Any) -> None:
    gateway = await start(loader="moody", mode="shadow")
    pid = gateway.gateway.system1.pid
    await gateway.chat(_say(desk, "hang"))
    await gateway.gateway.close()
    assert not _alive(pid)


def test_its_process_ends_with_a_gateway_that_was_killed_even_if_it_hangs(desk: Any) -> None:
    """The gateway's end of things is held here, and let go as the kernel does for a killed one."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "reflexarc.gateway.worker", str(theirs.fileno())],
            stdin=subprocess.PIPE,
            pass_fds=[theirs.fileno()],
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join((str(Path(__file__).parent), *sys.path)),
            },
        )
        theirs.close()
        source = ReflexSource("/v1", "none", "misbehaving:moody")
        ours.sendall(b"".join(frame(Setup(reflexes=[source]))))
        assert ours.recv(4096)  # it is ready
        body = json.dumps(_say(desk, "hang")).encode()
        ours.sendall(b"".join(frame(Decide(1, "/v1", b"t", True, 0.05), body)))
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)
        assert process.stdin is not None
        process.stdin.close()
        try:
            assert process.wait(10) == 0
        finally:
            process.kill()


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_request_nobody_waits_for_any_more_is_not_worked_on() -> None:
    now = [100.0]
    decider = Decider({}, Setup(reflexes=[]), lambda: now[0], lambda: 0.0)
    late = Decide(1, "no such reflex", b"", True, 0.1, expires_s=99.9)
    decided, answer = decider.decide(late, b"not even JSON")
    assert (decided.action, decided.reason, answer) == ("escalate", "deadline", b"")
    with pytest.raises(KeyError):
        decider.decide(Decide(2, "no such reflex", b"", True, 0.1, expires_s=100.1), b"")
