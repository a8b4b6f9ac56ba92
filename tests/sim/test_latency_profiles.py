"""The latency formula: the published points, and what each of its terms does."""

from decimal import Decimal
from pathlib import Path

import msgspec
import pytest

from reflexarc.sim import load_profiles, profile_named
from reflexarc.sim.profiles import (
    PUBLISHED_LATENCY_MS,
    PUBLISHED_OUTPUT_TOKENS,
    PUBLISHED_PROMPT_TOKENS,
)
from reflexarc.steps.errors import ConfigError

PUBLISHED_USD_PER_10K_STEPS = {"gpu": 32.00, "lpu": 14.50}


@pytest.mark.parametrize("name", ["gpu", "lpu"])
def test_a_profile_reproduces_the_published_latency_of_a_cold_25k_context(name: str) -> None:
    latency_ms = load_profiles()[name].latency_ms(
        PUBLISHED_PROMPT_TOKENS, 0, PUBLISHED_OUTPUT_TOKENS
    )
    assert latency_ms == pytest.approx(PUBLISHED_LATENCY_MS[name], rel=0.02)


@pytest.mark.parametrize("name", ["gpu", "lpu"])
def test_a_profile_reproduces_the_published_cost_of_10k_such_steps(name: str) -> None:
    usd = load_profiles()[name].cost_usd(PUBLISHED_PROMPT_TOKENS, 0, PUBLISHED_OUTPUT_TOKENS)
    assert float(usd * 10_000) == pytest.approx(PUBLISHED_USD_PER_10K_STEPS[name], rel=0.02)


def test_each_term_adds_what_the_file_says_it_adds() -> None:
    profile = load_profiles()["gpu"]
    rest_ms = profile.network_ms + profile.queue_ms
    assert profile.latency_ms(0, 0, 0) == rest_ms
    assert profile.latency_ms(3000, 1000, 0) == pytest.approx(
        rest_ms + 2000 / profile.prefill_tokens_per_s * 1000
    )
    assert profile.latency_ms(0, 0, 10) == pytest.approx(
        rest_ms + 10 / profile.output_tokens_per_s * 1000
    )


def test_cached_input_is_counted_once_and_cheaper() -> None:
    profile = msgspec.structs.replace(
        load_profiles()["gpu"],
        usd_per_million_input=Decimal(2),
        usd_per_million_cached_input=Decimal(1),
        usd_per_million_output=Decimal(8),
    )
    assert profile.cost_usd(1_000_000, 250_000, 125_000) == Decimal("2.75")


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("prefill_tokens_per_s = 0", "prefill_tokens_per_s must be positive"),
        ("queue_ms = -1", "queue_ms must not be negative"),
        ("queu_ms = 1", "queu_ms"),
        ("usd_per_million_input = 'cheap'", "usd_per_million_input|decimal"),
        ("power_w = 0", "power_w must be positive"),
        ("power_w = -700", "power_w must not be negative"),
        ("power_w = inf", "power_w must not be negative"),
        ("= 5", "not a file of profiles"),
    ],
)
def test_a_wrong_profile_file_is_refused_with_its_reason(
    tmp_path: Path, line: str, complaint: str
) -> None:
    good = msgspec.to_builtins(load_profiles()["gpu"])
    key = line.split(" ")[0]
    lines = [f"{k} = {v!r}" for k, v in good.items() if k != key]
    path = tmp_path / "profiles.toml"
    path.write_text("[mine]\n" + "\n".join([*lines, line]) + "\n")
    with pytest.raises(ConfigError, match=complaint):
        load_profiles(path)


def test_a_profile_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_profiles(tmp_path / "none.toml")


@pytest.mark.parametrize(("name", "tokens_per_s"), [("jalapeno", 700), ("jalapeno-turbo", 1500)])
def test_jalapeno_writes_at_its_speed_and_takes_700_watts(name: str, tokens_per_s: int) -> None:
    profile = load_profiles()[name]
    writing_ms = profile.latency_ms(0, 0, tokens_per_s) - profile.latency_ms(0, 0, 0)
    assert writing_ms == pytest.approx(1000)
    assert profile.energy_j(0, 0, tokens_per_s) == pytest.approx(700)


def test_energy_is_power_times_reading_and_writing_alone() -> None:
    profile = msgspec.structs.replace(
        load_profiles()["jalapeno"],
        prefill_tokens_per_s=1000, output_tokens_per_s=100, power_w=50.0, queue_ms=9000.0,
    )  # fmt: skip
    assert profile.energy_j(3000, 1000, 50) == pytest.approx(50 * (2 + 0.5))
    assert profile.energy_j(1000, 1000, 0) == 0
    assert profile.energy_j(1000, 3000, 0) == 0


def test_profiles_without_power_say_nothing_of_energy() -> None:
    for name in ("gpu", "lpu"):
        assert load_profiles()[name].energy_j(25_000, 0, 15) is None


def test_an_unknown_profile_is_told_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="no profile 'tpu'; there are gpu, lpu, jalapeno"):
        profile_named("tpu")
