"""What an answer cost: published prices, and arithmetic that counts every token once."""

import tomllib
from datetime import date
from decimal import Decimal
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.accounts.prices import Price, Prices
from reflexarc.steps.errors import ConfigError
from reflexarc.wire.price import MAX_MICRO_USD
from reflexarc.wire.usage import (
    Usage,
    usage_from_chat,
    usage_from_messages,
    usage_from_responses,
    usage_to_chat,
    usage_to_messages,
    usage_to_responses,
)

SONNET = Price(Decimal(3), Decimal(15), Decimal("0.3"), Decimal("3.75"), Decimal(6))
TODAY = date(2026, 11, 30)


def prices(own: Path | None = None) -> Prices:
    return Prices.load(own, today=lambda: TODAY)


def price(provider: str, model: str, *more: Any) -> Price:
    found = prices().of(provider, model, *more)
    assert found is not None
    return found


TOLD: dict[str, Usage | None] = {
    "messages": usage_from_messages(
        {"input_tokens": 3, "cache_creation_input_tokens": 12304, "output_tokens": 550}
    ),
    "messages, by how long it is kept": usage_from_messages(
        {
            "input_tokens": 3,
            "cache_creation": {"ephemeral_5m_input_tokens": 12304, "ephemeral_1h_input_tokens": 0},
            "output_tokens": 550,
        }
    ),
    "chat": usage_from_chat(
        {
            "prompt_tokens": 12307,
            "completion_tokens": 550,
            "prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 12304},
        }
    ),
    "responses": usage_from_responses(
        {
            "input_tokens": 12307,
            "output_tokens": 550,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 12304},
        }
    ),
}


@pytest.mark.parametrize("dialect", TOLD)
def test_a_written_cache_costs_what_it_says_in_every_dialect_that_can_say_it(dialect: str) -> None:
    usage = TOLD[dialect]
    assert usage is not None
    assert SONNET.micro_usd(usage) == 54_399


@pytest.mark.parametrize(
    "there_and_back",
    [
        lambda usage: usage_from_chat(usage_to_chat(usage)),
        lambda usage: usage_from_responses(usage_to_responses(usage)),
        lambda usage: usage_from_messages(usage_to_messages(usage)),
    ],
    ids=["chat", "responses", "messages"],
)
def test_a_converted_answer_costs_what_it_cost(there_and_back: Any) -> None:
    usage = Usage(12_307 + 800, 550, cache_read=800, cache_write=12_304)
    assert SONNET.micro_usd(there_and_back(usage)) == SONNET.micro_usd(usage)


def test_an_hours_cache_is_charged_apart() -> None:
    usage = usage_from_messages(
        {
            "input_tokens": 10,
            "cache_creation": {
                "ephemeral_5m_input_tokens": 100,
                "ephemeral_1h_input_tokens": 1000,
            },
            "cache_creation_input_tokens": 1100,
            "cache_read_input_tokens": 10_000,
            "output_tokens": 1,
        }
    )
    assert usage is not None
    assert SONNET.micro_usd(usage) == 10 * 3 + 375 + 6000 + 3000 + 15


def test_half_a_micro_dollar_is_rounded_up_once() -> None:
    half = Price(Decimal("0.25"), Decimal("0.25"))
    assert half.micro_usd(Usage(1, 1)) == 1  # 0.25 + 0.25, each of which alone would be nothing
    assert half.micro_usd(Usage(1, 0)) == 0
    assert half.micro_usd(Usage(6, 0)) == 2  # 1.5: not to the even number


def test_what_is_not_priced_apart_costs_as_what_it_is_a_kind_of() -> None:
    plain = Price(Decimal(2), Decimal(8))
    usage = Usage(100, 10, cache_read=40, cache_write=30, cache_write_1h=20)
    assert plain.micro_usd(usage) == 280
    written = Price(Decimal(2), Decimal(8), cache_write=Decimal(4))
    assert written.micro_usd(usage) == 70 * 2 + 30 * 4 + 80


def test_a_long_prompt_is_charged_whole_at_its_own_price() -> None:
    long = Price(Decimal(4), Decimal(15))
    price = Price(Decimal(2), Decimal(10), long_from=200, long=long)
    assert price.micro_usd(Usage(200, 10)) == 500
    assert price.micro_usd(Usage(201, 10)) == 804 + 150


def test_parts_that_are_larger_than_their_whole_cost_no_more_than_it() -> None:
    assert SONNET.micro_usd(Usage(10, 0, cache_read=50, cache_write=70)) == 3
    assert SONNET.micro_usd(Usage(-5, -7, cache_read=-1)) == 0


def test_an_upstream_that_tells_nonsense_costs_what_can_still_be_written_down() -> None:
    dear = Price(Decimal(1_000_000), Decimal(1_000_000))
    assert dear.micro_usd(Usage(2**53 - 1, 2**53 - 1)) == MAX_MICRO_USD


tokens = st.integers(0, 10_000_000)


@st.composite
def usages(draw: st.DrawFn) -> Usage:
    fresh, read, write, hour = (draw(tokens) for _ in range(4))
    return Usage(fresh + read + write + hour, draw(tokens), read, write + hour, hour)


amounts = st.decimals(0, 1000, places=4)
any_price = st.builds(
    Price, amounts, amounts, st.none() | amounts, st.none() | amounts, st.none() | amounts
)


@given(any_price, usages(), usages())
def test_two_answers_cost_together_what_they_cost_alone(
    price: Price, one: Usage, other: Usage
) -> None:
    together = Usage(*(getattr(one, n) + getattr(other, n) for n in Usage.__struct_fields__))
    assert abs(price.micro_usd(together) - price.micro_usd(one) - price.micro_usd(other)) <= 1


@given(any_price, st.builds(Usage, *[st.integers(-10, 2**53)] * 6))
def test_no_usage_however_odd_costs_less_than_nothing(price: Price, usage: Usage) -> None:
    assert price.micro_usd(usage) >= 0


@given(usages())
def test_each_token_is_counted_once(usage: Usage) -> None:
    one = Decimal(1)
    assert Price(one, one).micro_usd(usage) == usage.input + usage.output
    kinds = ("input", "output", "cache_read", "cache_write", "cache_write_1h")
    parts = [msgspec.convert({kind: one * (kind == at) for kind in kinds}, Price) for at in kinds]
    assert sum(price.micro_usd(usage) for price in parts) == usage.input + usage.output


@given(any_price, usages())
def test_the_most_that_it_can_cost_is_no_less_than_what_it_costs(
    price: Price, usage: Usage
) -> None:
    assert price.most_micro_usd(usage.input, usage.output) >= price.micro_usd(usage)


def test_shipped_prices_say_where_and_when_they_were_read() -> None:
    text = resources.files("reflexarc.accounts").joinpath("prices.toml").read_text("utf-8")
    entries = tomllib.loads(text)["price"]
    assert len(entries) > 80
    assert {entry["provider"] for entry in entries} == {
        "openai", "anthropic", "gemini", "groq", "cerebras", "sambanova",
    }  # fmt: skip
    assert all(entry["source"].startswith("https://") for entry in entries)


def test_anthropics_cache_is_priced_as_it_says() -> None:
    for model in prices().models("anthropic"):
        found = price("anthropic", model)
        if model == "claude-3-haiku":  # rounded by the provider itself
            continue
        assert found.cache_write == found.input * Decimal("1.25")
        assert found.cache_write_1h == found.input * 2
        assert found.of_read < found.input


def test_a_dated_name_is_its_base_model_where_it_is_not_listed_itself() -> None:
    assert price("openai", "gpt-5.1-2026-03-01") == price("openai", "gpt-5.1")
    assert price("anthropic", "claude-sonnet-4-20250514") == price("anthropic", "claude-sonnet-4")
    assert price("anthropic", "claude-3-5-haiku-latest") == price("anthropic", "claude-3-5-haiku")
    assert price("gemini", "models/gemini-2.0-flash-001") == price("gemini", "gemini-2.0-flash")
    assert price("openai", "gpt-4o-2024-05-13") != price("openai", "gpt-4o")


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("openai", "gpt-5.1-thinking"),
        ("openai", "gpt-5.1-mini"),
        ("openai", "gpt-"),
        ("openai", "claude-opus-5"),
        ("nobody", "gpt-5.1"),
        ("openai", ""),
        ("openai", "-2026-01-01"),
    ],
)
def test_no_price_is_guessed_from_anothers(provider: str, model: str) -> None:
    assert prices().of(provider, model) is None


def test_names_are_compared_without_case() -> None:
    assert price("sambanova", "minimax-m3") == price("SambaNova", "MiniMax-M3")


def test_service_tiers_have_their_own_price() -> None:
    usual = price("openai", "gpt-5.1")
    for same in ("auto", "default", ""):
        assert price("openai", "gpt-5.1", same) == usual
    assert price("openai", "gpt-5.1", "flex") == usual.times(Decimal("0.5"))
    assert price("openai", "gpt-5.1", "priority").input == Decimal("2.5")
    assert prices().of("openai", "gpt-5.1", "unheard-of") is None


def test_a_price_is_that_of_the_day() -> None:
    before = price("openai", "gpt-5.6-luna", "", date(2026, 7, 29))
    after = price("openai", "gpt-5.6-luna", "", date(2026, 7, 30))
    assert (before.input, after.input) == (Decimal(1), Decimal("0.2"))
    assert price("openai", "gpt-5.6-luna", "", date(2020, 1, 1)) == before


def test_an_announced_price_does_not_hold_before_its_day() -> None:
    assert price("gemini", "gemini-3.8-flash").input == Decimal("0.75")
    assert price("gemini", "gemini-3.8-flash", "", date(2027, 1, 1)).input == Decimal("1.5")


OWN = """
[[price]]
provider = "openai"
model = "gpt-5.1"
since = 2026-01-01
input = 1
output = 2
tiers = { flex = { input = 0.1, output = 0.2 } }
source = "our contract"

[[price]]
provider = "vllm"
model = "*"
since = 2026-01-01
input = 0
output = 0
source = "our own machines"
"""


def test_an_own_file_is_read_over_the_shipped_one(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(OWN)
    found = prices(path)
    assert found.of("openai", "gpt-5.1") == Price(Decimal(1), Decimal(2))
    assert found.of("openai", "gpt-5.1", "flex") == Price(Decimal("0.1"), Decimal("0.2"))
    assert found.of("openai", "gpt-5.1", "priority") is None  # priced by the own file alone
    assert found.of("vllm", "anything") == Price(Decimal(0), Decimal(0))
    assert found.of("openai", "gpt-5.2") == price("openai", "gpt-5.2")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (OWN.replace("input = 1\n", 'input = "much"\n'), "price 1 (openai gpt-5.1)"),
        (OWN.replace("input = 1\n", "input = -1\n"), "input must be from 0"),
        (OWN.replace("input = 1\n", "inptu = 1\n"), "inptu"),
        (OWN.replace('"our contract"', '""'), "source must say something"),
        (OWN.replace("since = 2026-01-01\n", "", 1), "since"),
        (OWN + OWN, "has two prices since 2026-01-01"),
        (OWN.replace("{ input = 0.1, output = 0.2 }", "-1"), "factor"),
        (OWN.replace("{ input = 0.1, output = 0.2 }", "nan"), "factor"),
        (OWN.replace("input = 1\n", "input = nan\n"), "input must be from 0"),
        (OWN.replace("input = 1\n", "input = 1e9\n"), "input must be from 0"),
        ("[prices]\n", "[[price]]"),
        ("price = 3\n", "[[price]]"),
        ("price = [3]\n", "price 1"),
        ("no toml", "own.toml"),
    ],
)
def test_what_is_wrong_with_an_own_file_is_said(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "own.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        prices(path)
    assert says in str(caught.value)
    assert "own.toml" in str(caught.value)


def test_an_own_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        prices(tmp_path / "none.toml")
