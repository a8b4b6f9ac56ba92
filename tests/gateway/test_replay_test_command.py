"""`reflexarc replay-test` against a real server: what passes may be acted for, seconds later."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from reflexarc.lifecycle.replaying import read_passed

from .upstream import MODEL, Received, http_answer


def _thinking(strict: bool) -> Any:
    async def answer(received: Received, writer: asyncio.StreamWriter) -> None:
        request = json.loads(received.body)
        turns = [one for one in request["messages"] if one["role"] == "assistant"]
        close = ("connection", "close")
        if strict and not all("reasoning_content" in turn for turn in turns):
            body = b'{"error": {"message": "thinking is missing"}}'
            writer.write(http_answer(body, close, status="400 Bad Request"))
        elif request.get("stream"):
            choice = {"index": 0, "delta": {"content": "ok"}, "finish_reason": "stop"}
            events = f"data: {json.dumps({'choices': [choice]})}\n\ndata: [DONE]\n\n"
            kind = ("content-type", "text/event-stream")
            writer.write(http_answer(events.encode(), kind, close))
        else:
            function = {"name": "get_order", "arguments": '{"order_id": "W1000001"}'}
            call = {"id": "call_9", "type": "function", "function": function}
            turn = {"role": "assistant", "content": None, "reasoning_content": "hm"}
            choice = {"index": 0, "message": {**turn, "tool_calls": [call]}}
            body = json.dumps({"choices": [{**choice, "finish_reason": "tool_calls"}]}).encode()
            writer.write(http_answer(body, close))
        await writer.drain()

    return answer


async def _run(upstream: str, *more: str) -> tuple[int | None, str, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "reflexarc", "replay-test", "--upstream", upstream, "--model", MODEL,
        *more, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env=dict(os.environ),
    )  # fmt: skip
    out, err = await asyncio.wait_for(process.communicate(), 60)
    return process.returncode, out.decode(), err.decode()


async def test_a_pass_lets_a_running_gateway_act_and_a_failure_takes_it_back(
    start: Any, upstream: Any, desk: Any, reflex_path: Path, state_dir: Path
) -> None:
    gateway = await start(reflex=str(reflex_path), mode="live")

    async def decision(task: int) -> str:
        request = desk.request(task, 4)
        request["messages"][2]["reasoning_content"] = "hm"
        return (await gateway.chat(request)).decision

    upstream.answer = _thinking(strict=False)
    assert await decision(1) == "live; escalate; thinking"
    status, out, err = await _run(upstream.url, "--json")
    assert (status, err) == (0, "")
    assert json.loads(out)["passed"]
    assert len(json.loads(out)["checks"]) == 8
    assert [one.model for one in read_passed(state_dir)] == [MODEL]
    await _until(decision, "live; act")
    upstream.answer = _thinking(strict=True)
    status, out, err = await _run(upstream.url)
    assert status == 1
    assert "REFUSED" in out
    assert "thinking is missing" in out
    assert "left alone" in err
    await _until(decision, "live; escalate; thinking")


async def _until(decision: Any, wanted: str) -> None:
    said = ""
    for task in range(100, 160):
        said = await decision(task)
        if said.startswith(wanted):
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"it stayed {said!r}")


async def test_what_cannot_be_tested_says_why(upstream: Any) -> None:
    status, _, err = await _run(upstream.url)  # it answers in words
    assert status == 1
    assert "called no tool" in err
    for more, said in (
        (("--fields", "{"), "--fields is not JSON"),
        (("--fields", "[]"), "--fields must be a JSON object"),
        (("--api-key-env", "NO_SUCH_KEY"), "NO_SUCH_KEY is not set"),
    ):
        status, _, err = await _run(upstream.url, *more)
        assert (status, said in err) == (2, True), err
    status, _, err = await _run("http://127.0.0.1:9/v1")
    assert (status, "cannot be reached" in err) == (1, True), err
