"""What is purged stays away, also where it is still on its way to the store."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reflexarc.store.place import secret
from reflexarc.store.purging import Conditions, doomed, empty, files_of, held, remove
from reflexarc.store.recording import Recording
from reflexarc.store.store import Store
from tests.store.stepping import BEGAN_S, at, calls, record, result, says, user

LATER_S = BEGAN_S + 100.0
OPENING = [user("I am Jana Novakova")]


def sessions(directory: Path) -> int:
    store = Store.open(directory / "reflexarc.db")
    with store.reading() as connection:
        found = doomed(connection, Conditions(), secret(directory))
    store.close()
    return len(found.sessions)


def purge(directory: Path, **conditions: Any) -> int:
    """At `LATER_S`; how many sessions went. Asserts that the files hold nothing of them."""
    store = Store.open(directory / "reflexarc.db")
    gone = remove(store, Conditions(**conditions), secret(directory), "test", lambda: LATER_S)
    assert empty(store, gone.values).fault == ""
    store.close()
    return len(gone.sessions)


def session_id(directory: Path) -> str:
    store = Store.open(directory / "reflexarc.db")
    with store.reading() as connection:
        [found] = doomed(connection, Conditions(), secret(directory)).sessions
    store.close()
    return found


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    return at(tmp_path)


Waiting = Callable[[Recording], None]


def continues(recording: Recording) -> None:
    record(recording, [*OPENING, says("Yes?"), user("Novakova again")], says("Ok."))


def asks_again(recording: Recording) -> None:
    record(recording, OPENING, says("Novakova, yes?"))


def opens(recording: Recording) -> None:
    record(recording, [user("Novakova, another matter")], says("Ok."), session="mine")


@pytest.mark.parametrize("waiting", [continues, asks_again, opens])
def test_steps_of_a_purged_tenant_that_still_wait_are_not_written(
    tmp_path: Path, recording: Recording, waiting: Waiting
) -> None:
    record(recording, OPENING, says("Yes?"))
    record(recording, [user("Somebody else")], says("Yes?"), tenant="other")
    assert recording.flush().steps == 2
    waiting(recording)
    assert purge(tmp_path, tenants=["t1"]) == 1
    written = recording.flush()
    assert (written.fault, written.steps) == ("", 0)
    assert sessions(tmp_path) == 1
    assert held(files_of(tmp_path / "reflexarc.db"), ["Novakova"]) == []
    recording.close()


def test_a_tenant_of_whom_nothing_is_written_yet_is_purged_too(
    tmp_path: Path, recording: Recording
) -> None:
    recording.flush()
    opens(recording)
    assert purge(tmp_path, tenants=["t1"]) == 0
    assert recording.flush().steps == 0
    recording.close()


@pytest.mark.parametrize("waiting", [continues, asks_again])
def test_a_conversation_without_a_name_is_known_by_its_messages(
    tmp_path: Path, recording: Recording, waiting: Waiting
) -> None:
    record(recording, OPENING, says("Yes?"))
    recording.flush()
    waiting(recording)
    record(recording, [user("Somebody else")], says("Yes?"))
    record(recording, OPENING, says("Yes?"), tenant="other")
    assert purge(tmp_path, session=session_id(tmp_path)) == 1
    assert recording.flush().steps == 2
    assert sessions(tmp_path) == 2
    recording.close()


def test_another_attempt_at_an_earlier_step_belongs_to_the_purged_conversation(
    tmp_path: Path, recording: Recording
) -> None:
    first = [*OPENING, calls("find", {"id": "7"}), result("found")]
    record(recording, OPENING, calls("find", {"id": "7"}))
    record(recording, first, says("There."))
    recording.flush()
    asks_again(recording)
    assert purge(tmp_path, session=session_id(tmp_path)) == 1
    assert recording.flush().steps == 0
    recording.close()


def test_a_session_is_known_by_its_name_however_it_is_recorded(
    tmp_path: Path, recording: Recording
) -> None:
    recording.flush()
    for record_as in ("full", "hashed"):
        record(recording, OPENING, says("Yes?"), session="mine", record=record_as)
    record(recording, OPENING, says("Yes?"), session="yours")
    assert purge(tmp_path, session="mine") == 0
    assert recording.flush().steps == 1
    recording.close()


def test_what_begins_after_the_purge_is_recorded(tmp_path: Path, recording: Recording) -> None:
    record(recording, OPENING, says("Yes?"))
    recording.flush()
    purge(tmp_path, tenants=["t1"])
    record(recording, OPENING, says("Yes?"), began_s=LATER_S + 1)
    assert recording.flush().steps == 1
    recording.close()


def test_a_day_takes_what_began_before_it_and_leaves_what_went_on_after(
    tmp_path: Path, recording: Recording
) -> None:
    day_s = BEGAN_S + 50
    record(recording, OPENING, says("Yes?"), session="old")
    record(recording, OPENING, says("Yes?"), session="on", began_s=BEGAN_S)
    record(recording, [*OPENING, says("Yes?"), user("x")], says("y"), session="on", began_s=day_s)
    recording.flush()
    record(recording, [*OPENING, says("Yes?"), user("x")], says("z"), session="on")
    record(recording, OPENING, says("Yes?"), session="new")
    record(recording, OPENING, says("Yes?"), session="newer", began_s=day_s + 1)
    assert purge(tmp_path, before_s=day_s) == 1
    assert recording.flush().steps == 2
    recording.close()


def test_keys_names_and_tools_are_looked_for_too(tmp_path: Path, recording: Recording) -> None:
    tools = [{"type": "function", "function": {"name": "f", "description": "For Jana-17 alone"}}]
    answer = calls("find", {"by": {"key-4711": "x"}})
    record(recording, OPENING, answer, more={"tools": tools}, session="sess-99", task="task-98")
    recording.flush()
    store = Store.open(tmp_path / "reflexarc.db")
    gone = remove(store, Conditions(), secret(tmp_path), "test", lambda: LATER_S)
    assert {"For Jana-17 alone", "Jana-17", "key-4711", "sess-99", "task-98"} <= gone.values
    assert {"key-4711", "sess-99", "task-98"} <= gone.private
    assert "For Jana-17 alone" not in gone.private
    assert empty(store, gone.values).fault == ""
    store.close()
    recording.close()
