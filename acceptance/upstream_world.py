"""What the parts of `make accept-upstream` have in common: fault upstreams on real ports, a gateway
as a real process before them, virtual keys, and what its book and its store say afterwards."""

import asyncio
import contextlib
import json
import sqlite3
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast
from urllib.request import urlopen

import aiohttp
import msgspec
from tests.gateway.asking import Seen, client_of

from acceptance.processes import Process, process
from reflexarc.accounts.budgets import budgets_from
from reflexarc.accounts.database import FILE, Database
from reflexarc.accounts.keyring import Keyring
from reflexarc.accounts.keys import VirtualKey
from reflexarc.gateway.state import open_state
from reflexarc.sim.faulty import FaultyUpstream

DIALECTS = ("chat", "responses", "messages", "gemini")
CHEAP = {"input": 1.0, "output": 2.0}
DEAR = {"input": 10.0, "output": 20.0}


def toml(sections: Mapping[str, Any], **top: Any) -> str:
    """A configuration: top members, then sections by their names; lists of sections as such."""
    out = [f"{name} = {_value(value)}" for name, value in top.items()]
    for name, section in sections.items():
        many = isinstance(section, list)
        for one in cast("list[dict[str, Any]]", section if many else [section]):
            out.append(f"\n[[{name}]]" if many else f"\n[{name}]")
            out += [f"{key} = {_value(value)}" for key, value in one.items()]
    return "\n".join(out) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value).items()
        return "{ " + ", ".join(f"{name} = {_value(one)}" for name, one in members) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(one) for one in cast("Sequence[Any]", value)) + "]"
    return json.dumps(value)


def provider(url: str, spoken: str = "chat", **more: Any) -> dict[str, Any]:
    return {"url": url, "dialect": spoken, "private": True, "key_env": "UPSTREAM_KEY", **more}


def base_of(faulty: FaultyUpstream, spoken: str) -> str:
    return faulty.gemini_url if spoken == "gemini" else faulty.url


@asynccontextmanager
async def fault_upstreams(count: int) -> AsyncGenerator[list[FaultyUpstream]]:
    running = [FaultyUpstream(key="theirs") for _ in range(count)]
    for one in running:
        await one.start()
    try:
        yield running
    finally:
        for one in running:
            await one.stop()


@asynccontextmanager
async def gateway(
    folder: Path, sections: Mapping[str, Any], name: str = "gateway", **top: Any
) -> AsyncGenerator[Process]:
    """`reflexarc serve` with this configuration. Its state is in `folder / "state"`."""
    config = folder / f"{name}.toml"
    config.write_text(toml(sections, state=str(folder / "state"), **top))
    starting = process(
        "serve", "--config", str(config), "--port", "0", environment={"UPSTREAM_KEY": "theirs"}
    )
    running = await asyncio.to_thread(starting.__enter__)
    try:
        yield running
    finally:
        await asyncio.to_thread(starting.__exit__, None, None, None)


def make_key(folder: Path, name: str, *budgets: str, **more: Any) -> tuple[VirtualKey, str]:
    """A key in the book of the gateways that have their state in `folder / "state"`, and its
    secret."""
    directory = folder / "state"
    directory.mkdir(exist_ok=True)
    database = Database(directory / FILE)
    try:
        ring = Keyring(database, open_state(str(directory), {}).secret, time.time)
        return ring.create(VirtualKey("", name, "", budgets=budgets_from(budgets), **more))
    finally:
        database.close()


class Rows:
    """What stands in the book and in the store of a state directory."""

    def __init__(self, folder: Path) -> None:
        self._state = folder / "state"

    def book(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._rows(FILE, query, values)

    def store(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._rows("reflexarc.db", query, values)

    def reserved(self) -> int:
        """Micro-dollars that are kept back, of all keys."""
        return int(self.book("select coalesce(sum(micro_usd), 0) from reservations")[0][0])

    def _rows(self, file: str, query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        with contextlib.closing(sqlite3.connect(self._state / file, timeout=10)) as connection:
            return connection.execute(query, values).fetchall()


async def eventually(wanted: Callable[[], bool], within_s: float = 4.0) -> bool:
    """Whether it came to be so in time: books are written a moment after the answer."""
    until_s = time.monotonic() + within_s
    while not wanted():
        if time.monotonic() > until_s:
            return False
        await asyncio.sleep(0.02)
    return True


class Answered(msgspec.Struct):
    """What a client saw. `fault`: why it could not read the answer; `first_s` and `total_s` from
    when it asked."""

    status: int = 0
    headers: dict[str, str] = {}
    seen: Seen | None = None
    body: bytes = b""
    fault: str = ""
    first_s: float = 0.0
    total_s: float = 0.0


KEY_HEADERS = {"messages": "x-api-key", "gemini": "x-goog-api-key"}


def request_of(
    client: str, model: str, words: str = "hello", *, stream: bool, **more: Any
) -> tuple[str, dict[str, Any]]:
    """Its path and its body."""
    spoken = client_of(client)
    body = spoken.ask(words, stream=stream, more=[], think=False)
    if client != "gemini":
        body["model"] = model
    return spoken.path(stream=stream).replace("faulty-1", model), {**body, **more}


def headers_of(client: str, key: str, **more: str) -> dict[str, str]:
    given = {"content-type": "application/json", "anthropic-version": "2023-06-01"}
    if key:
        name = KEY_HEADERS.get(client, "authorization")
        given[name] = key if client in KEY_HEADERS else f"Bearer {key}"
    return {**given, **{name.replace("_", "-"): value for name, value in more.items()}}


async def ask(
    session: aiohttp.ClientSession,
    base: str,
    client: str,
    path: str,
    body: Mapping[str, Any],
    headers: Mapping[str, str],
    *,
    stream: bool,
) -> Answered:
    """Reads the whole answer as a client of this dialect does."""
    began_s = time.monotonic()
    answered = Answered()
    async with session.post(base + path, json=body, headers=headers) as answer:
        answered.status = answer.status
        answered.headers = {name.lower(): value for name, value in answer.headers.items()}
        while chunk := await answer.content.readany():
            if not answered.body:
                answered.first_s = time.monotonic() - began_s
            answered.body += chunk
    answered.total_s = time.monotonic() - began_s
    answered.seen, answered.fault = _read(client, answered, stream=stream)
    return answered


def _read(client: str, answered: Answered, *, stream: bool) -> tuple[Seen | None, str]:
    spoken = client_of(client)
    try:
        if answered.status < 400:
            if stream:
                return spoken.gathered(answered.body), ""
            return spoken.whole(json.loads(answered.body)), ""
        told = json.loads(answered.body)
        if not spoken.is_error(told, answered.status):
            return None, f"no error of the dialect {client}: {answered.body[:200]!r}"
    except (ValueError, KeyError, TypeError, AssertionError) as error:
        return None, f"{type(error).__name__}: {error}; {answered.body[-200:]!r}"
    return None, ""


def admin_state(base: str) -> dict[str, Any]:
    with urlopen(f"{base}/admin/state", timeout=10) as answer:
        return cast("dict[str, Any]", json.load(answer))
