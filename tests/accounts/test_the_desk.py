"""The gateway's way to the book: nothing waits for a disk that need not, and nothing leaks."""

import asyncio
import random
import shutil
import sqlite3
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from reflexarc.accounts.book import Book
from reflexarc.accounts.charge import Charge
from reflexarc.accounts.database import FILE
from reflexarc.accounts.desk import Admission, Desk
from reflexarc.accounts.keyring import Keyring
from reflexarc.accounts.keys import VirtualKey, session_hash
from reflexarc.accounts.spending import Filter, spending
from reflexarc.steps.errors import (
    AccountError,
    BookError,
    BudgetError,
    KeyRefusedError,
    NotAllowedError,
    RateLimitError,
)
from tests.accounts.booking import NOON, SECRET, Clock, book, charge, key

TICK_S = 0.01


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def desk(tmp_path: Path, clock: Clock) -> AsyncGenerator[Desk]:
    made = Desk(
        lambda: Book.open(tmp_path / FILE, clock), SECRET, clock, clock,
        tick_s=TICK_S, max_waiting=3,
    )  # fmt: skip
    await made.start()
    yield made
    await made.close()


def create(directory: Path, **more: Any) -> tuple[VirtualKey, str]:
    one = book(directory)
    try:
        wanted = msgspec.structs.replace(VirtualKey("", "agent", ""), **more)
        return Keyring(one.database, SECRET, Clock()).create(wanted)
    finally:
        one.close()


def change(directory: Path, **more: Any) -> None:
    one = book(directory)
    ring = Keyring(one.database, SECRET, Clock())
    ring.change("agent", lambda was: msgspec.structs.replace(was, **more))
    one.close()


def in_book(directory: Path, read: Callable[[Book], int]) -> int:
    one = book(directory)
    try:
        return read(one)
    finally:
        one.close()


def reserved(directory: Path) -> int:
    return in_book(directory, lambda one: one.reserved())


def spent(directory: Path, of: VirtualKey) -> int:
    return in_book(directory, lambda one: one.spent(of.id, of.budgets[0]))


async def until(holds: Callable[[], bool]) -> None:
    """Waits for what the desk's thread does by itself."""
    async with asyncio.timeout(20):
        while not holds():
            await asyncio.sleep(0.005)


async def test_a_key_is_known_by_its_secret_as_soon_as_it_is_made(
    desk: Desk, tmp_path: Path, clock: Clock
) -> None:
    made, secret = create(tmp_path)
    clock.now_s += 1
    assert await desk.identify(secret) == made
    assert await desk.identify("sk-of-the-provider") is None
    with pytest.raises(KeyRefusedError, match="not known here"):
        await desk.identify("rx-" + "a" * 43)


async def test_a_revoked_key_is_refused_before_long(
    desk: Desk, tmp_path: Path, clock: Clock
) -> None:
    _, secret = create(tmp_path)
    clock.now_s += 1
    await desk.identify(secret)
    change(tmp_path, revoked=True)

    async def is_refused() -> bool:
        try:
            await desk.identify(secret)
        except KeyRefusedError:
            return True
        return False

    async with asyncio.timeout(20):
        while not await is_refused():
            clock.now_s += TICK_S
            await asyncio.sleep(0.005)


async def test_an_expired_key_is_refused_when_its_time_comes(
    desk: Desk, tmp_path: Path, clock: Clock
) -> None:
    made, secret = create(tmp_path, expires_unix_s=NOON + 10)
    clock.now_s += 1
    await desk.identify(secret)
    clock.now_s = NOON + 10
    with pytest.raises(KeyRefusedError, match="expired"):
        await desk.identify(secret)
    with pytest.raises(KeyRefusedError, match="expired"):
        await desk.admit(made)


async def test_a_request_is_reserved_for_and_then_settled(desk: Desk, tmp_path: Path) -> None:
    of = key("0.0001usd")
    admission = await desk.admit(of, session="s1", tier="standard", micro_usd=80, tokens=5)
    assert (reserved(tmp_path), desk.inside(of)) == (80, 1)
    with pytest.raises(BudgetError):
        await desk.admit(of, micro_usd=30)
    assert desk.inside(of) == 1
    cost = charge(70)
    for _ in range(2):
        await desk.settle(admission, [cost], 9)
        await desk.settle(admission, [])
    await desk.release(admission)
    assert (reserved(tmp_path), spent(tmp_path, of), desk.inside(of)) == (0, 70, 0)


async def test_names_of_sessions_are_kept_as_hashes(desk: Desk, tmp_path: Path) -> None:
    of = key("session=0.0001usd")
    admission = await desk.admit(of, session="Ada's mortgage", micro_usd=100)
    await desk.settle(admission, [charge(100, session="Ada's mortgage")])
    with pytest.raises(BudgetError):
        await desk.admit(of, session="Ada's mortgage", micro_usd=1)
    await desk.admit(of, session="another", micro_usd=100)
    files = b"".join(path.read_bytes() for path in tmp_path.glob(f"{FILE}*"))
    assert b"mortgage" not in files
    hashed = session_hash(SECRET, "Ada's mortgage")
    one = book(tmp_path)
    [row] = spending(one.database, (), Filter(session=hashed))
    assert row.micro_usd == 100
    one.close()


async def test_what_a_key_may_not_do_is_refused_before_anything_is_kept_back(
    desk: Desk, tmp_path: Path
) -> None:
    of = key("1usd", models=("coder",), max_parallel=1)
    with pytest.raises(NotAllowedError):
        await desk.admit(of, model="other", micro_usd=5)
    with pytest.raises(BudgetError, match="price of 'coder' is not known"):
        await desk.admit(of, model="coder", micro_usd=None)
    assert (reserved(tmp_path), desk.inside(of)) == (0, 0)
    await desk.admit(of, model="coder", micro_usd=5)
    with pytest.raises(RateLimitError):
        await desk.admit(of, model="coder", micro_usd=5)
    assert reserved(tmp_path) == 5


async def test_a_request_without_a_key_or_a_budget_passes_and_its_cost_is_kept(
    desk: Desk, tmp_path: Path
) -> None:
    await desk.settle(await desk.admit(None), [charge(3, key="")])
    await desk.settle(await desk.admit(key(), micro_usd=None), [charge(None)])
    await desk.settle(None, [charge(4, outcome="audit")])
    one = book(tmp_path)
    [row] = spending(one.database, ())
    assert (row.micro_usd, row.attempts, row.unpriced) == (7, 3, 1)
    one.close()


async def test_200_requests_at_once_admit_exactly_what_a_budget_covers(
    desk: Desk, tmp_path: Path
) -> None:
    of = key("0.001usd")

    async def ask() -> Admission | None:
        try:
            return await desk.admit(of, session="s", tier="standard", micro_usd=27)
        except BudgetError:
            return None

    admitted = [one for one in await asyncio.gather(*(ask() for _ in range(200))) if one]
    assert len(admitted) == 1000 // 27
    assert desk.inside(of) == len(admitted)
    await asyncio.gather(*(desk.settle(one, [charge(27)]) for one in admitted))
    assert (reserved(tmp_path), spent(tmp_path, of)) == (0, 27 * len(admitted))


async def test_who_gives_up_at_the_desk_leaves_nothing_behind(desk: Desk, tmp_path: Path) -> None:
    of = key("1usd")
    tasks = [asyncio.create_task(desk.admit(of, micro_usd=10)) for _ in range(50)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    admitted = [one for one in found if isinstance(one, Admission)]
    assert len(admitted) == 25
    await until(lambda: reserved(tmp_path) == 250)
    assert desk.inside(of) == 25
    for one in admitted:
        await desk.release(one)
    assert (reserved(tmp_path), desk.inside(of)) == (0, 0)


async def test_a_settlement_that_is_cancelled_is_written_all_the_same(
    desk: Desk, tmp_path: Path
) -> None:
    of = key("1usd")
    admission = await desk.admit(of, micro_usd=10)
    task = asyncio.create_task(desk.settle(admission, [charge(7)]))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: spent(tmp_path, of) == 7)
    assert reserved(tmp_path) == 0


def lock(directory: Path) -> sqlite3.Connection:
    """Another program that keeps the book from being written."""
    connection = sqlite3.connect(directory / FILE, isolation_level=None)
    connection.execute("begin immediate")
    return connection


async def test_a_book_that_cannot_be_written_refuses_budgets_and_passes_others(
    desk: Desk, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reflexarc.accounts.database.BUSY_MS", 10)
    before = await desk.admit(key("1usd"), micro_usd=10)
    shutil.rmtree(tmp_path / "accounts.owners")
    for path in tmp_path.glob(f"{FILE}*"):
        path.unlink()
    (tmp_path / FILE).mkdir()  # nothing can be written in its place
    with pytest.raises(BookError) as caught:
        await desk.admit(key("1usd"), micro_usd=10)
    assert caught.value.status == 503
    await desk.settle(await desk.admit(key()), [charge(1)])
    await desk.settle(before, [charge(2)])
    counts = desk.counts
    assert (counts.refused, counts.waiting, counts.dropped) == (1, 2, 0)
    assert "accounts.db" in counts.fault
    await desk.settle(None, [charge(4), charge(8)])  # more than three do not wait
    await desk.settle(None, [charge(16)])
    assert (desk.counts.waiting, desk.counts.dropped) == (3, 2)
    (tmp_path / FILE).rmdir()
    clock.now_s += 1
    await until(lambda: desk.counts.waiting == 0 and not desk.counts.fault)
    one = book(tmp_path)
    [row] = spending(one.database, ())
    assert row.micro_usd == 1 + 2 + 16
    one.close()
    await desk.admit(key("1usd"), micro_usd=10)


async def test_a_charge_that_is_none_is_dropped_and_takes_no_other_with_it(
    desk: Desk, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    of = key("1usd")
    admission = await desk.admit(of, micro_usd=10)
    await asyncio.gather(
        desk.settle(None, [charge(1)]),
        desk.settle(admission, [charge(2, number=None)]),
        desk.settle(None, [charge(4)]),
    )
    assert (reserved(tmp_path), spent(tmp_path, of)) == (0, 5)
    assert (desk.counts.dropped, desk.counts.waiting) == (1, 0)
    assert "cannot be written" in caplog.text


async def test_a_locked_book_is_waited_for_by_nobody_for_long(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reflexarc.accounts.database.BUSY_MS", 10)
    desk = Desk(lambda: Book.open(tmp_path / FILE, clock), SECRET, clock, clock, tick_s=TICK_S)
    await desk.start()
    held = lock(tmp_path)
    results = await asyncio.gather(
        *(desk.admit(key("1usd"), micro_usd=1) for _ in range(500)), return_exceptions=True
    )
    # One waited for the lock; those behind it are told at once, until the pause is over.
    assert {type(one) for one in results} == {BookError}
    assert desk.counts.refused == 500
    held.execute("rollback")
    held.close()
    clock.now_s += 1
    await desk.admit(key("1usd"), micro_usd=1)
    await desk.close()


async def test_a_desk_without_a_usable_book_knows_no_key_and_says_so(
    tmp_path: Path, clock: Clock
) -> None:
    (tmp_path / FILE).mkdir()
    desk = Desk(lambda: Book.open(tmp_path / FILE, clock), SECRET, clock, clock, tick_s=TICK_S)
    await desk.start()
    assert "cannot be used" in desk.counts.fault
    with pytest.raises(BookError):
        await desk.identify("rx-" + "a" * 43)
    assert await desk.identify("sk-of-the-provider") is None
    await desk.close()
    with pytest.raises(BookError, match="stopping"):
        await desk.admit(key("1usd"), micro_usd=1)


async def test_closing_writes_what_was_handed_over_and_holds_nothing(
    tmp_path: Path, clock: Clock
) -> None:
    desk = Desk(lambda: Book.open(tmp_path / FILE, clock), SECRET, clock, clock, tick_s=TICK_S)
    await desk.start()
    await desk.admit(key("1usd"), micro_usd=10)
    tasks = [asyncio.create_task(desk.settle(None, [charge(1)])) for _ in range(100)]
    await asyncio.sleep(0)
    await desk.close()
    await asyncio.gather(*tasks)
    assert (reserved(tmp_path), spent(tmp_path, key("1usd"))) == (0, 100)


async def test_10000_random_requests_with_random_faults_leave_nothing_reserved(
    tmp_path: Path, clock: Clock
) -> None:
    draw = random.Random(11)
    desk = Desk(lambda: Book.open(tmp_path / FILE, clock), SECRET, clock, clock, tick_s=TICK_S)
    await desk.start()
    keys = [
        key("0.4usd", "session=0.05usd/day", "tier:batch=0.15usd", id=f"key_{n}", max_parallel=10)
        for n in range(4)
    ]
    keys.append(key(id="key_free"))
    handed_over: dict[tuple[int, int], Charge] = {}
    outcomes: dict[str, int] = {}

    def charges(of: VirtualKey, number: int, tier: str, session: str) -> list[Charge]:
        made = [
            charge(
                draw.choice((None, 0, draw.randrange(2000))), key=of.id, number=number, attempt=n,
                tier=tier, session=session,
            )
            for n in range(draw.choice((0, 1, 1, 1, 2, 3)))
        ]  # fmt: skip
        handed_over.update({(number, one.attempt): one for one in made})
        return made

    async def ask(number: int) -> str:
        of = draw.choice(keys)
        session, tier = f"s{draw.randrange(60)}", draw.choice(("interactive", "batch"))
        try:
            admission = await desk.admit(
                of, session=session, tier=tier, tokens=draw.randrange(100),
                micro_usd=draw.randrange(4000),
            )  # fmt: skip
        except AccountError as error:
            return type(error).__name__
        try:
            if draw.random() < 0.5:
                await asyncio.sleep(0)
            if draw.random() < 0.1:
                raise ConnectionError("between reserving and settling")
            if draw.random() < 0.1:
                await desk.release(admission)
                return "released"
            made = charges(of, number, tier, session)
            for _ in range(draw.choice((1, 1, 1, 2, 3))):
                await desk.settle(admission, made, draw.randrange(100))
            return "settled"
        finally:  # every exit ends here, as it does in the gateway
            await desk.release(admission)

    numbers = iter(range(10_000))

    async def client() -> None:
        for number in numbers:
            task = asyncio.create_task(ask(number))
            for _ in range(draw.randrange(4)):
                await asyncio.sleep(0)
            if draw.random() < 0.15:
                task.cancel()
            try:
                outcome = await task
            except asyncio.CancelledError:
                outcome = "cancelled"
            except ConnectionError:
                outcome = "failed"
            outcomes[outcome] = outcomes.get(outcome, 0) + 1

    await asyncio.gather(*(client() for _ in range(60)))
    assert sum(outcomes.values()) == 10_000
    for seen in ("settled", "released", "failed", "cancelled", "BudgetError", "RateLimitError"):
        assert outcomes.get(seen, 0) > 0, outcomes
    assert [desk.inside(of) for of in keys] == [0] * len(keys)
    await until(lambda: reserved(tmp_path) == 0)  # not by closing: nothing is left to be let go
    await desk.close()
    one = book(tmp_path)
    assert one.reserved() == 0
    by_key = {row.group["key"]: row.micro_usd for row in spending(one.database, ("key",))}
    for of in keys:
        own = [one for one in handed_over.values() if one.key == of.id]
        assert by_key.get(of.id, 0) == sum(one.micro_usd or 0 for one in own)
        assert one.spent(of.id, keys[0].budgets[0]) == by_key.get(of.id, 0)
    [whole] = spending(one.database, ())
    assert whole.attempts == len(handed_over)
    assert desk.counts.dropped == 0
    one.close()
