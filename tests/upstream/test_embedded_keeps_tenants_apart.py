"""What is done to llama.cpp's slots when sessions move, before a llama.cpp that only writes down
what it is asked."""

import asyncio
from collections.abc import Generator
from pathlib import Path
from typing import cast

import pytest

from reflexarc.steps import Message, ToolSpec
from reflexarc.steps.errors import UpstreamError
from reflexarc.upstream.embedded.choosing import OPENINGS
from reflexarc.upstream.embedded.keeping import Keeping
from reflexarc.upstream.embedded.llama import Llama
from reflexarc.upstream.embedded.options import EngineOptions
from reflexarc.upstream.embedded.owners import Owner
from reflexarc.upstream.embedded.pins import Pins
from reflexarc.upstream.embedded.request import ChatRequest
from reflexarc.upstream.embedded.saved import Fit, Saved
from reflexarc.upstream.embedded.scoring import Chooser

OPTIONS = EngineOptions(slots=1, save_from_tokens=10)


class WrittenDown:
    """Stands for `Llama`. `refuses`: an action it refuses."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.asked: list[str] = []
        self.refuses = ""
        self.goes_on = asyncio.Event()
        self.goes_on.set()

    async def _does(self, what: str) -> None:
        self.asked.append(what)
        await self.goes_on.wait()
        if what.split()[0] == self.refuses:
            raise UpstreamError("no")

    async def save(self, slot: int, filename: str) -> int:
        await self._does(f"save {slot}")
        (self.directory / filename).write_bytes(b"state")
        return 20

    async def restore(self, slot: int, _filename: str) -> None:
        await self._does(f"restore {slot}")

    async def erase(self, slot: int) -> None:
        await self._does(f"erase {slot}")

    async def keep_only(self, slot: int, text: str) -> None:
        await self._does(f"keep only {slot} {text}")

    async def tokens(self, text: str) -> list[int]:
        return [len(text)]

    async def can_follow(self, slot: int, _schema: object) -> bool:
        await self._does(f"try {slot}")
        return True

    async def score(self, slot: int, _prompt: str, _words: list[int]) -> float:
        await self._does(f"score {slot}")
        return 0.0


@pytest.fixture
def saved(tmp_path: Path) -> Generator[Saved]:
    made = Saved(tmp_path, Fit("m", "e", "f16"), 2**30, 3600, lambda: 1e9)
    yield made
    made.close()


def owner(tenant: str, session: str) -> Owner:
    return Owner(tenant.encode(), f"{tenant}{session}".encode())


class Room:
    """One slot, and who comes into it."""

    def __init__(self, saved: Saved) -> None:
        self.llama = WrittenDown(saved.directory)
        self.pins = Pins(1, lambda: 0.0)
        self.keeping = Keeping(cast(Llama, self.llama), self.pins, saved, OPTIONS, lambda: 100.0)

    async def comes(self, who: Owner, tokens: int = 20, prompt: str = "") -> list[str]:
        """What was asked of llama.cpp before the request could be."""
        self.llama.asked.clear()
        prompt = prompt or f"prompt of {who.name}"
        async with self.pins.taken(who, prompt) as pin:
            await self.keeping.move_in(pin, prompt)
            pin.changed, pin.tokens, pin.prompt = True, tokens, prompt
        return list(self.llama.asked)


async def test_a_slot_is_saved_then_erased_before_another_tenant_has_it(saved: Saved) -> None:
    room = Room(saved)
    assert await room.comes(owner("a", "1")) == []
    assert await room.comes(owner("a", "1")) == []
    assert await room.comes(owner("a", "2")) == ["save 0"]
    assert await room.comes(owner("b", "1")) == ["save 0", "erase 0"]
    assert await room.comes(owner("a", "1")) == ["save 0", "erase 0", "restore 0"]


async def test_a_slot_that_cannot_be_erased_is_not_given_to_another_tenant(saved: Saved) -> None:
    room = Room(saved)
    await room.comes(owner("a", "1"))
    room.llama.refuses = "erase"
    for _ in range(2):
        with pytest.raises(UpstreamError):
            await room.comes(owner("b", "1"))
        assert room.llama.asked[-1] == "erase 0"
    room.llama.refuses = ""
    assert (await room.comes(owner("b", "1")))[-1] == "erase 0"


async def test_what_could_not_be_loaded_leaves_an_empty_slot_and_no_file(saved: Saved) -> None:
    room = Room(saved)
    await room.comes(owner("a", "1"))
    await room.comes(owner("a", "2"))
    room.llama.refuses = "restore"
    assert await room.comes(owner("a", "1")) == ["save 0", "restore 0", "erase 0"]
    room.llama.refuses = ""
    await room.comes(owner("b", "1"))
    assert await room.comes(owner("a", "1")) == ["save 0", "erase 0", "restore 0"]


async def test_what_could_not_be_saved_costs_nothing_but_that(saved: Saved) -> None:
    room = Room(saved)
    await room.comes(owner("a", "1"))
    room.llama.refuses = "save"
    assert await room.comes(owner("b", "1")) == ["save 0", "erase 0"]
    assert await room.comes(owner("a", "1")) == ["save 0", "erase 0"]
    assert saved.size_bytes() == 0


async def test_few_tokens_are_not_worth_a_file(saved: Saved) -> None:
    room = Room(saved)
    await room.comes(owner("a", "1"), tokens=9)
    assert await room.comes(owner("a", "2")) == []


async def test_who_leaves_during_a_move_leaves_a_whole_one(saved: Saved) -> None:
    room = Room(saved)
    await room.comes(owner("a", "1"))
    room.llama.goes_on.clear()
    leaving = asyncio.ensure_future(room.comes(owner("b", "1")))
    while not room.llama.asked:
        await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.sleep(0)
    room.llama.goes_on.set()
    await asyncio.wait([leaving])
    assert leaving.cancelled()
    assert room.llama.asked == ["save 0", "erase 0"]
    assert room.pins.all[0].holds == owner("b", "1")
    assert not room.pins.all[0].at_work


async def test_a_new_session_goes_on_from_a_saved_one_that_begins_alike(saved: Saved) -> None:
    room = Room(saved)
    shop, bank = "you keep a shop " * 40, "you keep a bank " * 40
    await room.comes(owner("a", "1"), prompt=f"{shop}one")
    await room.comes(owner("a", "2"), prompt=f"{bank}two")
    assert await room.comes(owner("a", "3"), prompt=f"{shop}three") == ["save 0", "restore 0"]
    # What is in the slot is as good as what is on disk.
    assert await room.comes(owner("a", "4"), prompt=f"{shop}four") == ["save 0"]
    # Its own state goes before all others.
    assert await room.comes(owner("a", "2"), prompt=f"{bank}two, on") == ["save 0", "restore 0"]


async def test_no_session_goes_on_from_what_another_tenant_saved(saved: Saved) -> None:
    room = Room(saved)
    await room.comes(owner("a", "1"), prompt="you keep a shop " * 40)
    await room.comes(owner("b", "1"), prompt="other words")
    asked = await room.comes(owner("b", "2"), prompt="you keep a shop " * 40 + "two")
    assert asked == ["save 0"]


async def test_a_beginning_whose_state_is_gone_is_not_loaded(saved: Saved) -> None:
    room = Room(saved)
    await room.comes(owner("a", "1"), prompt="you keep a shop " * 40)
    await room.comes(owner("a", "2"), prompt="other words")
    for path in saved.directory.glob("*.json"):
        path.unlink()
    asked = await room.comes(owner("a", "3"), prompt="you keep a shop " * 40 + "three")
    assert asked == ["save 0"]


async def test_at_the_end_what_has_changed_is_saved_once(saved: Saved) -> None:
    room = Room(saved)
    await room.comes(owner("a", "1"))
    await room.keeping.save_all()
    await room.keeping.save_all()
    assert room.llama.asked == ["save 0"]


async def test_without_a_directory_nothing_is_saved_and_tenants_stay_apart(tmp_path: Path) -> None:
    llama = WrittenDown(tmp_path)
    pins = Pins(1, lambda: 0.0)
    keeping = Keeping(cast(Llama, llama), pins, None, OPTIONS, lambda: 0.0)
    for who in (owner("a", "1"), owner("b", "1")):
        async with pins.taken(who, "p") as pin:
            await keeping.move_in(pin, "p")
            pin.changed = True
    assert llama.asked == ["erase 0"]


def request() -> ChatRequest:
    tools = (ToolSpec("one", "First"), ToolSpec("two", "Second"))
    return ChatRequest(
        (Message("user", "go"),), tools, tools, "required", False, False, None, (), {}, None
    )


async def test_slots_in_which_tools_are_chosen_pass_on_nothing_but_their_openings(
    tmp_path: Path,
) -> None:
    llama = WrittenDown(tmp_path)
    chooser = Chooser(cast(Llama, llama), 4, lambda: None)
    await chooser.chosen(request(), b"a")
    first = list(llama.asked)
    llama.asked.clear()
    await chooser.chosen(request(), b"a")
    assert llama.asked == []  # it remembers
    await chooser.chosen(request(), b"b")
    handed = [f"keep only {4 + i} {opening}" for i, opening in enumerate(OPENINGS)]
    assert llama.asked == [*handed, *first]  # and what one asked is not remembered for another
