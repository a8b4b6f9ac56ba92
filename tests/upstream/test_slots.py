"""Slots are never exceeded nor lost, go to those in a hurry first, and batch yields."""

import asyncio
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reflexarc.upstream.slots import TIERS, Slots


async def turn() -> None:
    """Lets all that can go on go on."""
    for _ in range(5):
        await asyncio.sleep(0)


def waits(slots: Slots, tier: str, log: list[str], name: str) -> asyncio.Task[None]:
    async def take() -> None:
        await slots.take(tier)
        log.append(name)

    return asyncio.create_task(take())


async def test_without_a_limit_nobody_waits() -> None:
    slots = Slots(None)
    for _ in range(1_000):
        await slots.take("batch")
    assert slots.busy == 1_000
    assert slots.room == math.inf
    assert slots.free("batch")


async def test_the_hurried_are_served_first_and_within_a_tier_the_first_to_come() -> None:
    slots, log = Slots(1), list[str]()
    await slots.take("standard")
    tasks = [
        waits(slots, tier, log, f"{tier} {number}")
        for number in (1, 2)
        for tier in ("batch", "standard", "interactive")
    ]
    await turn()
    assert [slots.waiting(tier) for tier in TIERS] == [2, 2, 2]
    for _ in tasks:
        slots.give("standard")
        await turn()
    await asyncio.gather(*tasks)
    assert log == [f"{tier} {number}" for tier in TIERS for number in (1, 2)]


@pytest.mark.parametrize(
    ("slots", "share", "batch"), [(8, 0.25, 6), (5, 0.25, 3), (2, 0.25, 1), (1, 0.25, 1),
                                  (4, 0.0, 4), (10, 0.1, 9), (4, 0.99, 1)],
)  # fmt: skip
async def test_batch_leaves_a_share_free_but_can_always_go_on(
    slots: int, share: float, batch: int
) -> None:
    held = Slots(slots, share)
    for _ in range(batch):
        assert held.free("batch")
        await held.take("batch")
    assert not held.free("batch")
    assert held.free("interactive") == (batch < slots)
    assert held.room == slots - batch


async def test_batch_takes_no_slot_while_another_tier_waits() -> None:
    slots, log = Slots(2, kept_free=0.0), list[str]()
    await slots.take("interactive")
    await slots.take("interactive")
    batch = waits(slots, "batch", log, "batch")
    standard = waits(slots, "standard", log, "standard")
    await turn()
    slots.give("interactive")
    await turn()
    assert log == ["standard"]
    slots.give("interactive")
    await asyncio.gather(batch, standard)
    assert log == ["standard", "batch"]


async def test_a_slot_that_was_given_to_one_that_just_left_goes_to_the_next() -> None:
    slots, log = Slots(1), list[str]()
    await slots.take("interactive")
    leaves = waits(slots, "interactive", log, "leaves")
    stays = waits(slots, "batch", log, "stays")
    await turn()
    slots.give("interactive")  # to the one that leaves before it can run
    leaves.cancel()
    await turn()
    assert leaves.cancelled()
    assert log == ["stays"]
    assert slots.busy == 1
    await stays


async def test_one_that_leaves_while_it_waits_is_counted_and_served_no_longer() -> None:
    slots, log = Slots(1), list[str]()
    await slots.take("standard")
    leaves = waits(slots, "interactive", log, "leaves")
    stays = waits(slots, "batch", log, "stays")
    await turn()
    leaves.cancel()
    slots.give("standard")  # before the one that leaves has noticed
    await turn()
    assert leaves.cancelled()
    assert log == ["stays"]
    waits_too = waits(slots, "interactive", log, "waits")
    await turn()
    waits_too.cancel()
    await turn()
    assert slots.waiting("interactive") == 0
    slots.give("batch")
    assert slots.free("batch")
    await stays


async def test_more_slots_are_given_out_at_once_and_fewer_once_enough_are_given_back() -> None:
    slots, log = Slots(1), list[str]()
    await slots.take("standard")
    tasks = [waits(slots, "standard", log, str(number)) for number in range(4)]
    await turn()
    slots.resize(3)
    await turn()
    assert log == ["0", "1"]
    slots.resize(1)
    for _ in range(2):
        slots.give("standard")
        await turn()
        assert log == ["0", "1"]
    slots.resize(None)
    await asyncio.gather(*tasks)
    assert slots.busy == 3


@pytest.mark.parametrize(("slots", "share"), [(0, 0.25), (-1, 0.25), (4, 1.0), (4, -0.1)])
def test_what_could_serve_nobody_is_refused(slots: int, share: float) -> None:
    with pytest.raises(ValueError, match=r"serve nobody|kept free"):
        Slots(slots, share)


async def test_a_slot_is_given_back_once() -> None:
    slots = Slots(2)
    await slots.take("batch")
    slots.give("batch")
    with pytest.raises(ValueError, match="no slot"):
        slots.give("batch")


async def test_batch_starves_while_others_are_in_a_hurry_and_drains_after_them() -> None:
    """Four slots, a hundred batch requests, and interactive ones that keep four slots busy."""
    slots, log = Slots(4), list[str]()
    batch = [waits(slots, "batch", log, "batch") for _ in range(100)]
    await turn()
    assert log == ["batch"] * 3
    hurried = [waits(slots, "interactive", log, "hurried") for _ in range(200)]
    await turn()
    log.clear()
    for _ in range(200 - 1):  # the first found the slot that batch left free
        slots.give("interactive")
        await turn()
    assert log == ["hurried"] * 199
    for _ in range(97 + 4):
        slots.give("interactive")
        await turn()
    assert log[199:] == ["batch"] * 97
    await asyncio.gather(*batch, *hurried)


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["take", "take", "run", "run", "give", "give", "cancel", "resize"]),
        st.sampled_from(TIERS),
        st.integers(0, 30),
    ),
    max_size=80,
)


@settings(deadline=None, max_examples=300)
@given(st.integers(1, 6), st.sampled_from([0.0, 0.25, 0.5]), _STEPS)
def test_slots_are_never_exceeded_nor_lost_and_batch_never_goes_before_others(
    most: int, share: float, steps: list[tuple[str, str, int]]
) -> None:
    asyncio.run(_random(most, share, steps))


async def _random(most: int, share: float, steps: list[tuple[str, str, int]]) -> None:
    slots = Slots(most, share)
    holding: list[str] = []
    pending: list[asyncio.Task[None]] = []

    def for_batch() -> int:
        return max(1, most - math.ceil(most * share))

    async def take(tier: str) -> None:
        at_once, before = slots.free(tier), slots.busy
        await slots.take(tier)
        holding.append(tier)
        if at_once:
            assert slots.busy == before + 1 <= most
            assert tier != "batch" or slots.busy <= for_batch()

    for step, tier, which in steps:
        batch, busy = slots.waiting("batch"), slots.busy
        if step == "take":
            pending.append(asyncio.create_task(take(tier)))
        elif step == "give" and holding:
            slots.give(holding.pop(which % len(holding)))
        elif step == "cancel" and pending:
            pending[which % len(pending)].cancel()
        elif step == "resize":
            most = 1 + which % 6
            slots.resize(most)
        else:
            await turn()
            assert slots.busy == len(holding)
        # What has been given out, before anybody it was given to could run.
        others = slots.waiting("interactive") + slots.waiting("standard")
        if step != "run":
            assert slots.busy <= max(most, busy)
            if slots.waiting("batch") < batch:
                assert others == 0
                assert slots.busy <= for_batch()
        if others:
            assert slots.busy >= most
            assert not slots.free("batch")
        elif slots.waiting("batch"):
            assert slots.busy >= for_batch()
    await turn()
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    assert all(task.cancelled() or task.exception() is None for task in pending)
    assert slots.busy == len(holding)
    for tier in holding:
        slots.give(tier)
    assert slots.busy == 0
    assert [slots.waiting(tier) for tier in TIERS] == [0, 0, 0]
    for _ in range(most):
        assert slots.free("interactive")
        await slots.take("interactive")
    assert not slots.free("interactive")
