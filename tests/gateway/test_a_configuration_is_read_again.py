"""SIGHUP: a changed file is taken over, a wrong one changes nothing, no request is dropped."""

import asyncio
import os
import re
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from reflexarc.accounts.book import Book
from reflexarc.accounts.database import FILE
from reflexarc.accounts.keyring import Keyring
from reflexarc.accounts.keys import VirtualKey
from reflexarc.store.place import make_private, secret
from reflexarc.upstream.deployments import Deployment
from reflexarc.upstream.fleet import Fleet

from .pools import Two

ENVIRONMENT = {**os.environ, "KEY_a": "one", "KEY_b": "two"}


def text(
    two: Two, model: str = "agent", *, first: str = "a", more: str = "", last: str = ""
) -> str:
    return f"""
port = 0
{more}
[[route]]
upstream = "models"
mode = "off"
[provider.a]
url = "{two[0].url}"
key_env = "KEY_a"
private = true
[provider.b]
url = "{two[1].url}"
key_env = "KEY_b"
private = true
[model.{model}]
standard = [{{ provider = "{first}", model = "faulty-1" }}]
{last}
"""


class Served:
    """A gateway in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process, base: str) -> None:
        self.process = process
        self.base = base

    async def said(self, wanted: str) -> str:
        """The log up to a line that holds this."""
        assert self.process.stderr is not None
        lines: list[str] = []
        while True:
            line = (await asyncio.wait_for(self.process.stderr.readline(), 60)).decode()
            assert line, lines
            lines.append(line)
            if wanted in line:
                return "".join(lines)

    async def hang_up(self, wanted: str) -> str:
        self.process.send_signal(signal.SIGHUP)
        return await self.said(wanted)

    async def ask(
        self, http: aiohttp.ClientSession, model: str, words: str = "hi", *, key: str = ""
    ) -> int:
        body = {"model": model, "messages": [{"role": "user", "content": words}]}
        url = f"{self.base}/v1/chat/completions"
        headers = {"authorization": f"Bearer {key}"} if key else {}
        async with http.post(url, json=body, headers=headers) as answer:
            await answer.read()
            return answer.status


@pytest.fixture
async def served(tmp_path: Path, two: Two) -> AsyncIterator[Served]:
    async with serving(tmp_path, text(two)) as running:
        yield running


@asynccontextmanager
async def serving(folder: Path, written: str) -> AsyncIterator[Served]:
    path = folder / "reflexarc.toml"
    path.write_text(written)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-u", "-m", "reflexarc", "serve", "--config", str(path),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env=ENVIRONMENT,
    )  # fmt: skip
    assert process.stdout is not None
    said = ""
    while "Ctrl-C" not in said:
        line = (await asyncio.wait_for(process.stdout.readline(), 60)).decode()
        assert line, said
        said += line
    found = re.search(r"http://[0-9.]+:\d+", said)
    assert found is not None
    yield Served(process, found.group())
    process.send_signal(signal.SIGINT)
    await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0


async def test_new_requests_see_the_new_file_and_those_in_flight_end_as_they_began(
    served: Served, two: Two, tmp_path: Path
) -> None:
    async with aiohttp.ClientSession() as http:
        assert await served.ask(http, "agent") == 200
        slow = asyncio.create_task(served.ask(http, "agent", "fault: slow=3000"))
        await _until(lambda: len(two[0].received) == 2)
        (tmp_path / "reflexarc.toml").write_text(text(two, "other", first="b"))
        await served.hang_up("is in use")
        assert await served.ask(http, "other") == 200
        assert await served.ask(http, "agent") == 404
        assert len(two[1].received) == 1
        assert await slow == 200


async def test_requests_keep_coming_while_it_is_read_again_and_none_is_dropped(
    served: Served, two: Two, tmp_path: Path
) -> None:
    statuses: list[int] = []
    stop = asyncio.Event()
    async with aiohttp.ClientSession() as http:

        async def client() -> None:
            while not stop.is_set():
                statuses.append(await served.ask(http, "agent"))

        clients = [asyncio.create_task(client()) for _ in range(3)]
        for port in ("max_consecutive_acts = 7", "max_consecutive_acts = 9"):
            (tmp_path / "reflexarc.toml").write_text(text(two, more=port))
            await served.hang_up("is in use")
        stop.set()
        await asyncio.gather(*clients)
    assert len(statuses) > 10
    assert set(statuses) == {200}


async def test_a_file_that_cannot_be_meant_changes_nothing_and_says_where(
    served: Served, two: Two, tmp_path: Path
) -> None:
    async with aiohttp.ClientSession() as http:
        (tmp_path / "reflexarc.toml").write_text(text(two).replace("key_env", "kee_env"))
        said = await served.hang_up("stays as it was")
        assert "did you mean key_env?" in said
        assert re.search(r"reflexarc\.toml:\d+", said)
        assert await served.ask(http, "agent") == 200
        (tmp_path / "reflexarc.toml").write_text(text(two).replace("KEY_a", "KEY_none"))
        assert "KEY_none is not set" in await served.hang_up("stays as it was")
        assert await served.ask(http, "agent") == 200


async def test_a_key_that_has_used_its_rate_has_still_used_it(tmp_path: Path, two: Two) -> None:
    directory = tmp_path / "state"
    make_private(directory)
    opened = Book.open(directory / FILE, time.time)
    ring = Keyring(opened.database, secret(directory), time.time)
    _, key = ring.create(VirtualKey("", "k", "", requests_per_minute=2))
    opened.close()
    keys, state = '[accounts]\nkeys = "required"', f'state = "{directory}"'
    begun = text(two, more=state, last=keys)
    async with serving(tmp_path, begun) as served, aiohttp.ClientSession() as http:
        assert [await served.ask(http, "agent", key=key) for _ in range(3)] == [200, 200, 429]
        more = f"{state}\nmax_consecutive_acts = 7"
        (tmp_path / "reflexarc.toml").write_text(text(two, more=more, last=keys))
        await served.hang_up("is in use")
        assert await served.ask(http, "agent", key=key) == 429


def deployment(max_parallel: int) -> Deployment:
    return Deployment(
        provider="p", kind="vllm", base="http://h", dialects=("chat",), model="m",
        max_parallel=max_parallel,
    )  # fmt: skip


def test_slots_change_once_a_new_configuration_is_in_use() -> None:
    """A gateway that fails to start has not touched those of the one at work."""
    before, later = Fleet(), Fleet()
    before.adopt([deployment(8)])
    later.adopt([deployment(1)], before)
    slots = before.of("p/m").slots
    assert slots is later.of("p/m").slots
    assert slots.room == 8
    later.resize()
    assert slots.room == 1


async def test_what_takes_a_restart_is_said(served: Served, two: Two, tmp_path: Path) -> None:
    (tmp_path / "reflexarc.toml").write_text(text(two).replace("port = 0", "port = 8499"))
    assert "port: changed, but that takes a restart" in await served.hang_up("is in use")


async def _until(wanted: Callable[[], bool]) -> None:
    for _ in range(500):
        if wanted():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never came to be")
