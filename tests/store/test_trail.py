"""The audit trail: a chain in which nothing can be changed unseen."""

import multiprocessing
import sqlite3
from pathlib import Path

import pytest

from reflexarc.store.records import TrailEntry
from reflexarc.store.store import Store
from reflexarc.store.trail import START, Verified, append, links, verify


def entry(number: int, who: str = "gateway") -> TrailEntry:
    return TrailEntry(f"{who}-{number}", 1_800_000_000.0 + number, "act", who, {"tool": "find"})


def database(directory: Path, count: int = 5) -> Path:
    path = directory / "reflexarc.db"
    store = Store.open(path)
    with store.writing() as connection:
        append(connection, [entry(number) for number in range(count)])
    store.close()
    return path


def checked(path: Path, head: str | None = None) -> Verified:
    with Store.open(path, create=False).reading() as connection:
        return verify(connection, head)


def test_a_chain_as_written_holds(tmp_path: Path) -> None:
    found = checked(database(tmp_path))
    assert (found.entries, found.fault) == (5, "")
    assert found.head != START


def test_the_same_entry_handed_over_twice_is_written_once(tmp_path: Path) -> None:
    path = database(tmp_path)
    with Store.open(path).writing() as connection:
        assert append(connection, [entry(1), entry(7), entry(7)]) == [
            "gateway-1", "gateway-7", "gateway-7",
        ]  # fmt: skip
    assert checked(path).entries == 6


@pytest.mark.parametrize(
    ("tampering", "fault"),
    [
        ("update trail set evidence = '{}' where seq = 3", "entry 3 (act) was changed"),
        ("update trail set who = 'x' where seq = 1", "entry 1 (act) was changed"),
        ("update trail set at_s = at_s + 1 where seq = 5", "entry 5 (act) was changed"),
        ("update trail set id = 'other' where seq = 2", "entry 2 (act) was changed"),
        ("update trail set hash = 'ab' where seq = 2", "entry 2 (act) was changed"),
        ("update trail set previous = 'ab' where seq = 2", "entry 2 does not follow entry 1"),
        ("delete from trail where seq = 3", "entry 3 is missing"),
        ("delete from trail where seq = 1", "entry 1 is missing"),
        (
            "update trail set seq = 100 where seq = 2; update trail set seq = 2 where seq = 3;"
            "update trail set seq = 3 where seq = 100",
            "entry 2 does not follow entry 1",
        ),
        (
            "delete from trail where seq = 3; update trail set seq = seq - 1 where seq > 3",
            "entry 3 does not follow entry 2",
        ),
    ],
)
def test_every_kind_of_tampering_names_the_first_entry_that_does_not_fit(
    tmp_path: Path, tampering: str, fault: str
) -> None:
    path = database(tmp_path)
    connection = sqlite3.connect(path)
    connection.executescript(tampering)
    connection.close()
    assert fault in checked(path).fault


def test_a_chain_that_was_cut_shows_against_a_head_noted_before(tmp_path: Path) -> None:
    path = database(tmp_path)
    head = checked(path).head
    connection = sqlite3.connect(path)
    connection.executescript("delete from trail where seq > 3")
    connection.close()
    assert checked(path).fault == ""
    assert "cut off" in checked(path, head).fault


def test_an_old_head_is_found_in_a_chain_that_went_on(tmp_path: Path) -> None:
    path = database(tmp_path)
    head = checked(path).head
    with Store.open(path).writing() as connection:
        append(connection, [entry(9)])
    assert checked(path, head).fault == ""


def write_many(path: str, who: str) -> None:
    store = Store.open(Path(path), busy_ms=20_000)
    for number in range(40):
        with store.writing() as connection:
            append(connection, [entry(number, who)])


def test_two_processes_share_one_chain(tmp_path: Path) -> None:
    path = database(tmp_path, 0)
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=write_many, args=(str(path), who)) for who in ("a", "b")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
        assert writer.exitcode == 0
    assert checked(path).fault == ""
    with Store.open(path).reading() as connection:
        assert len(list(links(connection))) == 80
        assert [link.seq for link in links(connection, last=3)] == [78, 79, 80]
