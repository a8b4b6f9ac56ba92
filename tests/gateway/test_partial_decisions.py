"""Only free text is missing: the native endpoint says what is sure, the proxy may force a tool."""

from pathlib import Path
from typing import Any

import pytest

from reflexarc.reflex import learn
from tests.reflex import memos
from tests.reflex.test_in_process import chat_message, chat_tool


@pytest.fixture(scope="module")
def memo_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("memos") / "memos.reflex"
    learn(memos.sessions(0, 120), max_error=0.05).save(path)
    return path


def request(task: int, tool: str, **more: Any) -> dict[str, Any]:
    messages, _ = memos.before(task, tool)
    return {
        "messages": [chat_message(message) for message in messages],
        "tools": [chat_tool(spec) for spec in memos.TOOLS],
        **more,
    }


async def test_the_native_endpoint_says_what_is_sure_and_what_is_open(
    start: Any, memo_path: Path
) -> None:
    gateway = await start(reflex=str(memo_path))
    _, wanted = memos.before(9000, "search_handbook")
    body = (await gateway.post("/api/v1/reflex", request(9000, "search_handbook"))).json
    assert (body["decision"], body["reason"], body["open"]) == (
        "partial",
        "certified",
        ["question"],
    )
    [call] = body["calls"]
    assert (call["name"], call["arguments"]) == (
        "search_handbook",
        {"policy_id": wanted.arguments["policy_id"]},
    )
    assert call["sources"]["policy_id"]["kind"] == "tool_result"
    assert (body["guarantee"]["scope"], body["guarantee"]["max_error"]) == ("partial", 0.05)
    assert all(check["ok"] for check in body["checks"])


async def test_the_native_endpoint_never_gives_a_partial_write(start: Any, memo_path: Path) -> None:
    gateway = await start(reflex=str(memo_path))
    body = (await gateway.post("/api/v1/reflex", request(9000, "create_note"))).json
    assert (body["decision"], body["calls"], body["open"]) == ("escalate", [], [])


async def test_a_tighter_bound_is_asked_of_a_partial_too(start: Any, memo_path: Path) -> None:
    gateway = await start(reflex=str(memo_path))
    tight = request(9000, "search_handbook", max_error=0.0005)
    body = (await gateway.post("/api/v1/reflex", tight)).json
    assert (body["decision"], body["guarantee"]) == ("escalate", None)
