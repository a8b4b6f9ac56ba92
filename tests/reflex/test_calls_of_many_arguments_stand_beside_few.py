"""The order of calls: arguments that are right together are no product of many risks."""

import math

from reflexarc.reflex.candidates import COPIED, Candidate
from reflexarc.reflex.ranking import RankedCall
from reflexarc.reflex.standing import by_standing


def call(name: str, tool: float, each: float, count: int) -> RankedCall:
    """One whose arguments are each as probable as that."""
    values = [f"{name}-{at}-{each}" for at in range(count)]
    chosen = {f"a{at}": Candidate(value, value, COPIED) for at, value in enumerate(values)}
    arguments = dict(zip(chosen, values, strict=True))
    return RankedCall(name, tool, math.prod([each] * count), each, arguments, chosen)


def names(calls: list[RankedCall]) -> list[str]:
    return [one.name for one in calls]


def test_a_much_likelier_tool_of_many_arguments_comes_first() -> None:
    many, one = call("exchange", 0.43, 0.5, 4), call("look_up", 0.08, 0.5, 1)
    assert many.joint < one.joint
    assert names(by_standing([one, many])) == ["exchange", "look_up"]


def test_a_tool_that_is_not_likelier_does_not() -> None:
    many, one = call("exchange", 0.2, 0.5, 4), call("look_up", 0.2, 0.5, 1)
    assert names(by_standing([many, one])) == ["look_up", "exchange"]


def test_calls_of_one_tool_keep_the_order_of_their_probabilities() -> None:
    calls = [call("exchange", 0.4, each, 4) for each in (0.3, 0.6, 0.5)]
    assert [one.least for one in by_standing(calls)] == [0.6, 0.5, 0.3]


def test_only_the_best_call_of_a_tool_is_lifted() -> None:
    best, next_best = call("exchange", 0.43, 0.5, 4), call("exchange", 0.43, 0.49, 4)
    one = call("look_up", 0.08, 0.5, 1)
    assert names(by_standing([one, next_best, best])) == ["exchange", "look_up", "exchange"]


def test_what_cannot_be_made_comes_last() -> None:
    none = call("exchange", 0.9, 0.0, 4)
    assert names(by_standing([none, call("look_up", 0.1, 0.5, 1)])) == ["look_up", "exchange"]
    assert by_standing([]) == []
