"""The sessions of the measurement of growth: an agent that looks up order after order."""

import json
import random
from collections.abc import Generator
from typing import Any

from reflexarc.bench.desk.schemas import TOOLS

BYTES_PER_TOKEN = 4


def bodies(dialect: str, turns: int, tokens: int, session: int = 0) -> Generator[bytes]:
    """What the agent sends, turn by turn, up to so many tokens: all it sent before, the answer, a
    tool's result. Each session asks for other orders."""
    draw = random.Random(session)
    offered = list(TOOLS)
    system = "You help at a returns desk. " + "Look things up before you answer. " * 40
    spare = tokens * BYTES_PER_TOKEN - len(json.dumps(offered)) - len(system)
    result_chars = spare // turns - (230 if dialect == "chat" else 250)
    chat = dialect == "chat"
    messages: list[dict[str, Any]] = [{"role": "system", "content": system}] if chat else []
    messages.append(
        {"role": "user", "content": f"Please see to all orders of depot {session} that are late."}
    )
    if not chat:
        messages[0]["content"] = [{"type": "text", "text": messages[0]["content"]}]
    for turn in range(turns):
        yield _body(dialect, system, offered, messages)
        words = " ".join(f"{draw.choice(_WORDS)} {draw.randrange(10_000)}" for _ in range(99))
        words = (words * (1 + result_chars // len(words)))[:result_chars]
        identity, found = f"call_{turn:06d}", {"order_id": f"O-{session}-{turn:05d}"}
        if chat:
            function = {"name": "get_order", "arguments": json.dumps(found)}
            call = {"id": identity, "type": "function", "function": function}
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": identity, "content": words})
        else:
            used = {"type": "tool_use", "id": identity, "name": "get_order", "input": found}
            result = {"type": "tool_result", "tool_use_id": identity, "content": words}
            messages.append({"role": "assistant", "content": [used]})
            messages.append({"role": "user", "content": [result]})


_WORDS = ("parcel", "late", "carrier", "refund", "address", "depot", "status", "weight", "note")


def _body(
    dialect: str, system: str, offered: list[dict[str, Any]], messages: list[dict[str, Any]]
) -> bytes:
    if dialect == "chat":
        body: dict[str, Any] = {"model": "desk", "messages": messages, "tools": offered}
        return json.dumps(body).encode()
    mark = {"cache_control": {"type": "ephemeral"}}
    last = messages[-1]
    marked = {**last, "content": [{**last["content"][0], **mark}]}
    tools = [
        {
            "name": one["function"]["name"],
            "description": one["function"].get("description", ""),
            "input_schema": one["function"]["parameters"],
        }
        for one in offered
    ]
    body = {
        "model": "desk",
        "max_tokens": 4096,
        "system": [{"type": "text", "text": system, **mark}],
        "tools": tools,
        "messages": [*messages[:-1], marked],
    }
    return json.dumps(body).encode()
