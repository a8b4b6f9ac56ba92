"""What is recorded of a conversation is the same in whatever dialect it was had."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest

from reflexarc.store.recording import Recording
from reflexarc.wire.converting import TurnMemory, read_ask
from reflexarc.wire.dialect import Where
from reflexarc.wire.dialects import NAMES, dialect
from reflexarc.wire.ids import IdMap
from reflexarc.wire.json import decode_strict, encode_json
from reflexarc.wire.losses import Losses
from tests.store.stepping import at, calls, chat, completion, result, says, step, user

TOOL = {
    "type": "function",
    "function": {"name": "find_order", "parameters": {"type": "object", "properties": {}}},
}
OPENING = [{"role": "system", "content": "You help."}, user("Where is order W1?")]
ASKED = calls("find_order", {"id": "W1"})
FOUND = [*OPENING, ASKED, result("shipped")]


def put(recording: Recording, name: str, history: list[Any], answer: dict[str, Any]) -> None:
    """The step as it would be in another dialect on both sides."""
    ask = read_ask(dialect("chat"), chat(history, tools=[TOOL]), Where(), TurnMemory())
    spoken = dialect(name)
    request = encode_json(spoken.write_ask(ask, Losses(name), IdMap(spoken.ids)))
    reply = dialect("chat").read_reply(decode_strict(completion(answer)))
    told = encode_json(spoken.write_reply(reply, ask, Losses(name)))
    one = msgspec.structs.replace(step(request), dialect=name, answer_dialect=name, model="m")
    recording.step(one, request, told)


def recorded(directory: Path) -> list[Any]:
    connection = sqlite3.connect(directory / "reflexarc.db")
    try:
        query = "select session, role, content from messages order by at"
        rows = connection.execute(query).fetchall()
        tools = connection.execute("select tools from sessions").fetchall()
    finally:
        connection.close()
    assert len({session for session, _, _ in rows}) == 1
    return [[(role, json.loads(content)) for _, role, content in rows], tools]


@pytest.mark.parametrize("name", NAMES)
def test_a_conversation_is_kept_as_chat_would_have_it(name: str, tmp_path: Path) -> None:
    recording = at(tmp_path)
    put(recording, name, OPENING, ASKED)
    put(recording, name, FOUND, says("It is on its way."))
    assert recording.flush().steps == 2
    messages, ((tools,),) = recorded(tmp_path)
    assert [role for role, _ in messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert [message["content"] for _, message in messages] == [
        "You help.",
        "Where is order W1?",
        None,
        "shipped",
        "It is on its way.",
    ]
    (call,) = messages[2][1]["tool_calls"]
    assert (call["id"], call["function"]["name"]) == ("call_1", "find_order")
    assert json.loads(call["function"]["arguments"]) == {"id": "W1"}
    assert json.loads(tools)[0]["function"]["name"] == "find_order"
    recording.close()


def test_a_client_may_change_its_dialect_within_a_conversation(tmp_path: Path) -> None:
    recording = at(tmp_path)
    put(recording, "messages", OPENING, ASKED)
    put(recording, "responses", FOUND, says("It is on its way."))
    recording.flush()
    messages, _ = recorded(tmp_path)
    assert len(messages) == 5
    recording.close()
