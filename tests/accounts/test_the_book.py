"""What is reserved and spent stays within budgets, and nothing is counted twice or lost."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import pytest
from sqlalchemy.exc import IntegrityError

from reflexarc.accounts.book import FORGOTTEN_AFTER_S, OWNERS, Book, Reservation, Standing
from reflexarc.accounts.budgets import MAX_MICRO_USD, budget_from
from reflexarc.accounts.database import FILE, VERSION, reservations
from reflexarc.accounts.keys import VirtualKey
from reflexarc.accounts.spending import Filter, spending
from reflexarc.steps.errors import BudgetError, StoreError, StoreVersionError
from reflexarc.wire.usage import Usage
from tests.accounts.booking import DAY, NOON, Clock, book, charge, key


def refused(
    one: Book, of: VirtualKey, micro_usd: int, session: str = "s1", tier: str = "standard"
) -> BudgetError:
    with pytest.raises(BudgetError) as caught:
        one.reserve(of, session, tier, micro_usd)
    return caught.value


def test_a_budget_covers_what_is_left_of_it_to_the_last_micro_dollar(tmp_path: Path) -> None:
    one, of = book(tmp_path), key("0.0001usd")
    first = one.reserve(of, "s1", "standard", 60)
    one.reserve(of, "s1", "standard", 40)
    error = refused(one, of, 1)
    assert (error.status, error.left_micro_usd, error.renews_unix_s) == (402, 0, None)
    assert "0.0001usd of the key one" in str(error)
    assert "0.0001 dollars are kept back" in str(error)
    one.reserve(of, "s1", "standard", 0)  # what costs nothing is covered by nothing
    one.settle(first, [charge(10)])
    assert refused(one, of, 51).left_micro_usd == 50
    one.reserve(of, "s1", "standard", 50)
    assert (one.reserved(), one.spent(of.id, of.budgets[0])) == (90, 10)
    one.close()


def test_a_day_and_a_month_begin_anew_and_say_when(tmp_path: Path) -> None:
    clock = Clock()
    one = book(tmp_path, clock)
    of = key("0.0001usd/day", "0.00015usd/month")
    one.settle(one.reserve(of, "s", "standard", 100), [charge(100)])
    error = refused(one, of, 1)
    assert error.budget == "0.0001usd/day"
    assert error.renews_unix_s == NOON + DAY / 2
    assert "it renews in 12 hours" in str(error)
    clock.now_s += DAY / 2  # 1 December: a new day and a new month
    one.settle(one.reserve(of, "s", "standard", 100), [charge(100, at_unix_s=clock.now_s)])
    clock.now_s += DAY
    error = refused(one, of, 51)
    assert (error.budget, error.left_micro_usd) == ("0.00015usd/month", 50)
    one.close()


def test_sessions_and_tiers_have_budgets_of_their_own(tmp_path: Path) -> None:
    one = book(tmp_path)
    of = key("session=0.0001usd", "tier:batch=0.00012usd")
    one.settle(one.reserve(of, "s1", "standard", 100), [charge(100, session="s1")])
    assert refused(one, of, 1, "s1").budget == "session=0.0001usd"
    held = one.reserve(of, "s2", "batch", 100)
    assert refused(one, of, 30, "s3", "batch").budget == "tier:batch=0.00012usd"
    one.reserve(of, "s3", "standard", 100)
    one.release(held)
    one.reserve(of, "s2", "batch", 100)
    one.close()


def test_a_key_without_budgets_reserves_nothing(tmp_path: Path) -> None:
    one = book(tmp_path)
    made = one.reserve(key(), "s", "standard", 10**12)
    assert made == Reservation("", "key_1", "s", "standard", 10**12)
    one.settle(made, [charge(5)])
    assert (one.reserved(), one.spent("key_1", budget_from("1usd"))) == (0, 5)
    one.close()


def test_a_charge_counts_once_whoever_brings_it_how_often(tmp_path: Path) -> None:
    one, of = book(tmp_path), key("1usd")
    made = one.reserve(of, "s1", "standard", 100)
    cost = charge(70, number=7)
    hedge = msgspec.structs.replace(cost, attempt=1, micro_usd=5)
    for _ in range(3):
        one.settle(made, [cost, hedge])
        one.settle(None, [cost])
        one.release(made)
    assert (one.reserved(), one.spent(of.id, of.budgets[0])) == (0, 75)
    [row] = spending(one.database, ())
    assert (row.requests, row.attempts, row.micro_usd) == (1, 2, 75)
    one.close()


def test_a_settlement_stands_whole_or_not_at_all(tmp_path: Path) -> None:
    one, of = book(tmp_path), key("1usd")
    made = one.reserve(of, "s1", "standard", 100)
    broken = charge(1, number=None)
    with pytest.raises(IntegrityError):
        one.settle(made, [charge(70), broken])
    assert (one.reserved(), one.spent(of.id, of.budgets[0])) == (100, 0)
    assert spending(one.database, ()) == []
    one.close()


def test_nonsense_that_others_told_of_is_written_down_as_far_as_it_can_be(tmp_path: Path) -> None:
    one = book(tmp_path)
    one.settle(None, [
        charge(2**70, model="\ud800" + "x" * 500, usage=Usage(2**62, -5), request_id="\x00"),
        charge(-3),
    ])  # fmt: skip
    first, other = spending(one.database, ("model",))
    assert (first.micro_usd, first.input, first.output) == (MAX_MICRO_USD, 10**12, 0)
    assert first.group == {"model": "?" + "x" * 199}
    assert other.micro_usd == 0
    one.close()


def test_what_is_not_known_to_cost_is_counted_apart(tmp_path: Path) -> None:
    one = book(tmp_path)
    one.settle(None, [
        charge(None, provider="vllm"),
        charge(8, provider="openai", partial=True, estimated=True, outcome="client_gone"),
        charge(3, provider="openai", key="key_2", tenant="t2", session="s9", tier="batch"),
    ])  # fmt: skip
    openai, vllm = spending(one.database, ("provider",))
    assert (openai.group, openai.micro_usd, openai.attempts) == ({"provider": "openai"}, 11, 2)
    assert (openai.partial, openai.partial_micro_usd) == (1, 8)
    assert (openai.estimated, openai.estimated_micro_usd) == (1, 8)
    assert (vllm.micro_usd, vllm.unpriced) == (0, 1)
    assert (vllm.input, vllm.cache_read, vllm.cache_write, vllm.output) == (100, 40, 20, 10)
    [other] = spending(one.database, ("key", "tier"), Filter(tenant="t2", session="s9"))
    assert other.group == {"key": "key_2", "tier": "batch"}
    assert spending(one.database, (), Filter(since_s=NOON + 1)) == []
    assert spending(one.database, (), Filter(until_s=NOON)) == []
    assert one.spent("key_1", budget_from("1usd")) == 8
    one.close()


def test_standing_tells_each_budget_and_the_session_that_spent_most(tmp_path: Path) -> None:
    one = book(tmp_path)
    of = key("0.001usd", "session=0.0001usd/day", "tier:batch=0.0005usd")
    one.settle(None, [charge(40, session="s1"), charge(60, session="s2", tier="batch")])
    one.reserve(of, "s2", "batch", 10)
    renews_s = NOON + DAY / 2
    assert one.standing(of) == [
        Standing("0.001usd", 1000, 100, 10, 890, None),
        Standing("session=0.0001usd/day", 100, 60, 10, 30, renews_s),
        Standing("tier:batch=0.0005usd", 500, 60, 10, 430, None),
    ]
    assert [row.spent_micro_usd for row in one.standing(key("session=1usd", id="k9"))] == [0]
    one.close()


def test_old_charges_go_and_budgets_that_never_renew_remember(tmp_path: Path) -> None:
    clock = Clock()
    one = book(tmp_path, clock)
    of = key("0.0001usd", "1usd/day")
    one.settle(None, [charge(100, at_unix_s=NOON - 40 * DAY), charge(5, key="other")])
    one.reserve(key("1usd", id="k2"), "s", "standard", 7)
    assert one.retain(NOON - 30 * DAY) == 1
    assert [row.micro_usd for row in spending(one.database, ())] == [5]
    assert refused(one, of, 1).budget == "0.0001usd"
    with one.database.reading() as connection:
        kept = connection.exec_driver_sql("select scope, window from tallies where key = 'key_1'")
        assert sorted(kept.all()) == [("key", ""), ("tier:standard", "")]
    assert one.reserved() == 7
    clock.now_s += FORGOTTEN_AFTER_S + 1
    one.retain(NOON)
    assert one.reserved() == 0
    one.close()


def test_a_book_of_a_later_release_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    book(tmp_path).close()
    connection = sqlite3.connect(tmp_path / FILE)
    connection.execute(f"pragma user_version = {VERSION + 1}")
    connection.close()
    with pytest.raises(StoreVersionError, match="newer reflexarc"):
        book(tmp_path)


def test_a_file_that_is_no_book_is_said(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"no database" * 1000)
    with pytest.raises(StoreError, match=r"accounts\.db cannot be used"):
        book(tmp_path)


def test_the_book_is_its_owners_alone(tmp_path: Path) -> None:
    one = book(tmp_path / "state")
    one.reserve(key("1usd"), "s", "standard", 1)
    assert (tmp_path / "state" / FILE).stat().st_mode & 0o077 == 0
    assert (tmp_path / "state" / OWNERS).stat().st_mode & 0o077 == 0
    one.close()


def test_a_book_that_was_removed_is_begun_anew(tmp_path: Path) -> None:
    one = book(tmp_path)
    one.settle(None, [charge(5)])
    for path in tmp_path.glob(f"{FILE}*"):
        path.unlink()
    one.settle(None, [charge(7)])
    other = book(tmp_path)
    assert [row.micro_usd for row in spending(other.database, ())] == [7]
    other.close()
    one.close()


def test_closing_lets_go_of_what_was_reserved(tmp_path: Path) -> None:
    one, other = book(tmp_path), book(tmp_path)
    one.reserve(key("1usd"), "s", "standard", 100)
    other.reserve(key("1usd"), "s", "standard", 10)
    assert other.reserved() == 110
    one.close()
    assert other.reserved() == 10
    other.close()
    assert list((tmp_path / OWNERS).iterdir()) == []


def test_what_a_living_process_reserved_is_left_alone(tmp_path: Path) -> None:
    one, other = book(tmp_path), book(tmp_path)
    one.reserve(key("0.0001usd"), "s", "standard", 100)
    assert other.forget_gone() == 0
    refused(other, key("0.0001usd"), 1)
    assert one.reserved() == 100
    one.close()
    other.close()


HOLDER = """
import sys, time
from pathlib import Path
from reflexarc.accounts.book import Book
from reflexarc.accounts.budgets import budgets_from
from reflexarc.accounts.keys import VirtualKey
book = Book.open(Path(sys.argv[1]), lambda: float(sys.argv[2]))
key = VirtualKey("key_1", "one", "t1", budgets=budgets_from(("0.0001usd",)))
book.reserve(key, "s", "standard", 100)
print("reserved", flush=True)
sys.stdin.read()
"""


def holder(directory: Path) -> subprocess.Popen[str]:
    """A process that has reserved all of a budget, and waits."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(directory / FILE), str(NOON)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "reserved\n"
    return process


@pytest.mark.parametrize("when", ["at the next opening", "when it stands in the way"])
def test_what_a_killed_process_reserved_goes(tmp_path: Path, when: str) -> None:
    waiting = book(tmp_path)
    with holder(tmp_path) as process:
        refused(waiting, key("0.0001usd"), 1)
        os.kill(process.pid, signal.SIGSTOP)  # asleep is not gone
        refused(waiting, key("0.0001usd"), 1)
        process.kill()
        process.wait()
        if when == "at the next opening":
            book(tmp_path).close()
            assert waiting.reserved() == 0
        waiting.reserve(key("0.0001usd"), "s", "standard", 100)
    assert waiting.reserved() == 100
    assert waiting.forget_gone() == 0
    waiting.close()
    assert list((tmp_path / OWNERS).iterdir()) == []


SPENDER = """
import sys
from pathlib import Path
from reflexarc.accounts.book import Book
from reflexarc.accounts.budgets import budgets_from
from reflexarc.accounts.keys import VirtualKey
from reflexarc.steps.errors import BudgetError
from tests.accounts.booking import charge
book = Book.open(Path(sys.argv[1]), lambda: float(sys.argv[2]))
key = VirtualKey("key_1", "one", "t1", budgets=budgets_from(("0.001usd",)))
print("ready", flush=True)
sys.stdin.readline()
admitted = 0
for number in range(200):
    try:
        made = book.reserve(key, "s", "standard", 10)
    except BudgetError:
        continue
    admitted += 1
    book.settle(made, [charge(7, gateway=sys.argv[3], number=number)])
book.close()
print(admitted, flush=True)
"""


def test_two_processes_on_one_book_are_exact_together(tmp_path: Path) -> None:
    book(tmp_path).close()
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SPENDER, str(tmp_path / FILE), str(NOON), name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            cwd=Path(__file__).parents[2],
        )
        for name in ("a", "b")
    ]  # fmt: skip
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    admitted: list[int] = []

    def run(process: subprocess.Popen[str]) -> None:
        said, _ = process.communicate("go\n")
        admitted.append(int(said))

    threads = [threading.Thread(target=run, args=(process,)) for process in processes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    one = book(tmp_path)
    # Each reserves 10 and spends 7 of 1,000: as long as 10 are left one more is let in.
    assert sum(admitted) == 142
    assert (one.reserved(), one.spent("key_1", budget_from("0.001usd"))) == (0, 994)
    one.close()


def test_after_any_history_nothing_is_left_reserved_and_what_was_spent_is_what_was_charged(
    tmp_path: Path,
) -> None:
    draw = random.Random(7)
    one = book(tmp_path)
    of = [
        key("0.5usd", "session=0.01usd/day", "tier:batch=0.2usd/month", id=f"key_{n}")
        for n in range(3)
    ]
    standing: dict[str, tuple[Reservation, int]] = {}
    charged = {one_key.id: 0 for one_key in of}
    for number in range(1500):
        who = draw.choice(of)
        session, tier = f"s{draw.randrange(40)}", draw.choice(("batch", "standard"))
        try:
            made = one.reserve(who, session, tier, draw.randrange(3000))
        except BudgetError:
            continue
        standing[made.id] = (made, number)
        if draw.random() < 0.8:
            done, at = standing.pop(draw.choice(list(standing)))
            made_up = [
                charge(
                    draw.randrange(done.micro_usd + 1), number=at, attempt=n, key=done.key,
                    session=done.session, tier=done.tier, usage=Usage(1, 1),
                )
                for n in range(draw.randrange(3))
            ][: 1 + (draw.random() < 0.1)]  # fmt: skip
            charged[done.key] += sum(cost.micro_usd or 0 for cost in made_up)
            for _ in range(draw.choice((1, 1, 2, 3))):
                one.settle(done, made_up)
        elif draw.random() < 0.5:
            done, _ = standing.pop(draw.choice(list(standing)))
            one.release(done)
        assert one.reserved() == sum(held.micro_usd for held, _ in standing.values())
    for held, _ in standing.values():
        one.release(held)
    assert one.reserved() == 0
    for who in of:
        assert one.spent(who.id, who.budgets[0]) == charged[who.id]
    assert sum(row.micro_usd for row in spending(one.database, ("key",))) == sum(charged.values())
    one.close()


def test_an_owners_file_that_was_swept_away_is_an_owner_that_is_gone(tmp_path: Path) -> None:
    one, other = book(tmp_path), book(tmp_path)
    one.reserve(key("1usd"), "s", "standard", 100)
    with one.database.writing() as connection:
        connection.execute(reservations.update().values(owner="1234:../../etc/passwd"))
    assert other.forget_gone() == 1
    one.close()
    other.close()
