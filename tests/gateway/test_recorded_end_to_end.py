"""What passes a gateway is in the store, and a purge beside it takes it out again."""

import asyncio
import os
import sqlite3
import sys
from pathlib import Path
from typing import Any

from reflexarc.reflex.scan import scan_values

from .upstream import Received, Upstream, completion_bytes

TASK = 7000
NAME = "Session of Żaneta"


def rows(state: Path, table: str) -> int:
    connection = sqlite3.connect(state / "reflexarc.db")
    try:
        return int(connection.execute(f"select count(*) from {table}").fetchone()[0])
    finally:
        connection.close()


async def until(state: Path, **wanted: int) -> None:
    """Rows come a moment after the answer, from another process."""
    found: dict[str, int] = {}
    for _ in range(250):
        found = {table: rows(state, table) for table in wanted}
        if found == wanted:
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"the store never came to hold {wanted}: {found}")


async def command(*arguments: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "reflexarc", *arguments,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    said, _ = await process.communicate()
    return process.returncode or 0, said.decode()


async def test_steps_are_recorded_and_a_purge_beside_the_gateway_leaves_no_byte(
    start: Any, upstream: Upstream, desk: Any, reflex_path: Path, state_dir: Path
) -> None:
    read, write = desk.next_call(TASK, 4), desk.next_call(TASK, 6)
    hold, held = asyncio.Event(), asyncio.Event()

    async def answer(request: Received, writer: asyncio.StreamWriter) -> None:
        if b"Once more" in request.body:
            held.set()
            await hold.wait()
        if read.arguments["order_id"].encode() not in request.body:
            writer.write(completion_bytes("hello"))
        else:
            call = write if b"delivered" in request.body else read
            writer.write(completion_bytes(None, (call.name, call.arguments)))
        await writer.drain()

    upstream.answer = answer
    gateway = await start(reflex=str(reflex_path), mode="live", record="full", audit=1.0)
    recorder = gateway.gateway.recorder.pid
    assert recorder not in (None, os.getpid())
    headers = {"x-reflexarc-session": NAME}
    acted = await gateway.chat(desk.request(TASK, 4), headers)
    left = await gateway.chat(desk.request(TASK, 6), headers)
    for other in (1, 2, 3):  # so that "delivered", which the artifact knows, is nobody's own
        await gateway.chat(desk.request(TASK + other, 6))
    assert acted.decision.startswith("live; act; get_order")
    assert left.decision.startswith("live; escalate")
    await until(state_dir, sessions=4, steps=5, decisions=4, audits=1)

    values = [NAME, read.arguments["order_id"]]
    files = [path for path in state_dir.rglob("*") if path.is_file()]
    assert {one for path in files for one in values if scan_values(path, [one])} == set(values)

    late = desk.request(TASK, 6)
    late["messages"].append({"role": "user", "content": f"Once more: {values[1]}"})
    waiting = asyncio.ensure_future(gateway.chat(late, headers))
    await held.wait()
    status, text = await command("store", "purge", "--session", NAME, "--yes")
    assert (status, "gone: 1 session, 2 steps" in text) == (0, True), text
    hold.set()
    assert (await waiting).status == 200
    await gateway.chat(desk.request(TASK + 4, 6))
    await until(state_dir, sessions=4, steps=4, audits=0)
    assert gateway.gateway.recorder.pid == recorder
    for path in [*state_dir.rglob("*"), reflex_path]:
        assert path.is_dir() or scan_values(path, values) == []
    status, text = await command("audit", "verify")
    assert status == 0, text
