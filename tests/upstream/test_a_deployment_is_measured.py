"""What is measured of a deployment is what was seen lately, and what hangs is seen at once."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.upstream.measuring import MAX_WAITING, Measures

WIDTH = 2 ** (1 / 8)  # of a bucket


def fed(times_ms: list[float], every_s: float = 0.1, measures: Measures | None = None) -> Measures:
    measures = measures or Measures()
    for number, ms in enumerate(times_ms):
        measures.first_token(500, 0.0, ms, number * every_s)
    return measures


def p95(measures: Measures, now_s: float, prompt_tokens: int = 500) -> float | None:
    return measures.first_token_ms(0.95, prompt_tokens, 0.0, now_s)


def nearly(ms: float) -> object:
    return pytest.approx(ms, rel=WIDTH - 1)


def test_fewer_than_three_samples_say_nothing() -> None:
    measures = Measures()
    for number in range(3):
        assert p95(measures, 1.0) is None
        assert measures.token_ms(0.5, 1.0) is None
        assert measures.error_rate(1.0) is None
        measures.first_token(500, 0.0, 100.0, number)
        measures.gap(10.0, number)
        measures.outcome(number > 0, number)
    assert p95(measures, 3.0) == nearly(100)
    assert measures.token_ms(0.5, 3.0) == nearly(10)
    assert measures.error_rate(3.0) == pytest.approx(1 / 3, abs=0.01)


@given(
    st.lists(st.floats(1, 100_000), min_size=3, max_size=15), st.sampled_from([0.1, 0.5, 0.9, 0.95])
)
def test_a_quantile_is_within_a_buckets_width_of_the_true_one(
    times_ms: list[float], share: float
) -> None:
    measures = Measures()
    for ms in times_ms:  # fewer than a shift takes, all at one time: they weigh nearly the same
        measures.gap(ms, 0.0)
    found = measures.token_ms(share, 0.0)
    assert found is not None
    slack = 0.05 * len(times_ms)  # what the later weigh more
    held = sorted(times_ms)
    lower = held[max(0, math.ceil(share * len(held) - slack) - 1)]
    upper = held[min(len(held), math.ceil(share * len(held) + slack)) - 1]
    assert lower / WIDTH <= found <= upper * WIDTH


def test_quantiles_of_many_samples_are_those_of_their_distribution() -> None:
    draw = random.Random(3)
    times_ms = [draw.lognormvariate(5, 0.4) for _ in range(600)]
    measures = fed(times_ms, every_s=0.01)
    last = sorted(times_ms[-400:])
    for share in (0.5, 0.9):
        found = measures.first_token_ms(share, 500, 0.0, 6.0)
        assert found == pytest.approx(last[int(share * len(last))], rel=0.15)


def test_a_sample_counts_half_after_a_minute() -> None:
    measures = fed([100.0] * 16, every_s=0.0)
    begin = measures.samples(0.0)
    assert 15 < begin <= 16
    assert measures.samples(60.0) == pytest.approx(begin / 2)
    assert measures.samples(120.0) == pytest.approx(begin / 4)


def test_no_more_than_the_last_two_hundred_matter() -> None:
    measures = fed([100.0] * 5_000, every_s=0.0)
    assert 190 < measures.samples(0.0) < 205
    for _ in range(900):
        measures.gap(50.0, 0.0)
    for _ in range(3):
        measures.gap(10.0, 0.0)
    assert measures.token_ms(0.5, 0.0) == nearly(50)


def test_prompts_of_a_class_are_told_apart_and_a_rare_class_is_told_by_all() -> None:
    measures = Measures()
    for number in range(20):
        measures.first_token(500, 0.0, 100.0, number * 0.1)
        measures.first_token(50_000, 0.0, 2_000.0, number * 0.1)
        measures.first_token(50_000, 0.9, 400.0, number * 0.1)
    for number in range(4):
        measures.first_token(5_000, 0.0, 700.0, 2 + number * 0.1)
    now_s = 2.5
    assert p95(measures, now_s, 600) == nearly(100)
    assert p95(measures, now_s, 20_000) == nearly(2_000)
    assert measures.first_token_ms(0.95, 20_000, 0.8, now_s) == nearly(400)
    assert p95(measures, now_s, 5_000) == nearly(2_000)
    assert p95(measures, now_s, 100_000) == nearly(2_000)


def test_a_service_that_turns_slow_is_slow_after_three_answers_though_hundreds_were_fast() -> None:
    measures = fed([100.0] * 300)
    now_s = 30.0
    slow = 0
    while (p95(measures, now_s) or 0) < 800:
        measures.first_token(500, 0.0, 3_000.0, now_s)
        slow += 1
        now_s += 0.1
    assert slow <= 3
    assert p95(measures, now_s) == nearly(3_000)


def test_one_slow_answer_among_hundreds_is_none() -> None:
    measures = fed([100.0] * 300)
    for number in range(20):
        measures.first_token(500, 0.0, 3_000.0 if number % 10 == 0 else 100.0, 30 + number * 0.1)
    assert p95(measures, 32.0) == nearly(100)


def test_a_service_that_turns_fast_is_fast_after_a_few_answers() -> None:
    measures = fed([3_000.0] * 300)
    for number in range(8):
        measures.first_token(500, 0.0, 100.0, 30 + number * 0.1)
    assert p95(measures, 31.0) == nearly(100)


def test_attempts_that_wait_count_as_what_they_waited_so_far() -> None:
    measures = fed([100.0] * 300)
    now_s = 30.0
    for number in range(3):
        measures.began(number, now_s)
    assert p95(measures, now_s + 0.1) == nearly(100)
    assert p95(measures, now_s + 5) == nearly(5_000)
    measures.heard(0)
    measures.heard(0)
    assert p95(measures, now_s + 5) == nearly(100)
    assert measures.waiting == 2
    assert measures.late(4_000, now_s + 5) == 2
    assert measures.late(6_000, now_s + 5) == 0


def test_large_prompts_that_wait_say_nothing_of_small_ones() -> None:
    measures = fed([100.0] * 100)
    for number in range(10):
        measures.began(number, 10.0, 60_000)
    assert p95(measures, 12.0) == nearly(100)
    for number in range(10, 13):
        measures.began(number, 10.0, 600)
    assert p95(measures, 12.0) == nearly(2_000)


def test_what_was_known_is_known_no_longer_after_a_silence_and_remembered_all_the_same() -> None:
    measures = fed([3_000.0] * 5)
    assert p95(measures, 59.0) == nearly(3_000)
    assert p95(measures, 70.0) is None
    assert measures.remembered(0.95, 500, 0.0)[0] == nearly(3_000)
    assert measures.remembered(0.95, 500, 0.0)[1:] == (None, None)


def test_a_sample_that_bears_out_what_was_known_makes_it_known_for_longer_each_time() -> None:
    measures = fed([3_000.0] * 5)
    now_s, held = 0.4, list[float]()
    for _ in range(6):
        last_s = now_s
        while p95(measures, now_s) is not None:
            now_s += 1.0
        held.append(now_s - last_s)
        measures.first_token(500, 0.0, 3_100.0, now_s)
        assert p95(measures, now_s) == nearly(3_000)
    assert held == pytest.approx([60.0, 120.0, 240.0, 480.0, 480.0, 480.0], abs=1.0)


def test_a_sample_far_better_than_what_was_known_ends_it() -> None:
    measures = fed([3_000.0] * 100)
    now_s = 2_000.0
    for number in range(3):
        assert p95(measures, now_s) is None
        measures.first_token(500, 0.0, 100.0, now_s)
        now_s += 5.0
        assert measures.remembered(0.95, 500, 0.0)[0] in (None, nearly(100)), number
    assert p95(measures, now_s) == nearly(100)


def test_faults_are_seen_after_three_of_five_and_forgotten_once_it_works_again() -> None:
    measures = Measures()
    for number in range(300):
        measures.outcome(True, number * 0.1)
    assert measures.error_rate(30.0) == 0
    for number in range(3):
        measures.outcome(False, 30 + number * 0.1)
    rate = measures.error_rate(31.0)
    assert rate is not None
    assert rate >= 0.6
    assert measures.error_rate(100.0) is None
    assert (measures.remembered(0.95, 500, 0.0)[2] or 0) >= 0.4
    for number in range(3):
        measures.outcome(True, 1_000 + number)
    assert measures.error_rate(1_003.0) == 0


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), -1.0])
def test_times_that_are_none_are_passed_over(odd: float) -> None:
    measures = fed([odd] * 10)
    for _ in range(10):
        measures.gap(odd, 0.0)
    assert p95(measures, 1.0) is None
    assert measures.token_ms(0.5, 1.0) is None


@given(
    st.lists(
        st.tuples(st.floats(0, 1e7), st.integers(0, 200_000), st.floats(0, 1), st.floats(0, 1e6)),
        max_size=60,
    )
)
def test_nothing_measured_breaks_it_and_a_higher_quantile_is_never_lower(
    samples: list[tuple[float, int, float, float]],
) -> None:
    measures = Measures()
    now_s = 0.0
    for number, (ms, prompt_tokens, cached, wait_s) in enumerate(samples):
        now_s += wait_s
        measures.began(number, now_s, prompt_tokens if number % 2 else None, cached)
        if number % 3:
            measures.first_token(prompt_tokens, cached, ms, now_s)
            measures.heard(number)
        measures.gap(ms, now_s)
        measures.outcome(number % 2 == 0, now_s)
        found = [
            measures.first_token_ms(share, prompt_tokens, cached, now_s)
            for share in (0.1, 0.5, 0.95)
        ]
        told = [ms for ms in found if ms is not None]
        assert told == sorted(told)
        assert len(told) in (0, 3)
        assert 0 <= measures.samples(now_s) <= len(samples)
        rate = measures.error_rate(now_s)
        assert rate is None or 0 <= rate <= 1 + 1e-9
    shown = measures.snapshot(now_s)
    assert len(shown["by_prompt"]) <= 15


def test_attempts_that_nobody_ends_do_not_pile_up_without_end() -> None:
    measures = Measures()
    for number in range(MAX_WAITING + 5):
        measures.began(number, 0.0)
    assert measures.waiting == MAX_WAITING


def test_what_people_are_shown_names_classes_and_milliseconds() -> None:
    shown = fed([100.0] * 10).snapshot(1.0)
    assert list(shown["by_prompt"]) == ["under 1k, under 25% cached"]
    assert shown["by_prompt"]["under 1k, under 25% cached"]["p95_ms"] == nearly(100)
    assert shown["token"] == {"samples": 0.0, "p50_ms": None, "p95_ms": None}
    assert shown["error_rate"] is None


def test_of_few_samples_one_alone_does_not_speak_for_the_tail_where_that_is_asked_for() -> None:
    for number, others in ((1, 2), (1, 9), (1, 25), (2, 9)):
        measures = fed([100.0] * others + [3_000.0] * number, every_s=0.0)
        assert p95(measures, 1.0) == nearly(3_000 if others < 20 else 100)
        sure = measures.first_token_ms(0.95, 500, 0.0, 1.0, sure=True)
        assert sure == nearly(3_000 if number == 2 else 100)
        assert measures.remembered(0.95, 500, 0.0)[0] == sure


def test_one_fault_alone_does_not_make_a_deployment_one_that_fails() -> None:
    measures = Measures()
    for ok in (True, False, True):
        measures.outcome(ok, 0.0)
    assert measures.error_rate(1.0) == pytest.approx(1 / 3, abs=0.01)
    assert measures.error_rate(1.0, sure=True) == pytest.approx(0, abs=0.01)
    measures.outcome(False, 1.0)
    assert measures.error_rate(1.0, sure=True) == pytest.approx(1 / 4, abs=0.01)
