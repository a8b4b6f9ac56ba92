"""A certified reflex with a fresh configuration acts zero times; live mode has to be asked for."""

from typing import Any


async def test_a_certified_reflex_with_a_fresh_configuration_acts_zero_times(
    start: Any, upstream: Any, desk: Any, reflex_path: Any
) -> None:
    gateway = await start(reflex=str(reflex_path))
    for task in range(6000, 6020):
        for messages in (2, 4, 6):
            answer = await gateway.chat(desk.request(task, messages))
            assert answer.json["id"] == "chatcmpl-up"
    assert len(upstream.received) == 60
    counters = await gateway.eventually(
        lambda found: sum(v for k, v in found.items() if "reflexarc_decisions_total" in k) == 60
    )
    # It would have acted on every read: that it did not is the mode's doing.
    acts = 'reflexarc_decisions_total{action="act",mode="shadow",reason="certified",route="/v1"}'
    assert counters[acts] == 40.0


async def test_mode_off_asks_system1_nothing(
    start: Any, upstream: Any, desk: Any, reflex_path: Any
) -> None:
    gateway = await start(reflex=str(reflex_path), mode="off")
    answer = await gateway.chat(desk.request())
    assert answer.decision == "off"
    assert len(upstream.received) == 1
    assert not any("reflexarc_decisions_total{" in name for name in await gateway.metrics())


async def test_without_a_reflex_everything_escalates(start: Any, upstream: Any, desk: Any) -> None:
    answer = await (await start()).chat(desk.request())
    assert answer.decision == "shadow; escalate; no_reflex"
    assert len(upstream.received) == 1
