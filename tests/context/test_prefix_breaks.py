"""Prefix breaks: each kind is found where it is, and named; what is none is not."""

import copy
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.context.breaks import Break, compare
from reflexarc.context.pictures import FLAT_BYTES, weight
from reflexarc.steps.prompt import Piece, Prompt
from tests.context.prompts import Body, png, prompt, request, tool, turn

MARK = {"type": "ephemeral"}
THINKING = {"type": "enabled", "budget_tokens": 4000}


def broken(edit: Callable[[Body], Any], turns: int = 3) -> Break:
    """What is found where the next request of a session is edited."""
    before = request(turns)
    after = copy.deepcopy(before)
    after["messages"] += turn(turns)
    after = edit(after) or after
    found = compare(prompt(before), prompt(after))
    assert found is not None
    assert 0 <= found.again_bytes <= found.lost_bytes <= found.before_bytes
    return found


def test_a_clock_in_the_system_prompt() -> None:
    found = broken(lambda body: body.update(system=body["system"].replace("09:59:58", "10:00:03")))
    assert (found.cause, found.kind, found.path) == ("clock", "system", "system")
    assert found.byte == len("You mend programs.\nToday is 2026-12-01 ")
    raw = prompt(request()).pieces[3].raw
    assert raw[: found.offset] == b'"You mend programs.\\nToday is 2026-12-01 '
    assert "09:59:58" in found.was
    assert "10:00:03" in found.now
    assert found.again_bytes == found.lost_bytes


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("It is Tuesday, 1 December 2026.", "It is Wednesday, 2 December 2026."),
        ("Dec 1, 2026, 9:59 PM", "Dec 2, 2026, 12:01 AM"),
        ("heute ist der 1. Dezember 2026", "heute ist der 2. Dezember 2026"),
        ("今日は2026年12月1日です", "今日は2026年12月2日です"),
        ("Unix time 1796083200", "Unix time 1796083260"),
        ("The hour is 14", "The hour is 15"),
        ("started 3 minutes ago", "started 14 minutes ago"),
        ("Tue, 01 Dec 2026 03:38:48 +0000", "Tue, 01 Dec 2026 03:39:07 +0000"),
        ("12/01/2026", "12/02/2026"),
    ],
)
def test_clocks_of_many_forms(was: str, now: str) -> None:
    before = request(system=f"You help.\n{was}\nBe brief.")
    after = request(4, system=f"You help.\n{now}\nBe brief.")
    found = compare(prompt(before), prompt(after))
    assert found is not None
    assert found.cause == "clock"


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("5f1c7a52-3a80-4f0e-9c39-0a4f6bb0d9b1", "0b6ac18e-77ab-4a10-8d5e-ffb1cd0a2c11"),
        ("request 18 of this run", "request 19 of this run"),
        ("run deadbeef01", "run 99aa11bbcc"),
        ("trace req_01H8ZK3T9Q", "trace req_01H8ZK4V2B"),
        ("in /tmp/agent-x8k2q1", "in /tmp/agent-p0d9zz"),
    ],
)  # fmt: skip
def test_ids_and_counters(was: str, now: str) -> None:
    before = request(system=f"You help.\n{was}\nBe brief.")
    found = compare(prompt(before), prompt(request(4, system=f"You help.\n{now}\nBe brief.")))
    assert found is not None
    assert (found.cause, found.path) == ("id", "system")


def test_a_clock_in_the_first_message() -> None:
    before = request()
    before["messages"][0]["content"] = [{"type": "text", "text": "<date>2026-12-01</date> Go."}]
    after = copy.deepcopy(before)
    after["messages"][0]["content"][0]["text"] = "<date>2026-12-02</date> Go."
    found = compare(prompt(before), prompt(after))
    assert found is not None
    assert (found.cause, found.message, found.path) == ("clock", 0, "messages[0].content[0].text")
    assert found.byte == len("<date>2026-12-0")


def test_another_system_prompt() -> None:
    found = broken(lambda body: body.update(system=body["system"] + "\nNever guess."))
    assert (found.cause, found.kind) == ("system_changed", "system")


def test_a_system_block_that_was_added() -> None:
    before = request(system=[{"type": "text", "text": "You help."}])
    after = request(4, system=[*before["system"], {"type": "text", "text": "Never guess."}])
    found = compare(prompt(before), prompt(after))
    assert found is not None
    assert (found.cause, found.path) == ("system_changed", "system[1]")
    messages = [piece for piece in prompt(before).pieces if piece.kind == "message"]
    assert found.lost_bytes == found.again_bytes == sum(len(piece.raw) for piece in messages)


def test_tools_in_another_order() -> None:
    found = broken(lambda body: body["tools"].reverse())
    assert (found.cause, found.kind, found.path) == ("tools_order", "tool", "tools[0]")
    assert found.names == ("read", "write")
    assert found.share == 1.0
    assert found.again_bytes == found.lost_bytes


def test_a_tool_whose_schema_changed() -> None:
    def edit(body: Body) -> None:
        body["tools"][1]["input_schema"]["properties"]["m"] = {"type": "string"}

    found = broken(edit)
    assert (found.cause, found.names) == ("tools_schema", ("write",))
    assert found.path == "tools[1].input_schema.properties.m"


def test_tools_added_and_removed() -> None:
    added = broken(lambda body: body["tools"].append(tool("look")))
    assert (added.cause, added.path, added.names) == ("tools_added", "tools[2]", ("look",))
    first = broken(lambda body: body["tools"].insert(0, tool("look")))
    assert (first.cause, first.path, first.share) == ("tools_added", "tools[0]", 1.0)
    removed = broken(lambda body: body["tools"].pop(0) and None)
    assert (removed.cause, removed.path, removed.names) == ("tools_removed", "tools[0]", ("read",))
    assert removed.again_bytes < removed.lost_bytes


def test_keys_of_a_schema_in_another_order() -> None:
    def edit(body: Body) -> None:
        schema = body["tools"][0]["input_schema"]
        body["tools"][0]["input_schema"] = dict(reversed(schema.items()))

    found = broken(edit)
    assert (found.cause, found.path) == ("keys_reordered", "tools[0].input_schema")


def test_keys_of_what_a_call_was_given_in_another_order() -> None:
    def edit(body: Body) -> None:
        block = body["messages"][3]["content"][0]
        block["input"] = dict(reversed(block["input"].items()))

    found = broken(edit)
    assert (found.cause, found.path) == ("keys_reordered", "messages[3].content[0].input")
    assert found.message == 3


def test_numbers_encoded_anew() -> None:
    def edit(body: Body) -> None:
        body["tools"][1]["input_schema"]["properties"]["n"]["maximum"] = 1.0

    found = broken(edit)
    assert found.cause == "reencoded"
    assert found.path == "tools[1].input_schema.properties.n.maximum"
    assert found.again_bytes


def test_space_in_arguments_is_read_by_models_and_between_members_by_none() -> None:
    function = {"name": "f", "arguments": '{"a": 1}'}
    call = {"id": "c", "type": "function", "function": function}
    body = {"model": "m", "messages": [{"role": "assistant", "tool_calls": [call]}]}
    body["messages"].append({"role": "tool", "tool_call_id": "c", "content": "ok"})
    after = copy.deepcopy(body)
    after["messages"][0]["tool_calls"][0]["function"]["arguments"] = '{"a":1}'
    found = compare(prompt(body, "chat"), prompt(after, "chat"))
    assert found is not None
    assert found.cause == "reencoded"
    assert found.path == "messages[0].tool_calls[0].function.arguments"
    assert found.lost_bytes
    spaced = json.dumps(body, indent=1).encode()
    found = compare(prompt(body, "chat"), prompt(spaced, "chat"))
    assert found is not None
    assert (found.cause, found.lost_bytes, found.again_bytes) == ("reencoded", 0, 0)


def test_ids_of_calls_written_anew() -> None:
    def edit(body: Body) -> None:
        for message in body["messages"]:
            for block in message["content"] if isinstance(message["content"], list) else ():
                for name in ("id", "tool_use_id"):
                    if name in block:
                        block[name] = "call_" + block[name]

    found = broken(edit)
    assert (found.cause, found.path) == ("ids_rewritten", "messages[1].content[0].id")


def test_history_that_was_edited() -> None:
    def edit(body: Body) -> None:
        body["messages"][2]["content"][0]["content"] = body["messages"][2]["content"][0][
            "content"
        ].replace("line", "sentence")

    found = broken(edit)
    assert (found.cause, found.message) == ("history_edited", 2)
    assert found.path == "messages[2].content[0].content"


@pytest.mark.parametrize("kept", [1, 3, 5])
def test_history_whose_first_messages_were_dropped(kept: int) -> None:
    found = broken(lambda body: body.update(messages=body["messages"][2:]), kept)
    assert (found.cause, found.message) == ("history_truncated", 0)


def test_history_whose_middle_was_dropped() -> None:
    found = broken(lambda body: body["messages"].__delitem__(slice(1, 5)), 5)
    assert (found.cause, found.message) == ("history_truncated", 1)
    assert found.again_bytes  # what stayed after the gap is read anew


def test_history_that_was_compacted() -> None:
    summary = {"role": "user", "content": "Summary: the fault is in line 3. Go on."}
    found = broken(lambda body: body.update(messages=[summary]), 6)
    assert (found.cause, found.message) == ("history_truncated", 0)
    assert found.again_bytes == 0  # nothing of it is sent again


def test_results_that_were_cleared() -> None:
    def edit(body: Body) -> None:
        body["messages"][2]["content"][0]["content"] = "[old result cleared]"

    assert broken(edit).cause == "history_truncated"


@pytest.mark.parametrize(
    ("name", "was", "now", "cause"),
    [
        ("thinking", None, THINKING, "thinking"),
        ("thinking", THINKING, None, "thinking"),
        ("thinking", THINKING, {**THINKING, "budget_tokens": 8000}, "thinking"),
        ("tool_choice", {"type": "auto"}, {"type": "any"}, "tool_choice"),
        ("model", "claude-opus-4-5", "claude-haiku-4-5", "model"),
        ("output_format", None, {"type": "json_schema", "schema": {}}, "settings"),
    ],
)  # fmt: skip
def test_settings_that_models_are_told_of(name: str, was: Any, now: Any, cause: str) -> None:
    before, after = request(), request(4)
    for body, value in ((before, was), (after, now)):
        body.pop(name, None)
        if value is not None:
            body[name] = value
    found = compare(prompt(before), prompt(after))
    assert found is not None
    assert (found.cause, found.kind, found.path) == (cause, "settings", name)
    head = found.before_bytes - found.lost_bytes
    assert (head > 0) == (cause in ("thinking", "tool_choice"))  # tools and system prompt stay


def test_settings_that_say_the_usual_are_none() -> None:
    said = {"tool_choice": {"type": "auto"}, "thinking": {"type": "disabled"}, "temperature": 0.2}
    assert compare(prompt(request()), prompt(request(4, **said))) is None


def with_picture(data: str, turns: int = 2) -> Body:
    source = {"type": "base64", "media_type": "image/png", "data": data}
    body = request(turns)
    text = {"type": "text", "text": "See."}
    body["messages"][0]["content"] = [{"type": "image", "source": source}, text]
    return body


def test_a_picture_in_other_bytes() -> None:
    found = compare(prompt(with_picture(png(90, 60))), prompt(with_picture(png(90, 60, 0), 3)))
    assert found is not None
    assert found.cause == "image_reencoded"
    assert found.path == "messages[0].content[0].source.data"


def test_another_picture() -> None:
    found = compare(prompt(with_picture(png(90, 60))), prompt(with_picture(png(40, 60), 3)))
    assert found is not None
    assert found.cause == "history_edited"


def test_pictures_that_changed_places_and_addresses_signed_anew() -> None:
    def body(*addresses: str) -> Body:
        parts = [{"type": "image_url", "image_url": {"url": url}} for url in addresses]
        first = {"role": "user", "content": [*parts, {"type": "text", "text": "Compare."}]}
        return {"messages": [first, {"role": "assistant", "content": "Two cats."}]}

    here, there = "https://x.example/1.png?sig=a", "https://x.example/2.png?sig=b"
    anew = here.replace("sig=a", "sig=c&t=9")
    other = "https://x.example/9.png?sig=a"
    for now, cause in (
        ((there, here), "image_reencoded"),
        ((anew, there), "image_reencoded"),
        ((other, there), "history_edited"),
    ):
        found = compare(prompt(body(here, there), "chat"), prompt(body(*now), "chat"))
        assert found is not None
        assert found.cause == cause


def test_a_picture_weighs_no_more_than_its_share() -> None:
    big = png(300, 200, 0)
    found = compare(prompt(with_picture(big)), prompt(with_picture(png(300, 200, 1), 3)))
    assert found is not None
    assert found.before_bytes < len(big) / 4


_run = st.sampled_from(["x" * 2_999, "x" * 3_000, "Ab+/_-=" * 500, "word", " ", '"', "é"])


@given(st.lists(_run, max_size=9))
def test_what_is_no_word_but_a_picture_weighs_flat(parts: list[str]) -> None:
    raw = "".join(parts).encode()
    runs = re.findall(rb"[A-Za-z0-9+/_=-]{3000,}", raw)
    assert weight(raw) == len(raw) - sum(map(len, runs)) + FLAT_BYTES * len(runs)


def test_words_without_end_are_weighed_at_once() -> None:
    """Of time that grows with the length of a word, this would take an hour."""
    raw = (b"x" * 2_999 + b" ") * 300_000
    assert weight(raw[:30_000_000]) == 30_000_000


def chat(system: str, *messages: Body) -> Body:
    return {"model": "m", "messages": [{"role": "system", "content": system}, *messages]}


def test_the_first_system_message_is_the_system_prompt() -> None:
    said = {"role": "user", "content": "hi"}
    found = compare(prompt(chat("a", said), "chat"), prompt(chat("b", said), "chat"))
    assert found is not None
    assert (found.cause, found.path) == ("system_changed", "messages[0].content")


def test_the_earliest_break_is_told() -> None:
    def edit(body: Body) -> None:
        body["tools"].reverse()
        body["messages"][0]["content"] = "Other."
        body["tool_choice"] = {"type": "any"}

    assert broken(edit).cause == "tools_order"


# --- what is no break


@given(st.integers(0, 4), st.integers(0, 3))
def test_appended_messages_are_no_break(turns: int, more: int) -> None:
    assert compare(prompt(request(turns)), prompt(request(turns + more))) is None


def marked(body: Body, parts: set[str], at: int) -> Body:
    """Clients that put a mark on a message write its text as a block for that."""
    if "tools" in parts:
        body["tools"][-1]["cache_control"] = MARK
    if "system" in parts:
        body["system"] = [{"type": "text", "text": body["system"], "cache_control": MARK}]
    if "messages" in parts:
        message = body["messages"][at % len(body["messages"])]
        if isinstance(message["content"], str):
            message["content"] = [{"type": "text", "text": message["content"]}]
        message["content"][-1]["cache_control"] = MARK
    return body


parts_marked = st.sets(st.sampled_from(["tools", "system", "messages"]))


@given(st.integers(1, 4), parts_marked, parts_marked, st.integers(0, 9), st.integers(0, 9))
def test_marks_that_move_are_no_break(
    turns: int, was: set[str], now: set[str], at: int, then: int
) -> None:
    before, after = marked(request(turns), was, at), marked(request(turns + 1), now, then)
    assert compare(prompt(before), prompt(after)) is None


def test_a_last_message_that_grew_is_no_break() -> None:
    before, after = request(2), request(2)
    after["messages"][-1]["content"].append({"type": "text", "text": "And look at line 4."})
    assert compare(prompt(before), prompt(after)) is None
    before["messages"].append({"role": "assistant", "content": "The fault is"})
    after = copy.deepcopy(before)
    after["messages"][-1]["content"] += " in line 4."
    assert compare(prompt(before), prompt(after)) is None


def test_messages_taken_back_are_no_break() -> None:
    assert compare(prompt(request(4)), prompt(request(2))) is None


def test_null_members_are_no_break() -> None:
    before = {"messages": [{"role": "assistant", "content": "hi"}]}
    after = {"messages": [{"role": "assistant", "content": "hi", "refusal": None}]}
    assert compare(prompt(before, "chat"), prompt(after, "chat")) is None


def test_what_a_log_does_not_hold_is_no_break() -> None:
    def spoken(*texts: str) -> Prompt:
        pieces = [Piece("message", f"messages[{at}]", text.encode(), "user", plain=True)
                  for at, text in enumerate(texts)]  # fmt: skip
        return Prompt(tuple(pieces), complete=False)

    with_tools = Prompt((Piece("tool", "tools[0]", b"{}"), *spoken("a", "b").pieces))
    assert compare(spoken("a"), with_tools) is None
    found = compare(spoken("one two", "b"), spoken("one three", "b"))
    assert found is not None
    assert (found.cause, found.path, found.byte, found.offset) == (
        "history_edited", "messages[0]", len("one t"), len("one t"),
    )  # fmt: skip


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "content", "text", "id", "input"]), inner)
    ),
    max_leaves=8,
)


@given(st.lists(json_values, max_size=4), st.lists(json_values, max_size=4))
def test_any_two_conversations_can_be_compared(before: list[Any], after: list[Any]) -> None:
    one, other = prompt({"messages": before}), prompt({"messages": after})
    found = compare(one, other)
    assert found is None or 0 <= found.again_bytes <= found.lost_bytes <= found.before_bytes
    assert compare(one, one) is None
