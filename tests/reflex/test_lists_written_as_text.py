"""Some agents write lists as text: they are read as lists, and written as those agents write."""

import json
import warnings

import pytest

from reflexarc.reflex import learn
from reflexarc.reflex.written import (
    Written,
    WrittenAs,
    as_list,
    form_under,
    read_list,
    write_list,
    written_as,
)
from reflexarc.steps import Message, Session, ToolCall, ToolSpec

TOOLS = (ToolSpec("list_items", effect="read"), ToolSpec("check_items", effect="read"))


@pytest.mark.parametrize(
    ("text", "values", "form"),
    [
        ("['a', 'b']", ["a", "b"], "python"),
        ('["a","b"]', ["a", "b"], "json"),
        ("[1,2]", [1, 2], "json"),
        ("[1, 2]", [1, 2], "python"),
    ],
)
def test_a_list_is_read_and_written_again(text: str, values: list[object], form: Written) -> None:
    assert read_list(text) == (values, form)
    assert write_list(values, form) == text


@pytest.mark.parametrize(
    "text",
    [
        "[]", "", "[", "a", "['a'", "[__import__('os')]", "[[1]]", "[{'a': 1}]", "['a' , 'b']",
        "[" * 3_000 + "]" * 3_000, "[" + "1, " * 4_000 + "1]", "[1e999]", "[\ud800]",
    ],
)  # fmt: skip
def test_what_is_no_plain_list_stays_text(text: str) -> None:
    assert as_list(text) == (text, "list")


@pytest.mark.parametrize(
    "text", ["['C:\\d']", "[1 is 1]", "[1if 1else 2]", "['\\ud800']", "[-" * 9]
)
def test_what_no_agent_writes_is_not_given_to_the_parser(text: str) -> None:
    """It would warn on the console, in words of the conversation; or give half a character, which
    cannot be sent."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        assert as_list(text) == (text, "list")
    assert warned == []


def test_the_form_is_that_of_most_tasks_under_the_prompt() -> None:
    written = written_as({("p", "python"): {"1", "2", "3"}, ("q", "list"): {"4", "5", "6", "7"}})
    assert written == (WrittenAs("p", "python"), WrittenAs("", "list"))
    assert [form_under(written, prompt) for prompt in ("p", "q", "new")] == [
        "python",
        "list",
        "list",
    ]
    assert written_as({("p", "python"): {"1", "2"}, ("p", "list"): {"3"}}) == ()


def session(at: int, *, prompt: str) -> Session:
    ids = [f"{at:03d}{digit}77" for digit in range(1, 4)]
    items: object = ids[:2]
    if prompt == "Write text.":
        items = repr(ids[:2])
    rows = [{"item_id": one, "name": f"thing {one}"} for one in ids[:2]]
    return Session(
        f"s{at}",
        f"t{at}",
        TOOLS,
        (
            Message("system", prompt),
            Message("user", f"Check what box {at} holds, please"),
            Message("assistant", "", tool_calls=(ToolCall("1", "list_items", {"box": str(at)}),)),
            Message("tool", json.dumps(rows), tool_call_id="1"),
            Message("assistant", "", tool_calls=(ToolCall("2", "check_items", {"items": items}),)),
            Message("tool", "ok", tool_call_id="2"),
            Message("assistant", "All is well."),
        ),
    )


@pytest.mark.parametrize("prompt", ["Write text.", "Write lists."])
def test_lists_are_made_in_the_form_of_the_prompt(prompt: str) -> None:
    prompts = ("Write text.", "Write lists.")
    reflex = learn([session(at, prompt=prompts[at % 2]) for at in range(60)], max_error=0.1)
    unseen = session(777, prompt=prompt)
    decision = reflex.decide(unseen.messages[:4], TOOLS)
    assert decision.call is not None
    assert decision.call.arguments == unseen.messages[4].tool_calls[0].arguments
