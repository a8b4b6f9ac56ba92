"""Which session a step belongs to."""

import json
import random
import sqlite3
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.store.stepping import at, calls, chat, completion, record, result, says, step, user


def rows(directory: Path, query: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(directory / "reflexarc.db")
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def conversations(directory: Path) -> list[list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for session, content in rows(
        directory, "select session, content from messages order by session, at"
    ):
        found.setdefault(session, []).append(json.loads(content))
    return list(found.values())


OPENING = [user("Where is order W1?")]
ASKED = calls("find_order", {"id": "W1"})
FOUND = [*OPENING, ASKED, result("shipped")]


def test_a_request_that_extends_a_session_continues_it(tmp_path: Path) -> None:
    recording = at(tmp_path)
    record(recording, OPENING, ASKED)
    record(recording, FOUND, says("It is on its way."))
    assert recording.flush().steps == 2
    assert rows(tmp_path, "select messages, attempt from sessions") == [(4, 0)]
    assert rows(tmp_path, "select at, attempt from steps") == [(1, 0), (3, 0)]
    recording.close()


def test_call_ids_key_order_white_space_and_cache_marks_do_not_count(tmp_path: Path) -> None:
    recording = at(tmp_path)
    record(recording, OPENING, calls("find_order", {"id": "W1", "by": "mail"}))
    echoed = calls("find_order", {"by": "mail", "id": "W1"}, "toolu_9")
    parts = [{"type": "text", "text": "Where is order W1?", "cache_control": {"type": "ephemeral"}}]
    rewritten = [{"content": parts, "role": "user"}, echoed, result("shipped", "toolu_9")]
    record(recording, rewritten, says("It is on its way."))
    recording.flush()
    assert rows(tmp_path, "select messages from sessions") == [(4,)]
    recording.close()


def test_the_same_request_again_is_another_attempt(tmp_path: Path) -> None:
    recording = at(tmp_path)
    record(recording, OPENING, ASKED)
    record(recording, FOUND, says("one"))
    record(recording, FOUND, says("two"))
    recording.flush()
    assert rows(tmp_path, "select at, attempt from steps") == [(1, 0), (3, 0), (3, 1)]
    assert conversations(tmp_path) == [[*FOUND[:1], *conversations(tmp_path)[0][1:3], says("two")]]
    recording.close()


def test_the_answer_that_the_client_goes_on_with_is_the_one_that_stays(tmp_path: Path) -> None:
    recording = at(tmp_path)
    record(recording, OPENING, ASKED)
    record(recording, FOUND, says("one"))
    record(recording, FOUND, says("two"))
    record(recording, [*FOUND, says("one"), user("thanks")], says("bye"))
    recording.flush()
    [(conversation)] = conversations(tmp_path)
    assert [m["content"] for m in conversation[3:]] == ["one", "thanks", "bye"]
    recording.close()


def test_equal_openings_are_different_sessions_and_each_is_continued(tmp_path: Path) -> None:
    recording = at(tmp_path)
    record(recording, OPENING, ASKED)
    record(recording, OPENING, ASKED)
    record(recording, FOUND, says("one"))
    record(recording, [*FOUND[:2], result("lost")], says("sorry"))
    recording.flush()
    assert rows(tmp_path, "select messages from sessions") == [(4,), (4,)]
    assert rows(tmp_path, "select count(distinct task) from sessions") == [(1,)]
    recording.close()


def test_an_opening_that_failed_is_tried_again_in_its_session(tmp_path: Path) -> None:
    recording = at(tmp_path)
    record(recording, OPENING, None)
    record(recording, OPENING, ASKED)
    recording.flush()
    assert rows(tmp_path, "select messages from sessions") == [(2,)]
    assert rows(tmp_path, "select status, attempt from steps") == [(502, 0), (200, 1)]
    recording.close()


def test_a_branch_off_a_session_that_went_on_is_a_session_of_its_own(tmp_path: Path) -> None:
    recording = at(tmp_path)
    record(recording, OPENING, ASKED)
    record(recording, FOUND, says("one"))
    record(recording, [*FOUND, says("one"), user("thanks")], says("bye"))
    record(recording, [*FOUND[:2], result("lost")], says("sorry"))
    recording.flush()
    assert sorted(rows(tmp_path, "select messages from sessions")) == [(4,), (6,)]
    recording.close()


def test_tenants_and_routes_and_names_keep_sessions_apart(tmp_path: Path) -> None:
    recording = at(tmp_path)
    scopes: list[dict[str, Any]] = [
        {"tenant": "a"}, {"tenant": "b"}, {"tenant": "a", "route": "/x"},
        {"tenant": "a", "session": "s1"}, {"tenant": "a", "session": "s2"},
    ]  # fmt: skip
    for scope in scopes:
        record(recording, OPENING, ASKED, **scope)
        record(recording, FOUND, says("one"), **scope)
    recording.flush()
    assert rows(tmp_path, "select messages from sessions") == [(4,)] * 5
    recording.close()


def test_a_task_is_the_clients_own_or_that_of_the_first_user_message(tmp_path: Path) -> None:
    recording = at(tmp_path)
    record(recording, OPENING, ASKED, task="refunds")
    record(recording, OPENING, ASKED, task="refunds", record="hashed", tenant="b")
    record(recording, [user("other")], ASKED)
    recording.flush()
    found = rows(tmp_path, "select task, task_from from sessions order by rowid")
    assert found[0] == ("refunds", "header")
    assert found[1][1] == "header"
    assert "refunds" not in found[1][0]
    assert found[2][1] == "derived"
    assert found[2][0].startswith("~")
    recording.close()


def test_a_recording_that_starts_anew_knows_the_sessions_of_before(tmp_path: Path) -> None:
    first = at(tmp_path)
    record(first, OPENING, ASKED)
    first.flush()
    first.close()
    second = at(tmp_path)
    record(second, FOUND, says("one"))
    second.flush()
    second.close()
    assert rows(tmp_path, "select messages from sessions") == [(4,)]


def test_bodies_that_are_no_conversation_are_let_go(tmp_path: Path) -> None:
    recording = at(tmp_path)
    for body in (
        b"", b"[]", b"{", b'{"messages": 3}', b'{"messages": []}', b'{"messages": [1, "x", null]}',
        b'{"messages": [{"role": "user", "role": "tool"}]}', b'{"messages": [{"role": "\\ud800"}]}',
        b'{"model": 3, "messages": [{"role": "user", "content": {"a": 1}}]}', b"\xff\xfe",
        b'{"messages": [{"role": "user", "content": "a"}], "tools": 7}',
        b'{"messages":' + b"[" * 400 + b"]" * 400 + b"}",
    ):  # fmt: skip
        for answer in (b"", b"{}", b"data: x\n\n", b'{"choices": 3}', completion(says("a"))):
            for content_type in ("application/json", "text/event-stream"):
                recording.step(step(body, content_type=content_type), body, answer)
    written = recording.flush()
    assert written.fault == ""
    assert written.dropped == 0
    recording.close()


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.integers(0, 2**32), st.booleans())
def test_random_branching_conversations_are_told_apart(
    tmp_path_factory: Any, seed: int, restarted: bool
) -> None:
    """Against the plain rule: a step continues the session whose messages it extends by the answer
    it got, if that went no further."""
    directory = tmp_path_factory.mktemp("lineage")
    drawn = random.Random(seed)
    recording = at(directory)
    whole: list[list[dict[str, Any]]] = []  # what each session should hold
    for turn in range(drawn.randint(1, 25)):
        if whole and drawn.random() < 0.8:
            old = drawn.choice(whole)
            cut = len(old) if drawn.random() < 0.7 else drawn.randrange(2, len(old) + 1, 2)
            asked = [*old[:cut], user(f"more {drawn.randint(0, 2)}")]
        else:
            asked = [user(f"opening {drawn.randint(0, 3)}")]
        answer = says(f"answer {turn}")
        record(recording, asked, answer)
        expected = [*asked, answer]
        again = next((one for one in whole if one[:-1] == asked and len(asked) > 1), None)
        went_on = next((one for one in whole if one == asked[:-1]), None)
        if again is not None:
            whole[whole.index(again)] = expected
        elif went_on is not None:
            whole[whole.index(went_on)] = expected
        else:
            whole.append(expected)
        if drawn.random() < 0.3:
            recording.flush()
            if restarted:
                recording.close()
                recording = at(directory)
    recording.flush()
    recording.close()

    def texts(found: list[list[dict[str, Any]]]) -> list[list[str]]:
        return sorted([message["content"] for message in one] for one in found)

    assert texts(conversations(directory)) == texts(whole)


def test_the_usage_of_streams_and_details_of_caches_are_kept(tmp_path: Path) -> None:
    recording = at(tmp_path)
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 64},
    }
    record(recording, OPENING, ASKED, usage=usage)
    body = chat([user("b")])
    chunks = [
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "hi"}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {"choices": [], "usage": usage},
    ]
    stream = b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in chunks)
    one = step(body, content_type="text/event-stream; charset=utf-8")
    recording.step(one, body, stream + b"data: [DONE]\n\n")
    record(recording, [user("c")], says("twelve bytes"))
    record(recording, [user("d")], ASKED, decided_by="system1")
    recording.flush()
    found = rows(
        tmp_path,
        "select prompt_tokens, cached_tokens, completion_tokens, tokens_estimated from steps",
    )
    assert found[:2] == [(100, 64, 7, 0)] * 2
    assert found[2][2:] == (3, 1)
    assert found[3][2:] == (0, 1)
    recording.close()
