"""Each way of saving has its figure, its kind and its assumptions; nothing to save is said."""

import pytest

from reflexarc.bench.waste import Waste
from reflexarc.bench.waste_savings import Saving
from tests.bench.recorded import (
    DAY_S,
    blocks,
    input_price,
    read_price,
    report,
    request,
    text,
    tool,
)


def _way(made: Waste, name: str) -> Saving:
    (found,) = [one for one in made.savings if name in one.way]
    return found


def test_a_conversation_that_only_grows_has_an_honest_zero() -> None:
    turns = [request(at, sent=blocks(*range(10 * at + 10)), prompt=1000 * at + 1000) for at in
             range(6)]  # fmt: skip
    made = report(*turns)
    for name in ("stable prefixes", "warm"):
        one = _way(made, name)
        assert (one.tokens, one.usd, one.seconds) == (0, 0.0, 0.0)
    assert any("nothing to be saved" in one for one in made.verdicts)
    assert "In none of these ways is anything to be saved here" in " ".join(made.verdicts)


def test_breaks_by_a_clients_doing_are_what_stable_prefixes_save() -> None:
    made = report(
        request(0, sent=blocks(*range(50)), prompt=5000),
        request(1, sent=blocks(*range(20), *range(100, 140)), prompt=6000),
    )
    one = _way(made, "stable prefixes")
    assert one.tokens == 3000
    assert one.usd == pytest.approx(3000 * float(input_price() - read_price()) / 1e6)
    assert one.kind == "estimated"
    assert one.assumptions


def test_a_cut_of_the_history_and_another_model_are_meant() -> None:
    made = report(
        request(0, sent=blocks(*range(50)), prompt=5000),
        request(1, sent=blocks(*range(20), 99), prompt=2100),
        request(2, sent=blocks(7, 8, 9), prompt=2000, model="claude-sonnet-4-5"),
    )
    assert _way(made, "stable prefixes").tokens == 0


def test_keeping_warm_is_worth_its_pings_or_left_alone() -> None:
    def after(pause_s: float) -> Saving:
        return _way(
            report(
                request(0, sent=blocks(*range(500)), prompt=50_000, at_s=0),
                request(1, sent=blocks(*range(510)), prompt=51_000, at_s=pause_s),
            ),
            "warm",
        )

    short = after(600)
    assert short.tokens == 50_000
    won = 50_000 * float(input_price() - read_price()) - 2 * 51_000 * float(read_price())
    assert short.usd == pytest.approx(won / 1e6)
    assert after(200).tokens == 0
    assert after(86_400).tokens == 0


def test_from_counts_what_expired_is_told_from_what_was_elsewhere() -> None:
    made = report(
        request(0, prompt=20_000, cache_read=0, cache_write=20_000, at_s=0),
        request(1, prompt=21_000, cache_read=0, cache_write=21_000, at_s=400),
        request(2, prompt=22_000, cache_read=0, cache_write=22_000, at_s=420),
    )
    one = _way(made, "warm")
    assert one.tokens == 41_000
    assert "1 after a long pause, 1 without one" in one.because


def test_tools_that_ran_one_after_the_other_could_have_run_side_by_side() -> None:
    tools = (tool("a", DAY_S, DAY_S + 3), tool("b", DAY_S + 3, DAY_S + 5))
    assert _way(report(request(0, tools=tools)), "tools").seconds == 2
    at_once = (tool("a", DAY_S, DAY_S + 3), tool("b", DAY_S, DAY_S + 2))
    assert _way(report(request(0, tools=at_once)), "tools").seconds == 0


@pytest.mark.parametrize("name", ["System 1", "stable prefixes", "warm", "tools"])
def test_what_a_log_says_nothing_about_is_absent_with_its_reason(name: str) -> None:
    one = _way(report(request(0, prompt=100, at_s=0)), name)
    assert (one.kind, one.tokens, one.usd, one.seconds) == ("absent", None, None, None)
    assert one.because


def test_an_orchestrator_is_said_to_be_one() -> None:
    plan, code = "plan the work " * 100, "write the code " * 100
    turns = [
        request(at, sent=text((plan, code)[at % 2], "same end"), prompt=400) for at in range(12)
    ]
    made = report(*turns)
    assert made.redundancy.previous == 0.0
    assert made.redundancy.earlier == 1.0
    said = " ".join(made.verdicts)
    assert "go back and forth between conversations (s)" in said
    assert made.again.requests == 10
    assert "10 requests sent a prompt that had been sent before as it was" in said


def test_what_caches_would_miss_is_told_for_two_times_to_live() -> None:
    made = report(
        request(0, sent=blocks(*range(20)), prompt=2000, at_s=0),
        request(1, sent=blocks(*range(20)), prompt=2000, at_s=1000),
        request(2, sent=blocks(*range(20)), prompt=2000, at_s=1100),
    )
    short, long = made.cache_expiry
    assert (short.ttl_s, long.ttl_s) == (300.0, 3600.0)
    assert (short.missed_tokens, long.missed_tokens) == (4000, 2000)
    assert short.cost_usd is not None
    assert any("forgets after 5 minutes would miss 67%" in one for one in made.verdicts)


def test_what_a_log_does_not_hold_of_prompts_is_taken_to_stay_the_same() -> None:
    said = [f"message {number} " * 40 for number in range(3)]
    seen = [sum(map(len, said[: at + 1])) / 4 for at in range(3)]
    made = report(
        *(
            request(
                at, sent=text(*said[: at + 1], complete=False), prompt=seen[at] + 8000, at_s=60 * at
            )
            for at in range(3)
        )
    )
    (short, _) = made.cache_expiry
    assert short.kind == "estimated"
    assert short.missed_tokens == pytest.approx(8000 + seen[2], abs=70)
    assert made.texts.covers == pytest.approx(sum(seen) / (sum(seen) + 24_000), abs=1e-3)


def test_without_prompts_nothing_is_said_of_reuse() -> None:
    made = report(request(0, prompt=100), request(1, prompt=100))
    assert made.cache_expiry == []
    assert made.redundancy_by_context == []
    assert any("no prompt is in this log" in one for one in made.verdicts)
    assert any("Whether prefixes broke is not in this log" in one for one in made.verdicts)
