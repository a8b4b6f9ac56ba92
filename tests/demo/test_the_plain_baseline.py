"""The baseline "bigram + latest id": the most frequent next call, arguments where they stood."""

from typing import Any

import msgspec
import pytest

from reflexarc.bench.baseline import Baseline
from reflexarc.steps import Message, Session, ToolCall, ToolSpec


def tool(name: str, *required: str) -> ToolSpec:
    properties = {argument: {"type": "string"} for argument in required}
    return ToolSpec(name, "", {"properties": properties, "required": list(required)})


TOOLS = (tool("find", "ref", "kind"), tool("show", "user_id"), tool("ping"))


def step(number: int, name: str, result: Any, **arguments: Any) -> list[Message]:
    call = ToolCall(f"c{number}", name, arguments)
    text = result if isinstance(result, str) else msgspec.json.encode(result).decode()
    return [Message("assistant", "", (call,)), Message("tool", text, tool_call_id=f"c{number}")]


def session(number: int) -> Session:
    ref, user = f"R-{number}00{number}", f"u{number}"
    found = {"users": [{"user_id": user}, {"user_id": f"other{number}"}]}
    messages = [
        Message("user", f"Please look at {ref}, thank you."),
        *step(1, "find", found, ref=ref, kind="order"),
        *step(2, "show", {"name": "Ada"}, user_id=user),
        Message("assistant", "It is Ada's."),
    ]
    return Session(f"s{number}", f"t{number}", TOOLS, tuple(messages))


@pytest.fixture
def learned() -> Baseline:
    return Baseline.learn(session(n) for n in range(1, 6))


NEW = session(8).messages


def test_a_token_of_the_users_shape_and_a_constant_fill_a_first_call(learned: Baseline) -> None:
    call = learned.predict(NEW[:1], TOOLS)
    assert call is not None
    assert (call.name, call.arguments) == ("find", {"ref": "R-8008", "kind": "order"})


def test_the_latest_value_at_the_usual_path_fills_a_later_call(learned: Baseline) -> None:
    call = learned.predict(NEW[:3], TOOLS)
    assert call is not None
    assert (call.name, call.arguments) == ("show", {"user_id": "u8"})


def test_where_a_message_is_likelier_there_is_no_call_unless_one_is_asked_for(
    learned: Baseline,
) -> None:
    assert learned.predict(NEW[:5], TOOLS) is None
    assert Baseline.learn([]).predict(NEW[:1], TOOLS, always_call=True) is None


def test_a_situation_never_seen_gives_nothing(learned: Baseline) -> None:
    unseen = [*NEW[:1], *step(1, "ping", {})]
    assert learned.predict(unseen, TOOLS, always_call=True) is None


def test_a_required_argument_that_stands_nowhere_gives_no_call(learned: Baseline) -> None:
    assert learned.predict([Message("user", "Please look at it.")], TOOLS) is None


def test_a_tool_that_is_not_offered_is_not_called(learned: Baseline) -> None:
    assert learned.predict(NEW[:1], TOOLS[1:]) is None


def test_a_value_of_fewer_than_three_tasks_is_no_constant() -> None:
    few = Baseline.learn(session(n) for n in (1, 2))
    assert few.predict(NEW[:1], TOOLS) is None


def test_exact_calls_are_counted_over_recorded_calls(learned: Baseline) -> None:
    assert learned.count_exact([session(8), session(9)], frozenset()) == (4, 4)
    assert learned.count_exact([session(8)], frozenset({"find"})) == (1, 1)
    wrong = session(8)
    messages = list(wrong.messages)
    messages[3] = Message("assistant", "", (ToolCall("c2", "show", {"user_id": "u9"}),))
    changed = Session("s", "t", TOOLS, tuple(messages))
    assert learned.count_exact([changed], frozenset()) == (2, 1)


def test_a_sibling_of_a_batch_follows_the_call_before_it() -> None:
    def batch(number: int) -> Session:
        calls = (ToolCall("a", "find", {"ref": "x", "kind": "y"}), ToolCall("b", "ping", {}))
        messages = (Message("user", "Go."), Message("assistant", "", calls))
        return Session(f"b{number}", f"t{number}", TOOLS, messages)

    learned = Baseline.learn(batch(n) for n in range(3))
    first = ToolCall("a", "find", {"ref": "x", "kind": "y"})
    call = learned.predict([Message("user", "Go.")], TOOLS, siblings=(first,))
    assert call is not None
    assert call.name == "ping"
    assert learned.count_exact([batch(9)], frozenset()) == (2, 2)
