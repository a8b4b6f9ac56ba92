"""What System 1 did, or had System 2 do, teaches nothing; all else does."""

from pathlib import Path
from typing import Any

import msgspec

from reflexarc.lifecycle.from_store import Learning, sessions_of
from reflexarc.steps import decision_items
from reflexarc.store.recording import Recording
from reflexarc.store.store import Store
from tests.store.stepping import at, calls, chat, completion, result, says, step, user

OPENING = [user("Where is order OR-1?")]
FOUND = calls("get_order", {"order_id": "OR-1"})
GOES_ON = [*OPENING, FOUND, result("shipped")]
HOW = Learning(0.05, 0.9)


def record(
    recording: Recording, messages: list[dict[str, Any]], answer: dict[str, Any], **decision: str
) -> None:
    request = chat(messages)
    ended = msgspec.structs.replace(step(request), **decision)
    recording.step(ended, request, completion(answer))


def examples(directory: Path) -> list[list[int]]:
    """Of each session learned from, the messages that are examples."""
    store = Store.open(directory / "reflexarc.db")
    with store.reading() as connection:
        recording, _ = sessions_of(connection, HOW)
    store.close()
    return [[item.message for item in decision_items(one)] for one in recording.sessions]


def test_an_answer_whose_tool_system_1_chose_is_context_and_no_example(tmp_path: Path) -> None:
    recording = at(tmp_path)
    record(recording, OPENING, FOUND, action="partial", tool="get_order")
    record(recording, GOES_ON, says("It is on its way."), action="escalate", reason="uncertain")
    assert recording.flush().fault == ""
    recording.close()
    assert examples(tmp_path) == [[3]]


def test_it_is_none_either_in_a_session_that_branches_off(tmp_path: Path) -> None:
    recording = at(tmp_path)
    record(recording, OPENING, FOUND, action="partial", tool="get_order")
    record(recording, GOES_ON, says("It is on its way."))
    record(recording, [*OPENING, FOUND, result("lost")], says("It is lost."))
    assert recording.flush().fault == ""
    recording.close()
    assert sorted(examples(tmp_path)) == [[3], [3]]


def test_a_partial_decision_that_was_refused_leaves_the_answer_an_example(tmp_path: Path) -> None:
    recording = at(tmp_path)
    record(recording, OPENING, FOUND, action="escalate", reason="partial_refused")
    assert recording.flush().fault == ""
    recording.close()
    assert examples(tmp_path) == [[1]]


def test_what_a_client_kept_system_1_from_is_an_example(tmp_path: Path) -> None:
    recording = at(tmp_path)
    record(recording, OPENING, FOUND, action="escalate", reason="off:header")
    record(recording, GOES_ON, says("It is on its way."), action="escalate", reason="off:header")
    assert recording.flush().fault == ""
    recording.close()
    assert examples(tmp_path) == [[1, 3]]


def test_what_system_1_did_is_context_and_no_example(tmp_path: Path) -> None:
    recording = at(tmp_path)
    record(recording, OPENING, FOUND, action="act", tool="get_order", decided_by="system1")
    record(recording, GOES_ON, says("It is on its way."))
    assert recording.flush().fault == ""
    recording.close()
    assert examples(tmp_path) == [[3]]
