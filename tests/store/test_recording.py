"""Writing what is handed over, whatever happens to the store."""

import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from reflexarc.steps.errors import StoreError, StoreVersionError
from reflexarc.store.records import Audited, Judged, Prediction, TrailEntry
from reflexarc.store.store import Store
from reflexarc.store.trail import verify
from tests.store.stepping import BEGAN_S, at, calls, record, says, user


def entry(identity: str) -> TrailEntry:
    return TrailEntry(identity, BEGAN_S, "act", "gateway", {"tool": "find"})


def count(directory: Path, table: str) -> int:
    connection = sqlite3.connect(directory / "reflexarc.db")
    try:
        return int(connection.execute(f"select count(*) from {table}").fetchone()[0])
    finally:
        connection.close()


def _said_by_child(code: str, directory: Path) -> str:
    """What a process of its own prints; it fails where one of its assertions does."""
    child = subprocess.run(
        [sys.executable, "-c", code, str(directory)], capture_output=True, text=True, timeout=60
    )
    assert child.returncode == 0, child.stderr
    return child.stdout


def prediction(secret: str) -> Prediction:
    return Prediction(
        position=0, recorded_tool="find", recorded={"id": secret, "by": "x"},
        proposed_tool="find", proposed={"id": "other", "by": "x"}, effect="read", thought=False,
        named=True, exact=False, among_three=False, read_exact=False, read_among_three=False,
        confidence=0.5, reason="uncertain", acted={"0.05": False}, would_act=False, cpu_ms=0.4,
    )  # fmt: skip


def test_a_store_opens_from_nothing_and_again(tmp_path: Path) -> None:
    for _ in range(2):
        Store.open(tmp_path / "reflexarc.db").close()
    assert (tmp_path / "reflexarc.db").stat().st_mode & 0o777 == 0o600
    assert count(tmp_path, "alembic_version") == 1


def test_a_store_of_a_later_release_is_refused_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "reflexarc.db"
    Store.open(path).close()
    connection = sqlite3.connect(path)
    connection.execute("update alembic_version set version_num = '9999'")
    connection.commit()
    connection.close()
    with pytest.raises(StoreVersionError, match="9999"):
        Store.open(path)
    assert "9999" in at(tmp_path).flush().fault


def test_a_store_that_is_not_there_is_not_made_by_reading(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="nothing was recorded yet"):
        Store.open(tmp_path / "reflexarc.db", create=False)


def test_hashed_keeps_no_value_and_full_keeps_them(tmp_path: Path) -> None:
    planted = ["Zanzibar77", "ada@example.org", "W9876543", "Kowalski", "tiddlywinks"]
    recording = at(tmp_path)
    for policy in ("hashed", "none"):
        one = record(
            recording, [user(f"{planted[0]} {planted[1]}")], calls("find", {"id": planted[2]}),
            record=policy, session=planted[3], task=planted[4],
        )  # fmt: skip
        recording.judged(Judged(one.number, one.gateway, [prediction(planted[2])]))
    assert recording.flush().fault == ""
    data = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert [value for value in planted if value.encode() in data] == []
    assert b"find" in data
    record(recording, [user(planted[0])], says(planted[1]), task="a task")
    recording.flush()
    data = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert planted[0].encode() in data
    assert planted[1].encode() in data
    recording.close()


def test_a_prediction_is_kept_beside_its_step_and_says_which_arguments_differ(
    tmp_path: Path,
) -> None:
    recording = at(tmp_path)
    one = record(recording, [user("a")], calls("find", {"id": "b", "by": "x"}))
    recording.judged(Judged(one.number, one.gateway, [prediction("b")]))
    recording.audited(Audited(one.number, one.gateway, "/", "find", "agree", BEGAN_S))
    recording.flush()
    connection = sqlite3.connect(tmp_path / "reflexarc.db")
    found = connection.execute("select recorded, differing, acted from decisions").fetchall()
    assert found == [('{"id":"b","by":"x"}', '["id"]', '{"0.05":false}')]
    assert connection.execute("select step, outcome from audits").fetchall() == [(1, "agree")]
    connection.close()
    recording.close()


def test_a_locked_store_is_a_fault_that_passes_and_loses_nothing(tmp_path: Path) -> None:
    recording = at(tmp_path)
    recording.flush()
    lock = sqlite3.connect(tmp_path / "reflexarc.db", isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    record(recording, [user("a")], says("b"))
    recording.trail(entry("e1"))
    written = recording.flush()
    assert "locked" in written.fault
    assert written.trail == []
    lock.execute("ROLLBACK")
    lock.close()
    written = recording.flush()
    assert (written.fault, written.trail, written.steps) == ("", ["e1"], 1)
    assert (count(tmp_path, "trail"), count(tmp_path, "steps")) == (1, 1)
    recording.close()


def test_a_step_that_extends_another_after_a_failed_write_is_still_placed_right(
    tmp_path: Path,
) -> None:
    recording = at(tmp_path)
    record(recording, [user("a")], says("b"))
    recording.flush()
    record(recording, [user("a"), says("b"), user("c")], says("d"))
    lock = sqlite3.connect(tmp_path / "reflexarc.db", isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    assert recording.flush().fault
    lock.execute("ROLLBACK")
    lock.close()
    assert recording.flush().fault == ""
    assert count(tmp_path, "sessions") == 1
    recording.close()


def test_a_full_disk_is_a_fault_that_passes_and_loses_no_entry(tmp_path: Path) -> None:
    """The child may write no file past a size: what a full disk does to SQLite."""
    code = """
import resource, signal, sys
from pathlib import Path
from tests.store.stepping import at, record, says, user
from reflexarc.store.records import TrailEntry
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
recording = at(Path(sys.argv[1]))
assert recording.flush().fault == ""
size = max(one.stat().st_size for one in Path(sys.argv[1]).iterdir())
resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
for number in range(40):
    recording.trail(TrailEntry(f"e{number}", 1.0, "act", "x", {}))
    record(recording, [user("x" * 20000 + str(number))], says("b"))
written = recording.flush()
assert written.fault, written
assert written.trail == []
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
written = recording.flush()
assert written.fault == "", written
assert len(written.trail) == 40 and written.steps == 40
recording.close()
print("closed")
"""
    assert _said_by_child(code, tmp_path) == "closed\n"
    assert (count(tmp_path, "trail"), count(tmp_path, "steps")) == (40, 40)


def test_a_broken_file_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "reflexarc.db").write_bytes(b"this is no database at all" * 100)
    recording = at(tmp_path)
    recording.trail(entry("e1"))
    assert "not a database" in recording.flush().fault
    (tmp_path / "reflexarc.db").unlink()
    assert recording.flush().trail == ["e1"]
    recording.close()


def test_a_folder_one_may_not_write_to_is_a_fault() -> None:
    """In a child that gives up being root, where it is: root may write anywhere."""
    code = """
import os, sys
from pathlib import Path
from tests.store.stepping import at
mine, closed = Path(sys.argv[1]) / "mine", Path(sys.argv[1]) / "closed"
assert at(mine).flush().fault == ""  # also loads all that is needed
closed.mkdir(mode=0o555)
if os.geteuid() == 0:
    os.setegid(65534)
    os.seteuid(65534)
fault = at(closed).flush().fault
print(fault)
"""
    with tempfile.TemporaryDirectory(prefix="reflexarc-closed-") as folder:
        Path(folder).chmod(0o755)
        fault = _said_by_child(code, Path(folder))
        assert re.search("ermission|unable to open|readonly", fault), fault
        assert [path.name for path in Path(folder, "closed").iterdir()] == []


def test_a_place_that_cannot_be_made_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert at(tmp_path / "file" / "state").flush().fault


def test_a_store_removed_while_it_is_used_is_begun_anew(tmp_path: Path) -> None:
    recording = at(tmp_path)
    recording.flush()
    for path in tmp_path.glob("reflexarc.db*"):
        path.unlink()
    recording.trail(entry("e1"))
    assert recording.flush().trail == ["e1"]
    assert count(tmp_path, "trail") == 1
    recording.close()


def test_steps_beyond_the_room_there_is_are_dropped_and_counted(tmp_path: Path) -> None:
    recording = at(tmp_path, max_waiting_bytes=10_000)
    for number in range(20):
        record(recording, [user(f"{number}" + "x" * 500)], says("b"))
        recording.trail(entry(f"e{number}"))
    written = recording.flush()
    assert written.dropped > 0
    assert written.steps + written.dropped == 20
    assert len(written.trail) == 20
    recording.close()


def test_old_sessions_go_and_the_trail_stays(tmp_path: Path) -> None:
    recording = at(tmp_path, retention_days=1.0)
    record(recording, [user("old")], says("b"), began_s=BEGAN_S - 2 * 86_400)
    record(recording, [user("new")], says("b"), began_s=BEGAN_S - 3600)
    recording.trail(entry("e1"))
    recording.flush()
    assert (count(tmp_path, "sessions"), count(tmp_path, "steps")) == (1, 1)
    assert (count(tmp_path, "messages"), count(tmp_path, "trail")) == (2, 1)
    recording.close()


def test_the_oldest_sessions_go_where_there_are_too_many_bytes(tmp_path: Path) -> None:
    recording = at(tmp_path, max_bytes=600_000)
    for number in range(60):
        record(recording, [user(f"{number} " + "x" * 20_000)], says("b"), began_s=BEGAN_S + number)
    recording.flush()
    assert 0 < count(tmp_path, "sessions") < 35
    connection = sqlite3.connect(tmp_path / "reflexarc.db")
    assert connection.execute("select max(began_s) from sessions").fetchone()[0] == BEGAN_S + 59
    connection.close()
    recording.close()


def test_killed_in_the_middle_of_writing_the_store_and_the_chain_are_sound(tmp_path: Path) -> None:
    code = """
import itertools, sys
from pathlib import Path
from tests.store.stepping import at, record, says, user
from reflexarc.store.records import TrailEntry
recording = at(Path(sys.argv[1]))
for number in itertools.count():
    for part in range(5):
        record(recording, [user(f"{number} {part} " + "x" * 3000)], says("b"))
        recording.trail(TrailEntry(f"{number} {part}", 1.0, "act", "x", {}))
    assert recording.flush().fault == ""
    print(number, flush=True)
"""
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        said = 0
        while said < 10:
            said = int(child.stdout.readline())
        time.sleep(0.013)
    finally:
        child.send_signal(signal.SIGKILL)
        child.communicate(timeout=20)
    with Store.open(tmp_path / "reflexarc.db").reading() as connection:
        assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
        found = verify(connection)
    assert child.returncode == -signal.SIGKILL
    assert found.fault == ""
    assert found.entries >= 5 * said >= 50
    assert found.entries == count(tmp_path, "steps")
