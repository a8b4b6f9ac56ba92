"""`reflexarc store`, `reflexarc audit` and `reflexarc learn --from-store`, on real stores."""

import hashlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from reflexarc.lifecycle.purging import held_by
from reflexarc.reflex import Reflex
from reflexarc.steps import decision_items
from reflexarc.store.place import secret
from reflexarc.store.queued import Queue
from reflexarc.store.queued_entries import Entry
from reflexarc.store.recording import Recording
from reflexarc.store.records import TrailEntry
from reflexarc.traces import read_sessions
from reflexarc.upstream.embedded.saved import DIRECTORY, Fit, Saved
from tests.cli.conftest import TOOLS, Run, shop_session
from tests.store.stepping import BEGAN_S, at, calls, record, result, says, user


def replayed(recording: Recording, whole: dict[str, Any], **of_step: Any) -> None:
    """Every assistant turn of a session as a step, as its agent would have asked for it."""
    for place, message in enumerate(whole["messages"]):
        if message["role"] == "assistant":
            record(recording, whole["messages"][:place], message, more={"tools": TOOLS}, **of_step)


@pytest.fixture
def shop(state_dir: Path) -> Recording:
    """Forty sessions recorded in full, the first by another tenant; the recording stays open."""
    recording = at(state_dir)
    for number in range(40):
        session = shop_session(number)
        replayed(
            recording,
            session,
            session=f"s{number}",
            task=f"t{number}",
            tenant="other" if number == 0 else "t1",
            began_s=BEGAN_S + number,
        )
    assert recording.flush().fault == ""
    return recording


def everything(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in directory.glob("reflexarc.db*"))


def test_stats_say_how_much_there_is(shop: Recording, run: Run) -> None:
    status, out, _ = run("store", "stats", "--json")
    found = json.loads(out)
    assert status == 0
    assert (found["sessions"], found["in_full"], found["tasks"]) == (40, 40, 40)
    assert found["tenants"] == 2
    assert found["by"] == {"system2": found["steps"]}
    assert run("store", "stats")[0] == 0
    shop.close()


def test_without_a_store_every_command_says_so(run: Run) -> None:
    for command in (("store", "stats"), ("audit", "verify"), ("store", "purge", "--session", "x")):
        status, _, err = run(*command)
        assert status == 1
        assert "nothing was recorded yet" in err


def test_an_export_is_what_was_said(shop: Recording, run: Run, tmp_path: Path) -> None:
    replayed(shop, shop_session(90), record="hashed")
    shop.flush()
    status, out, _ = run("store", "export", "-o", tmp_path / "out.jsonl.gz", "--json")
    assert status == 0
    assert json.loads(out)["sessions"] == 40
    assert json.loads(out)["left_out"] == {"not_in_full": 1, "no_answer": 0}
    sessions = read_sessions([tmp_path / "out.jsonl.gz"])
    original = shop_session(3)["messages"]
    [found] = [session for session in sessions if session.task == "t3"]
    assert [message.role for message in found.messages] == [one["role"] for one in original]
    assert [call.raw for message in found.messages for call in message.tool_calls] == [
        call["function"]["arguments"] for one in original for call in one.get("tool_calls", [])
    ]
    assert {tool.name for tool in found.tools} == {"get_order", "get_customer", "refund_order"}
    shop.close()


def test_system_1s_own_turns_are_marked_and_are_no_examples(
    state_dir: Path, run: Run, tmp_path: Path
) -> None:
    recording = at(state_dir)
    opening = [user("Where is order OR-1?")]
    acted = calls("get_order", {"order_id": "OR-1"}, "call_s1abc")
    record(recording, opening, acted, decided_by="system1")
    record(recording, [*opening, acted, result("shipped", "call_s1abc")], says("It is on its way."))
    recording.flush()
    recording.close()
    assert run("store", "export", "-o", tmp_path / "out.jsonl")[0] == 0
    line = json.loads((tmp_path / "out.jsonl").read_text())
    assert [one.get("decided_by") for one in line["messages"]] == [None, "system1", None, None]
    [session] = read_sessions([tmp_path / "out.jsonl"])
    assert [item.message for item in decision_items(session)] == [3]


def test_purging_a_session_leaves_no_byte_of_it_while_a_recorder_is_open(
    shop: Recording, run: Run, state_dir: Path
) -> None:
    texts = json.dumps(shop_session(7)["messages"])
    planted = [word for word in texts.replace('"', " ").split() if word.startswith("OR-")]
    order = planted[0].strip("\\.,").encode()
    assert order in everything(state_dir)
    assert run("store", "purge", "--session", "s7", "--dry-run", "--json")[0] == 0
    assert order in everything(state_dir)
    status, out, err = run("store", "purge", "--session", "s7", "--yes", "--json")
    assert (status, err) == (0, "")
    assert json.loads(out)["proven"] is True
    assert order not in everything(state_dir)
    assert json.loads(run("store", "stats", "--json")[1])["sessions"] == 39
    replayed(shop, shop_session(91))
    assert shop.flush().fault == ""
    assert order not in everything(state_dir)
    assert json.loads(run("audit", "show", "--json")[1])[0]["what"] == "purge"
    assert run("audit", "verify")[0] == 0
    shop.close()


def test_purging_by_tenant_and_by_day(shop: Recording, run: Run) -> None:
    def left() -> int:
        return int(json.loads(run("store", "stats", "--json")[1])["sessions"])

    assert run("store", "purge", "--tenant", "other", "--yes")[0] == 0
    assert left() == 39
    assert run("store", "purge", "--before", "2027-01-15T08:00:10Z", "--yes")[0] == 0
    assert left() == 30
    shop.close()


def test_a_purge_reaches_requests_that_wait_in_the_batch_queue(
    shop: Recording, run: Run, state_dir: Path
) -> None:
    queue = Queue.open(state_dir / "queue.db", lambda: BEGAN_S)
    for tenant, body in (("other", b"whatever"), ("t1", b"still wanted")):
        queue.put(Entry(tenant, tenant, "", "/agent", "/v1/messages", (), body))
    assert run("store", "purge", "--tenant", "other", "--yes")[0] == 0
    assert queue.of("other", "other") is None
    assert queue.of("t1", "t1") is not None
    assert b"whatever" not in (state_dir / "queue.db").read_bytes()
    queue.close()
    shop.close()


def test_a_purge_reaches_what_the_embedded_engine_saved(
    shop: Recording, run: Run, state_dir: Path
) -> None:
    saved = Saved(state_dir / DIRECTORY, Fit("m", "e", "f16"), 2**20, 3600, lambda: BEGAN_S)
    draft = saved.draft("name", 20)
    assert draft is not None
    (saved.directory / draft).write_bytes(b"what they said there")
    assert saved.keep("name", draft, 5)
    assert [p.suffix for p in sorted(saved.directory.glob("name*"))] == [".state", ".json"]
    assert run("store", "purge", "--session", "s7", "--yes")[0] == 0
    assert list(saved.directory.glob("name*")) == []
    assert saved.begin("name") is None
    saved.close()
    shop.close()


def test_a_tenant_is_found_by_its_key(
    state_dir: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = at(state_dir)
    key = secret(state_dir)
    tenant = hashlib.blake2b(b"Bearer sk-mine", key=key, digest_size=16).hexdigest()
    record(recording, [user("a")], says("b"), tenant=tenant)
    record(recording, [user("a")], says("b"))
    recording.flush()
    recording.close()
    monkeypatch.setenv("MY_KEY", "sk-mine")
    assert run("store", "purge", "--tenant-key-env", "MY_KEY", "--yes")[0] == 0
    assert json.loads(run("store", "stats", "--json")[1])["sessions"] == 1


def test_a_session_kept_as_hashes_is_found_by_its_clients_name(state_dir: Path, run: Run) -> None:
    recording = at(state_dir)
    record(recording, [user("a")], says("b"), session="mine", record="hashed")
    recording.flush()
    recording.close()
    assert "gone: 1 session" in run("store", "purge", "--session", "mine", "--yes")[1]


def test_a_purge_without_a_condition_is_refused(shop: Recording, run: Run) -> None:
    status, _, err = run("store", "purge", "--yes")
    assert status == 2
    assert "say what to remove" in err
    shop.close()


def test_a_reader_that_stays_keeps_a_purge_from_being_proven(
    shop: Recording, run: Run, state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reflexarc.store.purging._TRIES", 2)
    monkeypatch.setattr("reflexarc.store.purging._PAUSE_S", 0.01)
    reader = sqlite3.connect(state_dir / "reflexarc.db", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("select count(*) from sessions").fetchone()
    monkeypatch.setattr("reflexarc.cli.store._BUSY_MS", 100)
    status, _, err = run("store", "purge", "--session", "s3", "--yes")
    assert status == 1
    assert "the rows are gone, but" in err
    reader.execute("ROLLBACK")
    reader.close()
    shop.close()


def test_learning_from_the_store_and_again_after_a_purge(
    shop: Recording, run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "shop.reflex"
    status, _, err = run("learn", "--from-store", "-o", path)
    assert status == 0, err
    assert "40 sessions recorded in full" in err
    assert Reflex.load(path).card.sessions == 40
    before = path.read_bytes()
    status, out, err = run("store", "purge", "--session", "s7", "--yes")
    assert (status, err) == (0, "")
    assert "learned again from 39 sessions" in out
    assert Reflex.load(path).card.sessions == 39
    assert path.read_bytes() != before
    shop.close()


def test_an_artifact_whose_sessions_are_all_gone_is_removed(
    shop: Recording, run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "shop.reflex"
    assert run("learn", "--from-store", "-o", path)[0] == 0
    status, out, err = run("store", "purge", "--before", "2030-01-01", "--yes")
    assert (status, err) == (0, "")
    assert "too little to learn from" in out
    assert not path.exists()
    shop.close()


def test_an_artifact_learned_while_its_sessions_were_purged_is_removed(
    shop: Recording, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "shop.reflex"
    saved = Reflex.save

    def purged_meanwhile(reflex: Reflex, where: Path) -> None:
        assert run("store", "purge", "--session", "s7", "--yes")[0] == 0
        saved(reflex, where)

    monkeypatch.setattr(Reflex, "save", purged_meanwhile)
    status, _, err = run("learn", "--from-store", "-o", path)
    assert status == 1
    assert "1 of the sessions went from the store" in err
    assert not path.exists()
    shop.close()


def test_an_artifact_that_may_only_be_read_is_replaced_all_the_same(
    shop: Recording, run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "shop.reflex"
    assert run("learn", "--from-store", "-o", path)[0] == 0
    path.chmod(0o400)
    assert run("store", "purge", "--session", "s7", "--yes")[0] == 0
    assert Reflex.load(path).card.sessions == 39
    shop.close()


def test_an_artifact_learned_from_files_that_holds_purged_values_is_named(
    shop: Recording, run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "files.reflex"
    lines = [json.dumps(shop_session(number)) for number in range(40)]
    (tmp_path / "s.jsonl").write_text("\n".join(lines))
    assert run("learn", tmp_path / "s.jsonl", "-o", path)[0] == 0
    assert held_by(path, ["returned", "no such value"]) == ["returned"]
    shop.note_artifacts([str(path)])
    record(shop, [user("x")], calls("refund_order", {"reason": "returned"}), session="only")
    shop.flush()
    # The constant stands in forty tasks of the store: nobody's own, so it may stay.
    assert run("store", "purge", "--session", "only", "--yes")[0] == 0
    status, _, err = run("store", "purge", "--before", "2030-01-01", "--yes")
    assert status == 1
    assert "files.reflex" in err
    assert "run `reflexarc learn` again" in err
    shop.close()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("learn", "-o", "x.reflex"), "Missing argument"),
        (("learn", "a.jsonl", "--from-store", "-o", "x.reflex"), "not both"),
        (("learn", "a.jsonl", "--route", "/", "-o", "x.reflex"), "go with --from-store"),
        (("store", "purge", "--before", "soon"), "is not a date"),
        (("audit", "verify", "--head", "abc"), "is not 64 hexadecimal digits"),
    ],
)
def test_wrong_usage_is_refused(run: Run, arguments: tuple[str, ...], said: str) -> None:
    status, _, err = run(*arguments)
    assert status == 2
    assert said in err


def test_a_broken_trail_exits_1_and_names_the_entry(state_dir: Path, run: Run) -> None:
    recording = at(state_dir)
    for number in range(4):
        recording.trail(TrailEntry(f"e{number}", BEGAN_S, "act", "gateway", {"tool": "find"}))
    recording.flush()
    recording.close()
    status, out, _ = run("audit", "verify", "--json")
    assert status == 0
    head = json.loads(out)["head"]
    assert run("audit", "verify", "--head", head)[0] == 0
    assert "tool=find" in run("audit", "show", "--last", "2", "--what", "act")[1]
    connection = sqlite3.connect(state_dir / "reflexarc.db")
    connection.execute("update trail set who = 'nobody' where seq = 2")
    connection.commit()
    connection.close()
    status, out, err = run("audit", "verify", "--json")
    assert status == 1
    assert json.loads(out)["whole"] is False
    assert "entry 2 (act) was changed" in err
