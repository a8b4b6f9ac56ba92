"""Keys, charges and books for tests."""

import itertools
from pathlib import Path
from typing import Any

import msgspec

from reflexarc.accounts.book import Book
from reflexarc.accounts.budgets import budgets_from
from reflexarc.accounts.charge import Charge
from reflexarc.accounts.database import FILE
from reflexarc.accounts.keys import VirtualKey
from reflexarc.wire.usage import Usage

SECRET = b"s" * 32
NOON = 1_796_040_000.0  # 2026-11-30T12:00:00Z
DAY = 86_400.0
_numbers = itertools.count(1)


class Clock:
    """Stands still unless it is moved."""

    def __init__(self, now_s: float = NOON) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s


def key(*budgets: str, **more: Any) -> VirtualKey:
    made = VirtualKey("key_1", "one", "t1", budgets=budgets_from(budgets))
    return msgspec.structs.replace(made, **more)


def charge(micro_usd: int | None, **more: Any) -> Charge:
    made = Charge(
        request_id="r", number=next(_numbers), gateway="g", at_unix_s=NOON, key="key_1",
        tenant="t1", session="s1", tier="standard", route="/v1", provider="openai", model="gpt-5.1",
        service_tier="", usage=Usage(100, 10, cache_read=40, cache_write=20), micro_usd=micro_usd,
        status=200, outcome="answered", partial=False, estimated=False,
    )  # fmt: skip
    return msgspec.structs.replace(made, **more)


def book(directory: Path, clock: Clock | None = None) -> Book:
    return Book.open(directory / FILE, clock or Clock())
