"""Audits of a pooled route: what they cost stands in the book, however they end."""

from pathlib import Path
from typing import Any

import pytest

from reflexarc.gateway.config_pool import ModelConfig, Served
from reflexarc.upstream import Timeouts

from .conftest import MODEL, Desk, Starter
from .pools import CHEAP, Two, pooled
from .test_how_attempts_end import charges


@pytest.mark.parametrize("words", ["", "stall=0"])
async def test_an_audit_that_takes_too_long_is_charged_as_one_that_does_not(
    start: Starter, two: Two, desk: Desk, reflex_path: Path, state_dir: Path, words: str
) -> None:
    model: Any = {MODEL: ModelConfig(standard=(Served("a", "faulty-1", price=CHEAP),))}
    running = await pooled(
        start, two, pool={"model": model, "alias": {}}, timeouts=Timeouts(total_s=1.0),
        route={"mode": "live", "reflex": str(reflex_path), "audit": 1.0, "deadline_ms": 2000.0},
    )  # fmt: skip
    two[0].usual = words
    answer = await running.chat(desk.request(6000, 4))
    assert answer.decision.startswith("live; act")
    [row] = await charges(state_dir, 1)
    assert row[:2] == ("a", "audit")
    assert row[4] > 0
