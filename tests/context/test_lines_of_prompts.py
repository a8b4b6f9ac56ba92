"""Which prompt goes on from which: sessions, their subagents, and what a memory forgets."""

import copy
import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reflexarc.context.fitting import Found
from reflexarc.context.lines import Lines
from reflexarc.wire.dialects import dialect as dialect_of
from reflexarc.wire.growing import Grown, take_apart
from tests.context.prompts import Body, request, tool, turn


def grown(body: Body, dialect: str = "messages") -> Grown:
    return take_apart(json.dumps(body).encode(), dialect_of(dialect).conversation)


class Memory:
    """Lines with a clock."""

    def __init__(self, dialect: str = "messages", **bounds: int) -> None:
        self.lines = Lines(**bounds)
        self.now_s = 0.0
        self._dialect = dialect

    def take(self, body: Body, session: str = "s") -> Found:
        self.now_s += 1
        return self.lines.take(session, self._dialect, grown(body, self._dialect), self.now_s)


def agent(name: str, turns: int, **more: Any) -> Body:
    """One of several agents of a session: its task, and what it does, are its own."""
    body = request(turns, **more)
    body["messages"][0]["content"] = f"Task of {name}."
    for at, message in enumerate(body["messages"][2::2]):
        message["content"][0]["content"] = f"{name} found {at} " * 20
    return body


def test_what_goes_on_is_kept() -> None:
    memory = Memory()
    assert memory.take(request(0)).how == "new"
    for turns in range(1, 6):
        found = memory.take(request(turns))
        assert found.how == "kept"
        assert found.kept_bytes == found.before_bytes > 0
        assert found.before is not None
        assert found.before.last_s == memory.now_s - 1


def test_the_same_again_is_kept() -> None:
    memory = Memory()
    memory.take(request(2))
    assert memory.take(request(2)).how == "kept"


def test_a_clock_in_the_system_prompt_breaks_each_turn() -> None:
    memory = Memory()
    for turns in range(4):
        system = f"You mend programs.\nIt is 09:5{turns}.\nBe brief."
        found = memory.take(request(turns, system=system))
        if turns:
            assert (found.how, found.break_ and found.break_.cause) == ("break", "clock")
    assert len(memory.lines) == 1


@pytest.mark.parametrize("dialect", ["chat", "messages"])
@settings(max_examples=20, deadline=None)
@given(order=st.randoms(use_true_random=False))
def test_interleaved_agents_of_one_session_break_nothing(
    dialect: str, order: random.Random
) -> None:
    """Each its own task; two with the same tools and system prompt, one with others."""
    memory = Memory(dialect)
    more: dict[str, Body] = {"a": {}, "b": {}, "c": {"system": "You look.", "tools": [tool("x")]}}
    at = dict.fromkeys(more, 0)
    for _ in range(18):
        name = order.choice("abc")
        body = agent(name, at[name], **more[name])
        if dialect == "chat":
            body["messages"].insert(0, {"role": "system", "content": body.pop("system")})
        found = memory.take(body)
        assert found.how == ("kept" if at[name] else "new")
        at[name] += 1


def test_another_agent_with_the_same_question_breaks_nothing() -> None:
    memory = Memory()
    memory.take(request(0))
    titles = request(0, system="Give this conversation a title.", tools=[], model="small")
    assert memory.take(titles).how == "new"
    assert memory.take(request(1)).how == "kept"


def test_another_way_from_an_earlier_place_is_a_branch() -> None:
    memory = Memory()
    memory.take(request(4))
    other = request(2)
    other["messages"].append({"role": "assistant", "content": "No."})
    other["messages"].append({"role": "user", "content": "Try again."})
    found = memory.take(other)
    assert found.how == "branch"
    assert 0 < found.kept_bytes < found.before_bytes
    assert memory.take(request(5)).how == "kept"  # the first goes on as well
    assert memory.take(request(1)).how == "branch"


def test_history_that_is_edited_is_a_break() -> None:
    memory = Memory()
    memory.take(request(4))
    edited = request(5)
    edited["messages"][2]["content"][0]["content"] = "Other words."
    found = memory.take(edited)
    assert found.break_ is not None
    assert (found.how, found.break_.message) == ("break", 2)


def test_a_last_result_cut_after_it_was_answered_is_a_break() -> None:
    memory = Memory()
    memory.take(request(4))
    edited = request(5)
    edited["messages"][8]["content"][0]["content"] = "[cleared]"
    found = memory.take(edited)
    assert (found.how, found.break_ and found.break_.cause) == ("break", "history_truncated")


def test_ids_and_keys_written_anew_are_breaks() -> None:
    for edit, cause in (
        (lambda text: text.replace("toolu_", "call_"), "ids_rewritten"),
        (lambda text: text.replace('"b": 0, "a": "x"', '"a": "x", "b": 0'), "keys_reordered"),
    ):
        memory = Memory()
        memory.take(request(2))
        found = memory.take(json.loads(edit(json.dumps(request(3)))))
        assert found.break_ is not None
        assert found.break_.cause == cause


def test_a_summary_in_place_of_a_conversation_is_a_break() -> None:
    memory = Memory()
    memory.take(request(6))
    said = "This session is continued from a previous conversation. Summary: line 3 is at fault."
    body = request(0)
    body["messages"] = [{"role": "user", "content": said}]
    found = memory.take(body)
    assert found.break_ is not None
    assert (found.how, found.break_.cause) == ("break", "history_truncated")
    assert found.break_.again_bytes == 0


def test_marks_that_move_each_turn_break_nothing() -> None:
    memory = Memory()
    for turns in range(6):
        body = copy.deepcopy(request(turns))
        last = body["messages"][-1]
        if isinstance(last["content"], str):
            last["content"] = [{"type": "text", "text": last["content"]}]
        last["content"][-1]["cache_control"] = {"type": "ephemeral"}
        assert memory.take(body).how == ("kept" if turns else "new")


def test_an_hour_is_asked_for_by_marks() -> None:
    memory = Memory()
    assert memory.take(request(1)).line.lasts_s == 0
    mark = {"type": "ephemeral", "ttl": "1h"}
    system = [{"type": "text", "text": request()["system"], "cache_control": mark}]
    assert memory.take(request(2, system=system)).line.lasts_s == 3600


def test_sessions_know_nothing_of_one_another() -> None:
    memory = Memory()
    memory.take(request(3), "a")
    assert memory.take(request(4), "b").how == "new"
    assert memory.take(request(4), "a").how == "kept"


def test_what_is_remembered_is_bounded() -> None:
    memory = Memory(max_sessions=3)
    for at in range(5):
        memory.take(request(1), f"{at}")
    assert len(memory.lines) == 3
    assert memory.take(request(2), "0").how == "new"
    assert memory.take(request(2), "4").how == "kept"
    memory = Memory(max_lines=2)
    for name in "abc":
        memory.take(agent(name, 2))
    assert [memory.take(agent(name, 3)).how for name in "cba"] == ["kept", "kept", "new"]


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 6)), max_size=12))
def test_bytes_held_are_counted_and_bounded(requests: list[tuple[str, int]]) -> None:
    memory = Memory(max_bytes=20_000)
    for name, turns in requests:
        memory.take(agent(name, turns), name)
        assert 0 <= memory.lines.held_bytes <= 20_000


def test_messages_of_a_byte_are_counted_by_what_they_take() -> None:
    memory = Memory("chat")
    memory.take({"messages": [1] * 1_000})
    assert memory.lines.held_bytes > 1_000 * 500


def test_tools_are_counted_once_for_all_that_share_them() -> None:
    tools = [tool(f"t{at}", a={"description": "x" * 1_000}) for at in range(20)]
    memory = Memory()
    memory.take(request(0, tools=tools), "a")
    alone = memory.lines.held_bytes
    assert alone > 20_000
    memory.take(request(0, tools=tools), "b")
    assert memory.lines.held_bytes - alone < 2_000
    memory = Memory(max_bytes=alone + 2_000)
    for name in "ab":
        memory.take(request(0, tools=tools, system=f"I am {name}."), name)
        assert memory.lines.held_bytes <= alone + 2_000
    assert len(memory.lines) == 1


@pytest.mark.parametrize("size", [1_000, 300_000])
def test_a_long_message_is_found_changed_grown_and_marked_as_a_short_one_is(size: int) -> None:
    """A long one is compared by its bytes: the event loop waits for it."""
    text = "word " * (size // 5)

    def asked(first: Any, turns: int) -> Body:
        body = request(turns)
        body["messages"][0]["content"] = [{"type": "text", "text": text}, first]
        return body

    mark = {"cache_control": {"type": "ephemeral"}}
    block = {"type": "text", "text": "and then?"}
    memory = Memory()
    memory.take(asked({**block, **mark}, 0))
    assert memory.take(asked(block, 1)).how == "kept"
    changed = memory.take(asked({"type": "text", "text": "and now?"}, 2))
    assert changed.how == "break"
    assert changed.break_ is not None
    assert changed.break_.cause == "history_edited"
    assert changed.break_.message == 0
    assert changed.break_.lost_bytes < changed.before_bytes - size
    # The mark moved, and the tools changed: told by the tools, not by the mark.
    memory = Memory()
    memory.take(asked({**block, **mark}, 1))
    found = memory.take({**asked(block, 2), "tools": [tool("other")]})
    assert found.break_ is not None
    assert found.break_.cause == "tools_removed"


@pytest.mark.parametrize("size", [1_000, 300_000])
def test_a_last_message_that_grew_is_kept_however_long(size: int) -> None:
    def asked(*texts: str) -> Body:
        body = request(2)
        body["messages"] += [{"role": "user", "content": text} for text in texts]
        return body

    text = "word " * (size // 5)
    memory = Memory()
    memory.take(asked(text))
    assert memory.take(asked(text + " and more", "go on")).how == "kept"
    assert memory.take(asked(text + " and less", "go on")).how == "break"


def test_messages_of_any_form_are_taken() -> None:
    for messages in ([], ["text"], [1, None, []], [{"role": 5}]):
        memory = Memory("chat")
        memory.take({"messages": messages})
        memory.take({"messages": [*messages, {"role": "user", "content": turn(1)}]})
