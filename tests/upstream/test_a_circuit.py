"""A circuit opens on failures, tries one attempt at a time, and cools down as long as said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.upstream.circuit import Circuit, CircuitLimits

LIMITS = CircuitLimits(failures=3, pause_s=2.0, longest_pause_s=10.0)


def tripped(at_s: float = 0.0) -> Circuit:
    circuit = Circuit(LIMITS)
    for _ in range(LIMITS.failures):
        circuit.failed(at_s, circuit.begin(at_s))
    return circuit


def test_failures_in_a_row_open_it_and_a_success_between_them_does_not_let_them_add_up() -> None:
    circuit = Circuit(LIMITS)
    for outcome in (False, False, True, False, False):
        circuit.begin(0)
        (circuit.succeeded if outcome else circuit.failed)(0)
    assert circuit.state(0) == "closed"
    circuit.failed(0)
    assert circuit.state(0) == "open"
    assert not circuit.allows(0)


def test_more_than_half_of_the_last_twenty_opens_it_though_never_many_in_a_row() -> None:
    circuit = Circuit(LIMITS)
    for number in range(20):
        (circuit.failed if number % 2 else circuit.succeeded)(0)
    assert circuit.state(0) == "closed"
    circuit.failed(0)  # the eleventh of the last twenty: a success went out of the window
    assert circuit.state(0) == "open"


def test_after_its_pause_one_trial_may_pass_and_its_success_lets_all_pass() -> None:
    circuit = tripped()
    assert circuit.opens_in_s(0.5) == 1.5
    assert not circuit.allows(1.999)
    assert circuit.state(2.0) == "half_open"
    assert circuit.begin(2.0)
    assert not circuit.allows(2.0)
    assert circuit.opens_in_s(2.0) == 0
    circuit.succeeded(3.0, True)
    assert circuit.state(3.0) == "closed"
    assert circuit.allows(3.0)


def test_the_pause_doubles_with_each_failed_trial_up_to_the_longest() -> None:
    circuit = tripped()
    now_s, pauses = 0.0, list[float]()
    for _ in range(4):
        pauses.append(circuit.opens_in_s(now_s))
        now_s += pauses[-1]
        circuit.failed(now_s, circuit.begin(now_s))
    assert pauses == [2.0, 4.0, 8.0, 10.0]
    now_s += circuit.opens_in_s(now_s)
    circuit.succeeded(now_s, circuit.begin(now_s))
    for _ in range(LIMITS.failures):
        circuit.failed(now_s)
    assert circuit.opens_in_s(now_s) == 2.0


def test_a_trial_that_the_client_left_is_given_to_another() -> None:
    circuit = tripped()
    trial = circuit.begin(2.0)
    circuit.abandoned(2.5, trial)
    assert circuit.allows(2.5)
    assert circuit.begin(2.5)


@pytest.mark.parametrize("outcome", ["succeeded", "failed", "abandoned"])
def test_an_attempt_from_before_it_opened_does_not_speak_for_the_trial(outcome: str) -> None:
    circuit = Circuit(LIMITS)
    before = circuit.begin(0)
    for _ in range(LIMITS.failures):
        circuit.failed(0)
    trial = circuit.begin(2.0)
    getattr(circuit, outcome)(2.1, before)
    assert circuit.state(2.1) == "half_open"
    assert not circuit.allows(2.1)
    circuit.succeeded(2.2, trial)
    assert circuit.allows(2.2)


def test_a_cool_down_counts_as_no_failure_and_leaves_the_circuit_as_it_was() -> None:
    circuit = Circuit(LIMITS)
    circuit.failed(0)
    circuit.cool(0, 30.0)
    circuit.cool(1, 5.0)  # ends earlier: nothing changes
    assert circuit.state(29.9) == "open"
    assert circuit.opens_in_s(10) == 20.0
    assert circuit.allows(30.0)
    circuit.failed(30.0)
    assert circuit.state(30.0) == "closed"  # two in a row, three open it
    circuit.failed(30.0)
    assert circuit.opens_in_s(30.0) == LIMITS.pause_s


def test_a_cool_down_of_no_length_is_none() -> None:
    circuit = Circuit(LIMITS)
    for length_s in (0.0, -5.0, float("nan")):
        circuit.cool(10.0, length_s)
        assert circuit.allows(10.0)


@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(0.001, 1e6)), min_size=1, max_size=5))
def test_cool_downs_last_exactly_as_long_as_said(given: list[tuple[float, float]]) -> None:
    circuit = Circuit(LIMITS)
    for at_s, for_s in given:
        circuit.cool(at_s, for_s)
    end_s = max(at_s + for_s for at_s, for_s in given)
    before_s = end_s - max(1e-6, end_s * 1e-9)
    assert not circuit.allows(before_s)
    assert circuit.allows(end_s)


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["begin", "succeeded", "failed", "abandoned", "cool"]),
        st.floats(0, 3),
        st.integers(0, 9),
    ),
    max_size=80,
)


@given(_STEPS)
def test_two_trials_never_pass_at_once(steps: list[tuple[str, float, int]]) -> None:
    circuit = Circuit(LIMITS)
    for _ in range(LIMITS.failures):
        circuit.failed(0)
    now_s = 0.0
    out: list[bool] = []  # attempts on their way; whether each is a trial
    for step, wait_s, which in steps:
        now_s += wait_s
        if step == "begin":
            half_open = circuit.state(now_s) == "half_open"
            if circuit.allows(now_s):
                out.append(circuit.begin(now_s))
                assert out[-1] == half_open
        elif step == "cool":
            circuit.cool(now_s, wait_s)
        elif out:
            getattr(circuit, step)(now_s, out.pop(which % len(out)))
        assert sum(out) <= 1
        if circuit.state(now_s) == "half_open":
            assert circuit.allows(now_s) == (sum(out) == 0)
