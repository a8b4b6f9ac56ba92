"""Which slot a session gets, and who waits for one."""

import asyncio
import contextlib

from reflexarc.upstream.embedded.owners import Owner
from reflexarc.upstream.embedded.pins import Pin, Pins


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        self.now_s += 1
        return self.now_s


def owner(session: str, tenant: str = "t") -> Owner:
    return Owner(tenant.encode(), f"{tenant} {session}".encode())


async def ask(pins: Pins, who: Owner, prompt: str) -> Pin:
    """A request that is answered at once; its slot holds what it read."""
    async with pins.taken(who, prompt) as pin:
        pin.holds, pin.prompt = pin.owner, prompt
        return pin


async def slots(pins: Pins, *asked: tuple[Owner, str]) -> list[int]:
    return [(await ask(pins, who, prompt)).slot for who, prompt in asked]


async def test_a_session_keeps_its_slot() -> None:
    pins = Pins(2, Clock())
    a, b = owner("a"), owner("b")
    assert await slots(pins, (a, "x"), (b, "y"), (a, "other"), (b, "new")) == [0, 1, 0, 1]


async def test_a_further_session_takes_the_slot_longest_unused() -> None:
    pins = Pins(2, Clock())
    a, b, c = owner("a"), owner("b"), owner("c")
    assert await slots(pins, (a, "x"), (b, "y"), (a, "x"), (c, "z")) == [0, 1, 0, 1]
    assert [pin.owner for pin in pins.all] == [a, c]


async def test_what_goes_on_from_a_slot_takes_it_whatever_it_is_called() -> None:
    pins = Pins(3, Clock())
    named = [owner(f"request {number}") for number in range(4)]
    asked = [(who, "turns " * (number + 1)) for number, who in enumerate(named)]
    assert await slots(pins, *asked) == [0, 0, 0, 0]
    assert pins.all[0].holds == named[-1]


async def test_another_tenant_goes_on_from_nothing() -> None:
    pins = Pins(2, Clock())
    assert await slots(pins, (owner("a", "t"), "x"), (owner("a", "u"), "x and more")) == [0, 1]


async def test_requests_of_one_session_wait_for_each_other_and_others_do_not() -> None:
    pins = Pins(2, Clock())
    a, b = owner("a"), owner("b")
    async with contextlib.AsyncExitStack() as first:
        await first.enter_async_context(pins.taken(a, "x"))
        second = asyncio.ensure_future(ask(pins, a, "x"))
        assert (await ask(pins, b, "y")).slot == 1
        assert not second.done()
    assert (await second).slot == 0


async def test_those_who_wait_are_served_in_their_order() -> None:
    pins = Pins(1, Clock())
    served: list[str] = []

    async def one(name: str) -> None:
        async with pins.taken(owner(name), name):
            served.append(name)
            await asyncio.sleep(0)

    await asyncio.gather(*(one(name) for name in "abcde"))
    assert served == list("abcde")


async def test_who_leaves_while_waiting_takes_nothing_with_him() -> None:
    pins = Pins(1, Clock())
    async with pins.taken(owner("a"), "x"):
        gone = asyncio.ensure_future(ask(pins, owner("b"), "y"))
        stays = asyncio.ensure_future(ask(pins, owner("c"), "z"))
        await asyncio.sleep(0)
        gone.cancel()
    assert (await stays).owner == owner("c")
    await asyncio.wait([gone])
    assert gone.cancelled()
    assert not pins.all[0].at_work


async def test_who_leaves_in_the_moment_of_being_served_gives_the_slot_back() -> None:
    pins = Pins(1, Clock())
    async with pins.taken(owner("a"), "x"):
        gone = asyncio.ensure_future(ask(pins, owner("b"), "y"))
        await asyncio.sleep(0)
    gone.cancel()  # it was given the slot, but has not run since
    await asyncio.wait([gone])
    assert gone.cancelled()
    assert (await ask(pins, owner("c"), "z")).owner == owner("c")


async def test_a_slot_that_is_kept_is_given_to_who_waited() -> None:
    pins = Pins(1, Clock())
    with pins.kept(pins.all[0]):
        waiting = asyncio.ensure_future(ask(pins, owner("a"), "x"))
        await asyncio.sleep(0)
        assert not waiting.done()
    assert (await waiting).owner == owner("a")
