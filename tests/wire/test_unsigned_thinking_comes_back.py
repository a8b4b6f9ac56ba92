"""Thinking that nobody signed goes back to the upstream it came from, whatever its client speaks:
some providers want it beside the calls of a turn."""

from typing import Any

import pytest

from reflexarc.wire.dialects import NAMES, dialect
from reflexarc.wire.ids import IdMap
from reflexarc.wire.losses import Losses
from reflexarc.wire.replies import Reply
from reflexarc.wire.turns import Ask, Call, Result, Settings, Text, Thinking, Turn, joined

ASK = Ask("chat", Settings(model="m"), (), ())


def kept(client: str, value: dict[str, Any]) -> list[Any]:
    """What a client keeps of an answer, for its next request."""
    if client == "responses":
        return value["output"]
    if client == "gemini":
        return [value["candidates"][0]["content"]]
    return [{"role": "assistant", "content": value["content"]}]


@pytest.mark.parametrize("client", [name for name in NAMES if name != "chat"])
def test_a_chat_upstream_gets_its_reasoning_content_again(client: str) -> None:
    spoken = dialect(client)
    thinking = Thinking("I look it up.", None, "chat")
    reply = Reply("id", "m", (thinking, Call("c1", "look", "{}")), "calls", origin="chat")
    value = spoken.write_reply(reply, Ask(client, ASK.settings, (), ()), Losses(client))
    turns = [Turn("user", (Text("look"),))]
    for at, message in enumerate(kept(client, value)):
        turns.extend(spoken.read_message(message, f"[{at}]"))
    turns.append(Turn("tool", (Result("c1", (Text("found"),), name="look"),)))
    losses = Losses("chat")
    asked = Ask(client, ASK.settings, joined(turns), ())
    body = dialect("chat").write_ask(asked, losses, IdMap(dialect("chat").ids))
    _, said, _ = body["messages"]
    assert said["reasoning_content"] == "I look it up."
    assert losses.names == ()
