"""A request goes to the cheapest deployment that is fast enough; what turned slow is left."""

import random
from collections import Counter

import pytest

from reflexarc.upstream.circuit import Circuit, CircuitLimits
from reflexarc.upstream.measuring import Measures
from reflexarc.upstream.placement import (
    Candidate,
    Standing,
    Targets,
    placed,
    retry_after_s,
)
from tests.upstream.placing import FIRST_MS, TARGETS, Load

NOW = 10.0


def standing(
    first_ms: float | None = None, gap_ms: float | None = None, faults: int = 0, free: bool = True
) -> Standing:
    """A deployment that ten requests were sent to, so many of them with faults."""
    measures = Measures()
    for number in range(10):
        if first_ms is not None:
            measures.first_token(500, 0.0, first_ms, NOW)
        if gap_ms is not None:
            measures.gap(gap_ms, NOW)
        if first_ms is not None:
            measures.outcome(number >= faults, NOW)
    return Standing(Circuit(CircuitLimits()), measures, free)


def ask(
    standings: dict[str, Standing],
    costs: dict[str, int | None],
    targets: Targets | None = TARGETS,
    draw: random.Random | None = None,
) -> list[tuple[str, str]]:
    candidates = [
        Candidate(name, cost, 500, 0.0, score=draw.random() if draw else 0.0)
        for name, cost in costs.items()
    ]
    found = placed(candidates, standings, targets, NOW)
    return [(one.candidate.name, one.why) for one in found]


def test_of_those_that_meet_the_targets_the_cheapest_is_first() -> None:
    standings = {
        "dear": standing(50, 5), "cheap": standing(700, 25), "slow": standing(2_000, 5),
        "slower": standing(200, 90), "new": standing(), "unpriced": standing(60, 6),
        "broken": standing(50, 5, faults=8),
    }  # fmt: skip
    costs: dict[str, int | None] = {
        "unpriced": None, "slower": 1, "slow": 1, "broken": 0, "dear": 90, "new": 40, "cheap": 20,
    }  # fmt: skip
    assert ask(standings, costs) == [
        ("cheap", "meets"), ("new", "unknown"), ("dear", "meets"), ("unpriced", "meets"),
        ("slow", "slow"), ("slower", "slow"), ("broken", "failing"),
    ]  # fmt: skip


def test_batch_asks_for_the_price_alone() -> None:
    standings = {"dear": standing(50, 5), "cheap": standing(9_000, 900), "bad": standing(9, 9, 9)}
    found = ask(standings, {"dear": 90, "bad": 1, "cheap": 20}, targets=None)
    assert [name for name, _ in found] == ["cheap", "dear", "bad"]


def test_a_deployment_with_a_slot_free_is_before_a_cheaper_one_without() -> None:
    standings = {"full": standing(50, 5, free=False), "dear": standing(50, 5)}
    assert [name for name, _ in ask(standings, {"full": 1, "dear": 90})] == ["dear", "full"]


def test_without_prices_the_order_of_the_list_holds_whatever_is_drawn() -> None:
    standings = {name: standing(50, 5) for name in "abc"}
    draw = random.Random(1)
    for _ in range(20):
        found = ask(standings, {"c": None, "a": None, "b": None}, draw=draw)
        assert [name for name, _ in found] == ["c", "a", "b"]


def test_what_its_circuit_does_not_allow_is_left_out() -> None:
    standings = {"a": standing(50, 5), "b": standing(50, 5)}
    standings["a"].circuit.cool(NOW, 30)
    assert ask(standings, {"a": 1, "b": 2}) == [("b", "meets")]
    assert retry_after_s(standings, ["a", "b"], NOW) == 0
    standings["b"].circuit.cool(NOW, 7)
    assert ask(standings, {"a": 1, "b": 2}) == []
    assert retry_after_s(standings, ["a", "b"], NOW) == 7
    assert retry_after_s(standings, ["a"], NOW) == 30
    assert retry_after_s(standings, [], NOW) == 0


def test_equals_are_drawn_but_for_those_that_have_more_than_their_share() -> None:
    standings = {name: standing(50, 5) for name in "abc"}
    draw = random.Random(1)

    def firsts() -> Counter[str]:
        costs: dict[str, int | None] = {"a": 5, "b": 5, "c": 5}
        return Counter(ask(standings, costs, draw=draw)[0][0] for _ in range(2_000))

    found = firsts()
    assert all(found[name] / 2_000 == pytest.approx(1 / 3, abs=0.04) for name in "abc")
    standings["c"].load = 10
    standings["a"].load = standings["b"].load = 5
    found = firsts()
    assert found["c"] == 0
    assert found["b"] / 2_000 == pytest.approx(0.5, abs=0.04)
    standings["c"].weight = 4  # of so many slots ten are its share
    assert firsts()["c"] > 500


def test_a_deployment_that_was_slow_is_tried_again_by_one_request_at_a_time() -> None:
    was_slow = standing(5_000, 5)
    standings = {"cheap": was_slow, "dear": Standing(Circuit(CircuitLimits()), Measures(), True)}
    candidates = [Candidate("cheap", 1, 500, 0.0), Candidate("dear", 9, 500, 0.0)]

    def first(now_s: float) -> tuple[str, str]:
        found = placed(candidates, standings, Targets(), now_s)[0]
        return found.candidate.name, found.why

    assert first(NOW) == ("dear", "unknown")
    later_s = NOW + 500
    assert first(later_s) == ("cheap", "unknown")
    was_slow.measures.began(1, later_s)
    assert first(later_s + 0.1) == ("dear", "unknown")
    was_slow.measures.heard(1)  # and nothing more is known: its tokens may be slow
    assert first(later_s + 29) == ("dear", "unknown")
    assert first(later_s + 30) == ("cheap", "unknown")


def test_a_deployment_that_failed_is_tried_again_by_one_request_at_a_time() -> None:
    failed = standing(50, 5, faults=10)
    standings = {"cheap": failed, "dear": Standing(Circuit(CircuitLimits()), Measures(), True)}
    candidates = [Candidate("cheap", 1, 500, 0.0), Candidate("dear", 9, 500, 0.0)]
    for targets in (Targets(), None):
        assert placed(candidates, standings, targets, NOW)[1].why == "failing"
        found = placed(candidates, standings, targets, NOW + 500)
        assert found[0].candidate.name == "cheap"
    failed.measures.began(1, NOW + 500)
    for targets in (Targets(), None):
        found = placed(candidates, standings, targets, NOW + 500)
        assert [one.why for one in found][1] == "failing"


def test_a_new_deployment_that_hangs_is_left_before_anything_is_measured() -> None:
    standings = {"new": standing(), "other": standing(400, 5)}
    for number in range(3):
        standings["new"].measures.began(number, NOW - 2)
    assert ask(standings, {"new": 1, "other": 9}) == [("other", "meets"), ("new", "slow")]


# With a clock that is simulated.


def steady(ms: float) -> FIRST_MS:
    return lambda _, draw: ms * draw.lognormvariate(0, 0.2)


def slow_between(begin_s: float, end_s: float, fast_ms: float, slow_ms: float) -> FIRST_MS:
    def first_ms(now_s: float, draw: random.Random) -> float:
        slow = begin_s <= now_s < end_s
        return (slow_ms if slow else fast_ms) * draw.lognormvariate(0, 0.2)

    return first_ms


@pytest.mark.parametrize("a_second", [0.5, 5.0])
@pytest.mark.parametrize("slow_ms", [4_000.0, 60_000.0])
def test_a_deployment_that_turns_slow_is_left_within_a_handful_and_tried_again_later(
    a_second: float, slow_ms: float
) -> None:
    """The slow answers take 4 s, or never come: the cheaper deployment is slow for ten minutes."""
    load = Load(
        {"cheap": 10, "dear": 50},
        {"cheap": slow_between(300, 900, 300, slow_ms), "dear": steady(300)},
    )
    load.run(300, a_second)
    assert load.share("cheap", 60, 300) == 1
    load.run(900, a_second)
    # What is sent before anybody can know (the target's 0.8 s), a handful, and one trial a minute.
    blind = a_second * 0.8 * 3
    assert load.count("cheap", 300, 330) <= 5 + blind
    assert 1 <= load.count("cheap", 360, 900) <= 10
    load.run(2_000, a_second)
    assert load.share("cheap", 1_700, 2_000) == 1


def test_a_deployment_that_stays_slow_is_asked_ever_more_rarely() -> None:
    load = Load(
        {"cheap": 10, "dear": 50},
        {"cheap": slow_between(60, 1e9, 300, 4_000), "dear": steady(300)},
    )
    load.run(4_000, 5)
    assert load.count("cheap", 2_000, 4_000) <= 8
    assert load.count("cheap", 2_000, 4_000) >= 2


def test_equal_deployments_share_load() -> None:
    load = Load(dict[str, int | None].fromkeys("abc", 10), {name: steady(300) for name in "abc"})
    load.run(300, 20)
    for name in "abc":
        assert load.share(name, 30, 300) == pytest.approx(1 / 3, abs=0.03)


def test_equals_of_which_one_is_slower_have_about_as_much_at_work_each() -> None:
    load = Load(
        {"a": 10, "b": 10}, {"a": steady(100), "b": steady(600)}, Targets(2_000), max_parallel=12
    )
    load.run(200, 30)
    assert load.share("a", 50, 200) > 0.6
    assert max(load.most_busy.values()) <= 12


def test_the_cheaper_of_two_that_meet_the_targets_has_it_all_until_it_is_full() -> None:
    load = Load(
        {"dear": 50, "cheap": 10}, {"dear": steady(100), "cheap": steady(500)}, max_parallel=8
    )
    load.run(100, 5)
    assert load.share("cheap", 10, 100) > 0.98
    load.run(200, 40)  # 40 a second of half a second each: twenty at work, eight have room
    assert 0.3 < load.share("cheap", 110, 200) < 0.5


def test_where_all_are_slow_the_nearest_to_the_target_is_asked() -> None:
    load = Load({"a": 10, "b": 50}, {"a": steady(5_000), "b": steady(1_500)})
    load.run(600, 2)
    assert load.share("b", 100, 600) > 0.9


def test_a_deployment_whose_tokens_turn_slow_is_left_and_tried_by_few() -> None:
    """Answers of 200 tokens: what a trial tells of gaps comes long after its first token."""

    def gap_ms(now_s: float, draw: random.Random) -> float:
        return (90 if 300 <= now_s < 900 else 10) * draw.lognormvariate(0, 0.1)

    load = Load(
        {"cheap": 10, "dear": 50},
        {"cheap": steady(300), "dear": steady(300)},
        gaps={"cheap": gap_ms},
        tokens=200,
    )
    load.run(300, 5)
    assert load.share("cheap", 60, 300) == 1
    load.run(900, 5)
    assert load.count("cheap", 340, 900) <= 15
    load.run(2_000, 5)
    assert load.share("cheap", 1_700, 2_000) == 1
