"""Sums say what they are made of: absent is not zero, partly known is said, costs are derived."""

import msgspec
import pytest

from reflexarc.bench.waste_cost import Costs
from reflexarc.bench.waste_figures import figures
from reflexarc.traces.requests import ABSENT, FileReport, estimated, measured
from tests.bench.recorded import input_price, prices, report, request, text, tool


def test_what_no_request_tells_is_absent_and_not_zero() -> None:
    made = report(request(0, prompt=100), request(1, prompt=50)).totals
    assert (made.prompt, made.cache_read, made.tool_calls) == (150, None, None)
    assert made.kinds["cache_read"] == made.kinds["tool_calls"] == "absent"
    assert made.unknown == {}


def test_a_zero_that_was_counted_is_a_zero() -> None:
    made = report(request(0, prompt=100, cache_read=0))
    assert (made.totals.cache_read, made.totals.kinds["cache_read"]) == (0, "measured")
    assert made.hit_rate == 0.0


def test_what_some_requests_tell_is_summed_and_the_others_are_counted() -> None:
    made = report(request(0, prompt=100, cache_read=40), request(1, prompt=50))
    assert (made.totals.cache_read, made.totals.unknown) == (40, {"cache_read": 1})
    assert made.hit_rate is None
    assert "of 1 request that is not in this log" in made.verdicts[1]


def test_a_sum_is_as_uncertain_as_its_least_certain_part() -> None:
    sure, guessed = request(0, cost_usd=measured(0.1)), request(1, cost_usd=estimated(0.2))
    made = figures([(sure, sure.cost_usd), (guessed, guessed.cost_usd)])
    assert made.cost_usd == pytest.approx(0.3)
    assert made.kinds["cost_usd"] == "estimated"


def test_money_is_summed_exactly() -> None:
    cheap = [request(number, cost_usd=measured(0.1)) for number in range(10)]
    assert report(*cheap).totals.cost_usd == 1.0


def test_whether_cached_tokens_are_in_the_prompt_must_be_known_for_a_hit_rate() -> None:
    made = report(request(0, prompt=100, cache_read=40, unknown_cache=True))
    assert made.hit_rate is None
    assert made.totals.cache_read is None


def test_calls_are_counted_where_answers_can_be_seen() -> None:
    seen = request(0, sent=text("hello"))
    called = request(1, tools=(tool("look", 0, 1), tool("look", 1, 2)))
    made = report(seen, called, request(2, prompt=10)).totals
    assert (made.tool_calls, made.unknown["tool_calls"]) == (2, 1)


def test_a_cost_that_the_log_has_is_taken() -> None:
    made = report(request(0, prompt=1000, cost_usd=measured(0.5))).totals
    assert (made.cost_usd, made.kinds["cost_usd"]) == (0.5, "measured")


def test_a_cost_that_the_log_lacks_is_worked_out_from_published_prices() -> None:
    costs = Costs(prices())
    whole = costs.of(request(0, prompt=1_000_000, output=0, cache_read=0))
    assert (whole.value, whole.kind) == (float(input_price()), "derived")
    cached = costs.of(request(0, prompt=1_000_000, output=0, cache_read=1_000_000))
    assert cached.value is not None
    assert cached.value < float(input_price())


def test_where_money_goes_adds_up_to_what_is_paid() -> None:
    made = report(
        request(0, prompt=50_000, cache_read=30_000, cache_write=15_000, output=700),
        request(1, prompt=9_000, cache_read=0, output=300),
        request(2, prompt=9_000, model="home-made", provider="local"),
    )
    money = made.money
    assert money.requests == 2
    parts = (money.read_anew_usd, money.from_cache_usd, money.to_cache_usd, money.output_usd)
    assert all(part is not None and part > 0 for part in parts)
    assert sum(part or 0 for part in parts) == pytest.approx(made.totals.cost_usd, abs=1e-5)
    assert report(request(0, model="home-made", provider="local")).money.read_anew_usd is None


def test_without_cached_tokens_a_cost_is_at_most_so_much_and_estimated() -> None:
    found = Costs(prices()).of(request(0, prompt=1_000_000, output=0))
    assert (found.value, found.kind) == (float(input_price()), "estimated")
    made = report(request(0, prompt=1_000_000, output=0))
    assert made.verdicts[0].endswith(f"at most ${input_price():,.2f}, were nothing cached.")


def test_a_model_without_a_price_is_named_and_costs_nothing_known() -> None:
    made = report(request(0, prompt=10, model="home-made", provider="local"))
    assert (made.totals.cost_usd, made.totals.kinds["cost_usd"]) == (None, "absent")
    assert made.unpriced == {"local/home-made": 1}
    assert any("No price is known for local/home-made (1 request)" in v for v in made.verdicts)


def test_a_service_tier_without_a_price_is_named_with_its_model() -> None:
    given = msgspec.structs.replace(request(0, prompt=10, cache_read=0), service_tier="fast")

    made = report(given)

    assert made.totals.cost_usd is None
    assert made.unpriced == {f"anthropic/{given.model} (fast)": 1}


def test_a_model_without_a_provider_is_priced_as_by_its_maker_and_said_to_be() -> None:
    costs = Costs(prices())
    found = costs.of(request(0, prompt=1_000_000, output=0, cache_read=0, provider=""))
    assert (found.value, found.kind) == (float(input_price()), "estimated")
    assert len(costs.by_maker) == 1
    assert costs.of(request(0, prompt=10, provider="", model="nobody")) == ABSENT


def test_failed_requests_are_errors_and_no_requests() -> None:
    files = [FileReport("log.jsonl", "test", errors=1)]
    made = report(request(0, prompt=100), request(1, prompt=100, failed=True), files=files)
    assert (made.totals.requests, made.totals.prompt, made.errors) == (1, 100, 1)
    assert "1 request failed" in made.verdicts[0]


def test_every_file_has_a_row_with_what_reading_gave() -> None:
    files = [
        FileReport("a", "test", lines=3, duplicates={"message id": 2}),
        FileReport("b", "", notes=["not a log of a known format"]),
        FileReport("c", "test", at_least=True),
        FileReport("d", "", notes=["cannot be read (Permission denied)"], at_least=True),
    ]
    made = report(request(0, prompt=10, file="a"), request(1, prompt=5, file="c"), files=files)
    assert [(row.name, row.requests, row.prompt) for row in made.files] == [
        ("a", 1, 10), ("b", 0, None), ("c", 1, 5), ("d", 0, None),
    ]  # fmt: skip
    assert made.files[0].report.duplicates == {"message id": 2}
    assert any("unreadable: totals are at least" in one for one in made.verdicts)
    assert any("1 file is a log of no known format" in one for one in made.verdicts)


def test_models_and_sessions_have_rows_the_costliest_first() -> None:
    made = report(
        request(0, session="small", prompt=10, cache_read=0),
        request(1, session="large", prompt=1000, cache_read=0),
        request(2, session="large", prompt=10, model="gpt-5.4", provider="openai"),
    )
    assert [(row.name, row.requests) for row in made.sessions] == [("large", 2), ("small", 1)]
    assert [row.name for row in made.models] == ["anthropic/claude-opus-4-5", "openai/gpt-5.4"]


def test_nothing_read_says_so() -> None:
    assert report().verdicts[0] == "No request to a model could be read here."
