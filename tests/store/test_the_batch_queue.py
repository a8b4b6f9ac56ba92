"""The batch queue: in order, fair between tenants, bounded, whole after any end of a process."""

import sqlite3
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reflexarc.steps.errors import QueueFullError, StoreError, TooLargeError
from reflexarc.store.queued import MAX_TRIES, Queue, forget_queued
from reflexarc.store.queued_entries import Entry, size_of

START_S = 1_790_000_000.0
SECRET = "sk-do-not-write-me-down"


class Clock:
    def __init__(self) -> None:
        self.now_s = START_S

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


Opened = Callable[..., Queue]


@pytest.fixture
def opened(tmp_path: Path, clock: Clock) -> Iterator[Opened]:
    queues: list[Queue] = []

    def open_queue(**more: Any) -> Queue:
        queues.append(Queue.open(tmp_path / "state" / "queue.db", clock, **more))
        return queues[-1]

    yield open_queue
    for queue in queues:
        queue.close()


def entry(tenant: str = "t", identity: str = "", body: bytes = b"{}", **more: Any) -> Entry:
    fields: dict[str, Any] = {"key": "k1", "route": "/agent", "path": "/v1/chat/completions"}
    fields["headers"] = ()
    return Entry(identity, tenant, body=body, **{**fields, **more})


def take(queue: Queue, owner: str = "me") -> Entry:
    taken = queue.take(owner)
    assert taken is not None
    return taken


def test_an_entry_goes_its_way_and_its_answer_is_kept(opened: Opened, clock: Clock) -> None:
    queue = opened()
    put = queue.put(entry(headers=(("content-type", "application/json"),)))
    assert (put.state, put.put_unix_s, len(put.id)) == ("waiting", START_S, 32)
    clock.now_s += 5
    taken = take(queue)
    assert (taken.id, taken.body, taken.state, taken.tries) == (put.id, b"{}", "running", 1)
    assert queue.take("me") is None
    clock.now_s += 2
    assert queue.done(put.id, 200, [("content-type", "application/json")], b'{"a":1}')
    found = queue.of(put.id, "t")
    assert found is not None
    assert (found.state, found.status, found.answer) == ("done", 200, b'{"a":1}')
    assert found.answer_headers == (("content-type", "application/json"),)
    assert found.body == b""
    assert (found.taken_unix_s, found.finished_unix_s) == (START_S + 5, START_S + 7)


def test_it_is_on_disk_and_for_its_owner_alone(opened: Opened, tmp_path: Path) -> None:
    put = opened().put(entry())
    again = opened()
    assert again.of(put.id, "t") == put
    path = tmp_path / "state" / "queue.db"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_another_tenants_entry_is_not_there(opened: Opened) -> None:
    queue = opened()
    put = queue.put(entry("a"))
    assert queue.of(put.id, "b") is None
    assert queue.cancel(put.id, "b") is False
    assert queue.of("none", "a") is None
    with pytest.raises(StoreError, match="another entry of this id"):
        queue.put(entry("b", put.id))


def test_the_same_id_again_is_the_entry_that_is_there(opened: Opened) -> None:
    queue = opened()
    put = queue.put(entry(identity="mine"))
    take(queue)
    queue.done("mine", 200, (), b"ok")
    assert queue.put(entry(identity="mine", body=b"other")).answer == b"ok"
    assert queue.counts().done == 1
    assert put.id == "mine"


def test_no_key_is_ever_written_down(opened: Opened, tmp_path: Path) -> None:
    queue = opened()
    names = (
        "Authorization", "x-api-key", "API-Key", "x-goog-api-key", "cookie", "proxy-authorization",
        "x-amz-security-token", "x-something-new",
    )  # fmt: skip
    headers = tuple((name, SECRET) for name in names)
    put = queue.put(
        entry(
            headers=(*headers, ("Content-Type", "application/json"), ("anthropic-beta", "x")),
            path=f"/v1beta/models/m:generateContent?key={SECRET}&alt=sse&KEY={SECRET}",
        )
    )
    assert put.headers == (("Content-Type", "application/json"), ("anthropic-beta", "x"))
    assert put.path == "/v1beta/models/m:generateContent?alt=sse"
    take(queue)
    queue.done(put.id, 200, [("set-cookie", SECRET), ("x-request-id", "r")], b"")
    found = queue.of(put.id, "t")
    assert found is not None
    assert found.answer_headers == (("x-request-id", "r"),)
    for path in (tmp_path / "state").iterdir():
        assert SECRET.encode() not in path.read_bytes()


def test_tenants_take_turns_however_many_entries_one_has(opened: Opened) -> None:
    queue = opened()
    for number in range(4):
        queue.put(entry("many", f"m{number}"))
    queue.put(entry("few", "f0"))
    queue.put(entry("one", "o0"))
    queue.put(entry("few", "f1"))
    order = [take(queue).id for _ in range(7)]
    assert order == ["m0", "f0", "o0", "m1", "f1", "m2", "m3"]


def test_a_tenant_that_comes_later_does_not_wait_behind_the_others_pile(opened: Opened) -> None:
    queue = opened()
    for number in range(5):
        queue.put(entry("many", f"m{number}"))
    assert take(queue).id == "m0"
    queue.put(entry("late", "l0"))
    assert queue.place("l0") == 0
    assert take(queue).id == "l0"


def test_what_is_given_back_keeps_its_place_until_its_tries_are_spent(opened: Opened) -> None:
    queue = opened()
    queue.put(entry(identity="first"))
    queue.put(entry(identity="second"))
    for number in range(1, MAX_TRIES + 1):
        assert (take(queue).id, queue.place("second")) == ("first", 0)
        assert queue.again("first") is (number < MAX_TRIES)
    found = queue.of("first", "t")
    assert found is not None
    assert (found.state, found.tries) == ("running", MAX_TRIES)
    assert queue.done("first", 502, (), b"gave up")
    assert take(queue).id == "second"


def test_only_what_runs_is_given_back(opened: Opened) -> None:
    queue = opened()
    queue.put(entry(identity="a"))
    assert queue.again("a") is False
    assert queue.again("none") is False
    assert take(queue).id == "a"
    queue.done("a", 200, (), b"")
    assert queue.again("a") is False


def test_the_first_answer_is_kept(opened: Opened) -> None:
    queue = opened()
    queue.put(entry(identity="a"))
    take(queue, "slow")
    assert queue.recover(lambda owner: owner != "slow") == 1
    take(queue, "fast")
    assert queue.done("a", 200, (), b"first")
    assert queue.done("a", 200, (), b"late") is False
    found = queue.of("a", "t")
    assert found is not None
    assert found.answer == b"first"


@pytest.mark.parametrize("running", [False, True])
def test_what_is_cancelled_is_not_taken_and_its_answer_is_not_kept(
    opened: Opened, running: bool
) -> None:
    queue = opened()
    queue.put(entry(identity="a", body=b"a secret plan"))
    if running:
        take(queue)
    assert queue.cancel("a", "t")
    assert queue.cancel("a", "t") is False
    assert queue.take("me") is None
    assert queue.done("a", 200, (), b"late") is False
    found = queue.of("a", "t")
    assert found is not None
    assert (found.state, found.answer, found.body) == ("cancelled", b"", b"")


def test_entries_are_bounded_and_finished_ones_make_room(opened: Opened) -> None:
    queue = opened(max_entries=3, tenant_share=1.0)
    for number in range(3):
        queue.put(entry(identity=f"e{number}"))
    take(queue)  # what runs counts too
    with pytest.raises(QueueFullError, match="the batch queue has 3 requests, its most") as full:
        queue.put(entry())
    assert (full.value.status, full.value.retry_after_s) == (429, 60.0)
    queue.done("e0", 200, (), b"")
    queue.put(entry())


def test_one_tenant_has_its_share_and_others_still_get_in(opened: Opened) -> None:
    queue = opened(max_entries=4, tenant_share=0.5)
    queue.put(entry("a"))
    queue.put(entry("a"))
    with pytest.raises(QueueFullError, match="share of one key has 2 requests"):
        queue.put(entry("a"))
    queue.put(entry("b"))
    queue.put(entry("b"))
    with pytest.raises(QueueFullError, match="the batch queue has 4"):
        queue.put(entry("c"))


def test_bytes_are_bounded_answers_too(opened: Opened) -> None:
    one = size_of(entry(identity="x" * 32, body=b"b" * 1000))
    queue = opened(max_bytes=one * 4, tenant_share=0.5)
    put = queue.put(entry("a", body=b"b" * 1000))
    queue.put(entry("a", body=b"b" * 1000))
    with pytest.raises(QueueFullError, match=f"holds {2 * one:,}, and this needs {one:,}"):
        queue.put(entry("a", body=b"b" * 1000))
    take(queue)
    queue.done(put.id, 200, (), b"c" * 1000)
    with pytest.raises(QueueFullError):
        queue.put(entry("a", body=b"b" * 1000))
    queue.put(entry("b", body=b"b" * 1000))
    assert queue.counts().size_bytes == 3 * one
    with pytest.raises(TooLargeError, match="may hold"):
        queue.put(entry("c", body=b"b" * one * 5))


def test_finished_entries_go_after_their_retention_and_waiting_ones_never(
    opened: Opened, clock: Clock
) -> None:
    queue = opened(retention_s=100.0)
    for identity in ("a", "b", "c"):
        queue.put(entry(identity=identity))
    take(queue)
    queue.done("a", 200, (), b"")
    queue.cancel("b", "t")
    clock.now_s += 100
    assert queue.retain() == 0
    clock.now_s += 1
    assert queue.retain() == 2
    assert queue.of("a", "t") is None
    assert queue.counts().waiting == 1


def test_how_fast_it_drains_and_when_one_starts(opened: Opened, clock: Clock) -> None:
    queue = opened()
    for number in range(8):
        queue.put(entry(identity=f"e{number}"))
    assert queue.starts_in_s("e0", clock.now_s) == 0
    assert queue.starts_in_s("e5", clock.now_s) is None
    assert queue.drained_per_s(clock.now_s) == 0
    for number in range(4):
        take(queue)
        clock.now_s += 10
        queue.done(f"e{number}", 200, (), b"")
    assert queue.drained_per_s(clock.now_s) == pytest.approx(4 / 40)
    assert queue.place("e7") == 3
    assert queue.starts_in_s("e7", clock.now_s) == pytest.approx(30)
    assert queue.starts_in_s("e0", clock.now_s) is None
    clock.now_s += 601
    assert queue.drained_per_s(clock.now_s) == 0


def test_entries_of_owners_that_are_gone_wait_again_in_their_old_places(opened: Opened) -> None:
    queue = opened()
    for identity in ("a", "b", "c"):
        queue.put(entry(identity=identity))
    take(queue, "dead")
    take(queue, "alive")
    assert queue.recover(lambda owner: owner == "alive") == 1
    assert queue.counts().running == 1
    assert [take(queue).id, take(queue).id] == ["a", "c"]
    assert queue.recover(lambda _: True) == 0


def test_an_entry_that_ends_its_process_each_time_is_given_up(opened: Opened) -> None:
    queue = opened()
    queue.put(entry(identity="poison"))
    for _ in range(MAX_TRIES):
        take(queue, "dead")
        queue.recover(lambda _: False)
    found = queue.of("poison", "t")
    assert found is not None
    assert (found.state, found.status, found.answer) == ("done", 500, b"")
    assert queue.take("me") is None


def test_a_purge_takes_every_byte_of_it(opened: Opened, tmp_path: Path) -> None:
    queue = opened()
    queue.put(entry("a", "holds", body=b'{"q": "M\\u00fcller owes"}'))
    queue.put(entry("b", "theirs", body=b"of tenant b"))
    queue.put(entry("a", "kept", body=b"something else"))
    state = tmp_path / "state"
    assert forget_queued(state, ["Müller"], ["b"], unix_time=Clock()) == 2
    assert [take(queue).id, queue.take("me")] == ["kept", None]
    for path in state.iterdir():
        assert b"owes" not in path.read_bytes()
        assert b"of tenant b" not in path.read_bytes()
    assert forget_queued(tmp_path / "none", ["x"], unix_time=Clock()) == 0


def test_a_reader_that_stays_keeps_a_purge_from_being_proven(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reflexarc.store.queued_file.BUSY_MS", 50)
    queue = opened()
    queue.put(entry("a", "x", body=b"of tenant a"))
    reader = sqlite3.connect(tmp_path / "state" / "queue.db", isolation_level=None)
    reader.execute("begin")
    reader.execute("select count(*) from entries").fetchone()
    with pytest.raises(StoreError, match="the rows are gone, but another process"):
        queue.forget([], ["a"])
    reader.execute("rollback")
    reader.close()
    assert queue.of("x", "a") is None
    assert queue.forget([], ["a"]) == 0


def test_a_file_of_another_release_or_none_at_all_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "queue.db"
    with sqlite3.connect(path) as connection:
        connection.execute("pragma user_version = 99")
    connection.close()
    with pytest.raises(StoreError, match="another release"):
        Queue.open(path, Clock())
    path.write_bytes(b"this is no database " * 100)
    with pytest.raises(StoreError, match="cannot be used"):
        Queue.open(path, Clock())


WORKER = """
import sys, time
from pathlib import Path
from reflexarc.store.queued import Queue
queue = Queue.open(Path(sys.argv[1]), time.time)
print("ready", flush=True)
sys.stdin.readline()
while (entry := queue.take(sys.argv[2])) is not None:
    print(entry.id, flush=True)
    if sys.argv[3] == "hang":
        sys.stdin.readline()
    queue.done(entry.id, 200, (), sys.argv[2].encode())
"""


def worker(path: Path, owner: str, what: str) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        (sys.executable, "-c", WORKER, str(path), owner, what),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_two_processes_take_each_entry_once(opened: Opened, tmp_path: Path) -> None:
    queue = opened()
    ids = {queue.put(entry(f"t{number % 7}")).id for number in range(120)}
    path = tmp_path / "state" / "queue.db"
    workers = [worker(path, owner, "work") for owner in ("one", "two")]
    for process in workers:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    taken = [process.communicate(timeout=60)[0].split() for process in workers]
    assert [process.returncode for process in workers] == [0, 0]
    assert sorted(taken[0] + taken[1]) == sorted(ids)
    assert queue.counts().done == 120


def test_killed_while_it_runs_an_entry_it_loses_none(opened: Opened, tmp_path: Path) -> None:
    queue = opened()
    for identity in ("a", "b"):
        queue.put(entry(identity=identity))
    process = worker(tmp_path / "state" / "queue.db", "victim", "hang")
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "a\n"
    finally:
        process.kill()
        process.communicate()
    assert queue.counts().running == 1
    assert queue.recover(lambda owner: owner != "victim") == 1
    first, second = take(queue), take(queue)
    assert [(first.id, first.tries), (second.id, second.tries)] == [("a", 2), ("b", 1)]


OPERATIONS = st.lists(
    st.tuples(st.sampled_from(["put", "put", "take", "done", "again", "cancel"]),
              st.integers(0, 3), st.integers(0, 30)),
    max_size=40,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(operations=OPERATIONS)
def test_places_foretell_the_order_and_turns_are_fair_after_any_history(
    operations: list[tuple[str, int, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    queue = Queue.open(tmp_path_factory.mktemp("queue") / "queue.db", Clock())
    try:
        tenants: dict[str, str] = {}
        for what, whose, which in operations:
            known = list(tenants)
            identity = known[which % len(known)] if known else "none"
            if what == "put":
                identity = queue.put(entry(f"t{whose}", f"e{len(tenants)}")).id
                tenants[identity] = f"t{whose}"
            elif what == "take":
                queue.take("me")
            elif what == "done":
                queue.done(identity, 200, (), b"")
            elif what == "again":
                queue.again(identity)
            else:
                queue.cancel(identity, f"t{whose}")
        foretold = {
            place: identity for identity in tenants if (place := queue.place(identity)) is not None
        }
        waiting = queue.counts().waiting
        assert sorted(foretold) == list(range(waiting))
        order: list[str] = []
        while (taken := queue.take("me")) is not None:
            order.append(taken.id)
        assert order == [foretold[place] for place in range(waiting)]
        check_fairness([tenants[identity] for identity in order])
        numbers: dict[str, list[int]] = defaultdict(list)
        for identity in order:
            numbers[tenants[identity]].append(int(identity[1:]))
        assert all(each == sorted(each) for each in numbers.values())
    finally:
        queue.close()


def check_fairness(order: list[str]) -> None:
    """As long as two tenants both have entries left, neither is more than one ahead."""
    left = {tenant: order.count(tenant) for tenant in order}
    had = dict.fromkeys(left, 0)
    for tenant in order:
        had[tenant] += 1
        left[tenant] -= 1
        open_ = [had[other] for other in had if left[other]]
        assert not open_ or max(open_) - min(open_) <= 1
