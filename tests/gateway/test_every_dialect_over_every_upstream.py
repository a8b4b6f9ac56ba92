"""Every client dialect over every upstream dialect, by raw HTTP, over an upstream that misbehaves."""

import asyncio
import json
import zlib
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from reflexarc.sim.faulty import FaultyUpstream
from reflexarc.upstream import Timeouts
from reflexarc.wire.dialects import NAMES

from .asking import SCHEMA, Client, client_of
from .conftest import Running, Starter

PAIRS = [(client, upstream) for client in NAMES for upstream in NAMES]


@pytest.fixture
async def faulty() -> AsyncIterator[FaultyUpstream]:
    running = FaultyUpstream(key="secret")
    await running.start()
    yield running
    await running.stop()


async def _gateway(start: Starter, faulty: FaultyUpstream, upstream: str, **more: Any) -> Running:
    base = faulty.gemini_url if upstream == "gemini" else faulty.url
    return await start(
        upstream=base,
        dialect=upstream,
        api_key_env="FAULTY_KEY",
        environment={"FAULTY_KEY": "secret"},
        mode="off",
        **more,
    )
