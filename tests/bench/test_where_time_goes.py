"""Each step's time is the model's, its tools' or waiting; what a log does not say is not known."""

import pytest

from reflexarc.bench.waste_time import Rates, model_time, spent, tools_time
from reflexarc.traces.requests import RecordedTool, measured
from tests.bench.recorded import DAY_S, report, request, tool


def test_a_step_is_model_then_tools_then_waiting() -> None:
    step = request(0, at_s=0, took_s=2, tools=(tool("look", DAY_S + 2, DAY_S + 5),))
    (one, _) = spent([step, request(1, at_s=9)])
    assert (one.model_s.value, one.tools_s.value, one.waiting_s.value) == (2, 3, 4)


def test_tools_side_by_side_take_the_time_of_their_union() -> None:
    tools = (tool("a", 0, 4), tool("b", 1, 3), tool("c", 6, 7))
    assert tools_time(tools).value == 5


def test_tools_of_unknown_times_take_their_own_where_told() -> None:
    own = (RecordedTool("a", own_s=measured(1)), RecordedTool("b", own_s=measured(2)))
    assert tools_time(own).value == 3
    assert tools_time((*own, RecordedTool("c"))).value is None


def test_an_answer_without_calls_took_no_tools_where_it_can_be_seen() -> None:
    (seen, unseen) = spent([request(0, output_text="done"), request(1)])
    assert (seen.tools_s.value, unseen.tools_s.value) == (0, None)


def test_an_observed_gap_is_an_estimate_and_leaves_no_waiting_beside_it() -> None:
    first, second = request(0, at_s=0, took_s=2), request(1, at_s=9, took_s=2, gap=True)
    (one, other) = spent([first, second])
    assert one.waiting_s.value is None
    assert (other.model_s.value, other.model_s.kind) == (2, "estimated")


def test_an_end_before_its_beginning_is_not_taken_for_a_time() -> None:
    assert model_time(request(0, took_s=-1)).value is None


def test_agents_wait_for_their_own_next_request() -> None:
    found = spent(
        [request(0, at_s=0, took_s=1), request(1, at_s=2, agent="sub"), request(2, at_s=11)]
    )
    assert [one.waiting_s.value for one in found] == [10, None, None]


def test_sums_of_time_say_of_how_many_steps_nothing_is_known() -> None:
    made = report(request(0, at_s=0, took_s=2), request(1, at_s=5, took_s=None)).time
    assert (made.model_s, made.waiting_s, made.tools_s) == (2, 3, None)
    assert made.unknown["model_s"] == 1


def test_steps_are_listed_the_costliest_first_and_bounded() -> None:
    made = report(*(request(number, prompt=number, cache_read=0) for number in range(300)))
    assert len(made.steps) == 200
    assert [step.prompt for step in made.steps[:2]] == [299, 298]
    assert made.totals.requests == 300


def test_how_fast_a_model_reads_is_told_from_first_tokens() -> None:
    seen = [(tokens, 0.5 + tokens / 1000) for tokens in range(0, 10_000, 500)]
    found = Rates({"m": seen, "few": seen[:3], "flat": [(t, 1.0) for t, _ in seen]})
    assert found.seconds("m", 2000).value == pytest.approx(2.0)
    assert found.seconds("m", 2000).kind == "estimated"
    assert all(found.seconds(name, 2000).value is None for name in ("few", "flat", "absent"))
