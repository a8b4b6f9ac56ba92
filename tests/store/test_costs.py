"""What a step cost: System 2's price for its tokens, nothing where System 1 answered."""

import msgspec
import pytest

from reflexarc.store.records import StepEnded
from reflexarc.store.usage import Usage, cost_usd

_STEP = StepEnded(
    1, "g", "r", "/v1", "live", "hashed", "t", None, None, 0.0, "system2", 200, "", "", True, 0, {},
    price=(2.0, 0.5, 10.0),
)  # fmt: skip


def test_each_kind_of_token_is_counted_once() -> None:
    cost = cost_usd(
        Usage(prompt=1_000_000, cached=400_000, completion=100_000, estimated=False), _STEP
    )
    assert cost == pytest.approx(0.6 * 2.0 + 0.4 * 0.5 + 0.1 * 10.0)


def test_an_act_costs_nothing_and_an_unknown_price_is_not_made_up() -> None:
    usage = Usage(10, 0, 10, estimated=True)
    assert cost_usd(usage, msgspec.structs.replace(_STEP, decided_by="system1")) == 0.0
    assert cost_usd(usage, msgspec.structs.replace(_STEP, price=None)) is None
