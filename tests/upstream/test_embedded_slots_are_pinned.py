"""Which slot a session gets, and who waits for one."""

import asyncio
import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.upstream.embedded.beginnings import MAX_PROMPTS, Beginnings, in_common
from reflexarc.upstream.embedded.owners import Owner
from reflexarc.upstream.embedded.pins import MAX_SESSIONS, Pin, Pins, Turns


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


async def test_of_two_the_longer_conversation_keeps_its_slot() -> None:
    pins = Pins(2, Clock())
    a, b, c = owner("a"), owner("b"), owner("c")
    assert await slots(pins, (a, "x" * 9_000), (b, "y" * 90), (c, "z")) == [0, 1, 1]


async def test_what_comes_back_from_disk_leaves_before_what_does_not() -> None:
    pins = Pins(2, Clock())
    pins.all[1].lost = 0.02
    a, b, c = owner("a"), owner("b"), owner("c")
    assert await slots(pins, (a, "x" * 900), (b, "y" * 900), (c, "z")) == [0, 1, 1]


async def test_a_new_session_takes_the_slot_that_holds_its_beginning() -> None:
    shop, bank = "you keep a shop " * 40, "you keep a bank " * 40
    for saved in (False, True):
        pins = Pins(2, Clock())
        for pin in pins.all:
            pin.lost = 0.02
        if saved:
            pins.brings = lambda _, prompt: len(prompt)
        await slots(pins, (owner("a"), shop), (owner("b"), bank))
        took = await slots(pins, (owner("c"), f"{bank} and more"))
        assert took == [1]  # it goes on from all that is there
        took = await slots(pins, (owner("d"), bank[:-5] + "other"))
        assert took == [0 if saved else 1]


async def test_another_tenants_beginning_is_no_reason_to_take_a_slot() -> None:
    pins = Pins(2, Clock())
    for pin in pins.all:
        pin.lost = 0.0
    held = "you keep a bank " * 40
    await slots(pins, (owner("a"), "x"), (owner("b", "u"), held))
    assert await slots(pins, (owner("c", "v"), held[:-5])) == [0]


@pytest.mark.parametrize("sessions", [3, 6])
async def test_sessions_that_take_turns_do_not_drive_each_other_out_in_a_circle(
    sessions: int,
) -> None:
    """Whoever was longest unused is the next to return: one of them keeps its slot."""
    pins = Pins(2, Clock())
    owners = [owner(str(number)) for number in range(sessions)]
    stayed = 0
    for turn in range(20):
        for number, who in enumerate(owners):
            before = [pin.slot for pin in pins.all if pin.owner == who]
            took = await slots(pins, (who, f"{number}" + "x" * 500 + "!" * turn))
            stayed += turn > 3 and took == before
    assert stayed >= 16


async def test_a_session_that_does_not_return_gives_its_slot_up() -> None:
    pins = Pins(2, Clock())
    gone, a, b = owner("gone"), owner("a"), owner("b")
    await slots(pins, *[(gone, "x" * 500)] * 5)
    for _ in range(12):
        await slots(pins, (a, "y" * 500), (b, "z" * 500))
    assert {pin.owner for pin in pins.all} == {a, b}


def test_no_more_sessions_are_counted_than_was_agreed() -> None:
    turns = Turns()
    for number in range(MAX_SESSIONS + 10):
        turns.began(owner(str(number)), number)
    first, last = owner("0"), owner(str(MAX_SESSIONS + 9))
    turns.began(first, 5_000)  # it was forgotten: this is its first turn again
    turns.began(last, 5_000)
    assert turns.next_in_s(first, 5_000, 5_001) == 1
    assert turns.next_in_s(last, 5_000, 5_001) > 1_000


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


@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=30))
def test_what_texts_have_in_common_is_where_they_first_differ(
    begin: str, one: str, other: str
) -> None:
    shared = in_common(begin + one, begin + other)
    assert shared >= len(begin)
    assert (begin + one)[:shared] == (begin + other)[:shared]
    assert (begin + one)[shared : shared + 1] != (begin + other)[shared : shared + 1] or (
        begin + one == begin + other
    )


def test_of_saved_beginnings_the_longest_that_is_still_there_is_found() -> None:
    known = Beginnings()
    text = "".join(chr(97 + at % 26) for at in range(2_000))
    for name, length in (("short", 300), ("long", 1_500), ("longest", 1_900), ("other", 20)):
        known.keep(owner(name), text[:length] + "." * 50)
    assert known.nearest(owner("new"), text, lambda _: True) == (owner("longest"), 1_900)
    there = {owner("short"), owner("long")}
    assert known.nearest(owner("new"), text, there.__contains__) == (owner("long"), 1_500)
    assert known.nearest(owner("new", "u"), text, lambda _: True) == (None, 0)
    assert known.nearest(owner("new"), "something else", lambda _: True) == (None, 0)


def test_no_more_beginnings_are_remembered_than_was_agreed() -> None:
    known = Beginnings()
    text = "x" * 1_000
    for number in range(MAX_PROMPTS + 5):
        known.keep(owner(str(number)), f"{number:<300}{text}")
    assert known.nearest(owner("new"), f"{4:<300}{text}", lambda _: True) == (None, 0)
    assert known.nearest(owner("new"), f"{5:<300}{text}", lambda _: True)[0] == owner("5")
