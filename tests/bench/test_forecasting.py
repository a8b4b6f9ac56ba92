"""What answered steps save, on a session and a profile whose bill can be done by hand."""

from decimal import Decimal

import msgspec
import pytest

from reflexarc.bench.forecast import forecast
from reflexarc.sim import Profile, load_profiles
from reflexarc.steps import Message, Session

PROFILE = Profile(
    description="a service of round numbers",
    network_ms=10.0,
    queue_ms=90.0,
    prefill_tokens_per_s=1000,
    output_tokens_per_s=100,
    cache_block_tokens=10,
    cache_min_tokens=100,
    cache_capacity_tokens=10**6,
    usd_per_million_input=Decimal(1000),
    usd_per_million_cached_input=Decimal(100),
    usd_per_million_output=Decimal(2000),
)

SESSION = Session(
    "s",
    "t",
    (),
    (
        Message("user", "u" * 4000),  # 1,000 tokens
        Message("assistant", "a" * 40),  # 10 tokens
        Message("user", "v" * 400),
        Message("assistant", "b" * 40),
        Message("user", "w" * 400),
        Message("assistant", "c" * 40),
    ),
)


def test_the_bill_without_system_1_is_done_by_hand() -> None:
    found = forecast([SESSION], set(), PROFILE, decision_ms=0.0)
    # prompts of 1000, 1110, 1220 tokens, of which 0, 1000, 1110 were sent before
    waits_ms = 3 * 100 + (1000 + 110 + 110) + 3 * 100
    usd = Decimal(1220 * 1000 + 2110 * 100 + 30 * 2000) / 1_000_000
    assert found.before.model_s == pytest.approx(waits_ms / 1e3)
    assert found.before.usd == usd
    assert found.after == found.before
    assert (found.sessions, found.steps, found.answered) == (1, 3, 0)


def test_tokens_of_an_answered_step_are_read_by_the_next_one() -> None:
    found = forecast([SESSION], {("s", 3)}, PROFILE, decision_ms=2.0)
    assert found.answered == 1
    # sent are prompts of 1000 and 1220 tokens, of the second 1000 cached; three decisions
    waits_ms = 2 * 100 + (1000 + 220) + 2 * 100 + 3 * 2
    usd = Decimal(1220 * 1000 + 1000 * 100 + 20 * 2000) / 1_000_000
    assert found.after.model_s == pytest.approx(waits_ms / 1e3)
    assert found.after.usd == usd
    assert found.after.usd < found.before.usd


def test_a_step_that_is_not_there_saves_nothing() -> None:
    found = forecast([SESSION], {("other", 3), ("s", 2)}, PROFILE, decision_ms=0.0)
    assert found.answered == 0
    assert found.after == found.before


def test_short_prompts_are_never_cached() -> None:
    short = Session("s", "t", (), tuple(Message(m.role, m.content[:40]) for m in SESSION.messages))
    found = forecast([short], set(), PROFILE, decision_ms=0.0)
    assert found.before.usd == Decimal((10 + 30 + 50) * 1000 + 30 * 2000) / 1_000_000


def test_every_assumption_is_named() -> None:
    text = " ".join(forecast([SESSION], set(), load_profiles()["gpu"], decision_ms=1.0).assumptions)
    for word in ("characters", "ms before it reads", "dollars in", "cached", "recorded", "tools"):
        assert word in text


def test_energy_is_done_by_hand_and_is_none_without_a_power() -> None:
    powered = msgspec.structs.replace(PROFILE, power_w=200.0)
    found = forecast([SESSION], {("s", 3)}, powered, decision_ms=2.0)
    # read are 1000, 110 and 110 tokens; with System 1 1000 and 220; 10 are written at each step
    assert found.before.joules == pytest.approx(200 * ((1000 + 110 + 110) / 1000 + 3 * 0.1))
    assert found.after.joules == pytest.approx(200 * ((1000 + 220) / 1000 + 2 * 0.1))
    assert found.tasks == 1
    assert "200 W while a request is read and written" in found.assumptions[-1]
    silent = forecast([SESSION], set(), PROFILE, decision_ms=0.0)
    assert (silent.before.joules, silent.after.joules) == (None, None)
    assert "energy" not in " ".join(silent.assumptions)
