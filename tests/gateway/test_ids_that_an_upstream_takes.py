"""An upstream that wants ids of nine letters and digits gets them, the same each time."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from .conftest import Desk, Starter, desk_session
from .test_system_1_answers_in_every_dialect import path_of, request_of
from .upstream import Upstream

NINE = re.compile(r"[A-Za-z0-9]{9}")


def sent_ids(upstream: Upstream) -> list[str]:
    messages = json.loads(upstream.received[-1].body)["messages"]
    found = [call["id"] for m in messages for call in m.get("tool_calls", ())]
    return found + [m["tool_call_id"] for m in messages if m["role"] == "tool"]


@pytest.mark.parametrize("name", ["responses", "messages", "gemini"])
async def test_converted_ids_fit(name: str, start: Starter, desk: Desk, upstream: Upstream) -> None:
    gateway = await start(dialect="chat", mode="off", call_ids="mistral")
    body = request_of(name, desk.request(messages=6))
    await gateway.post(path_of(name, stream=False), body)
    first = sent_ids(upstream)
    assert len(first) == 4
    assert all(NINE.fullmatch(one) for one in first)
    assert first[:2] == first[2:]
    await gateway.post(path_of(name, stream=False), body)
    assert sent_ids(upstream) == first


async def test_ids_of_system_1_fit_and_no_other_byte_changes(
    start: Starter, desk: Desk, reflex_path: Path, upstream: Upstream
) -> None:
    gateway = await start(
        reflex=str(reflex_path), mode="live", effects={"get_order": "read"}, call_ids="mistral"
    )
    request = desk.request()
    acted = await gateway.chat(request)
    call = acted.json["choices"][0]["message"]["tool_calls"][0]
    result = [m for m in desk_session(5000).messages if m.role == "tool"][1].content
    grown: dict[str, Any] = {
        **request,
        "messages": [
            *request["messages"],
            acted.json["choices"][0]["message"],
            {"role": "tool", "tool_call_id": call["id"], "content": result},
        ],
    }
    raw = json.dumps(grown, indent=1).encode()
    await gateway.post("/v1/chat/completions", raw)
    sent = upstream.received[-1].body
    own = [one for one in sent_ids(upstream) if NINE.fullmatch(one)]
    assert len(set(own)) == 1
    assert sent == raw.replace(call["id"].encode(), own[0].encode())
