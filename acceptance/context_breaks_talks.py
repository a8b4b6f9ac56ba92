"""Conversations of agents for `context_breaks`, in every dialect, and what may be done to them."""

import copy
import json
import random
from collections.abc import Callable
from typing import Any

from tests.context.prompts import png
from tests.gateway.asking import client_of

from reflexarc.wire.converting import TurnMemory, read_ask
from reflexarc.wire.dialect import Where
from reflexarc.wire.dialects import dialect
from reflexarc.wire.ids import IdMap
from reflexarc.wire.losses import Losses

Body = dict[str, Any]
Edit = Callable[[Body], Any]

_WORDS = (
    "order", "parcel", "refund", "shelf", "letter", "stock", "branch", "commit", "queue", "river",
)  # fmt: skip
_TOOLS = ("search", "read", "write", "list")
MODEL = "faulty-1"


class Talk:
    """One agent's conversation, told in Anthropic's form; what it says depends on its seed alone.
    `body(n)` is its request after n answers."""

    def __init__(self, seed: int, *, pictures: bool = False) -> None:
        self._draw = random.Random(seed)
        self._id = f"{seed:08x}"
        first: list[Any] = [{"type": "text", "text": self._words(20)}]
        if pictures:
            source = {"type": "base64", "media_type": "image/png", "data": png(120, 80)}
            first.append({"type": "image", "source": source})
        self._messages: list[Body] = [{"role": "user", "content": first}]
        self._head: Body = {
            "model": MODEL,
            "max_tokens": 100,
            "system": f"You are agent {self._words(3)}.\nIt is 2026-12-01T09:59:58Z, run 4711.\n"
            + self._words(400),
            "tools": [self._tool(name) for name in _TOOLS],
        }

    def body(self, answers: int) -> Body:
        while len(self._messages) < 1 + 2 * answers:
            self._go_on()
        made = {**self._head, "messages": self._messages[: 1 + 2 * answers]}
        return copy.deepcopy(made)

    def _go_on(self) -> None:
        id = f"toolu_{self._id}{len(self._messages):04d}"
        given = {"path": self._words(1), "limit": self._draw.randrange(9), "deep": True}
        name = self._draw.choice(_TOOLS)
        call = {"type": "tool_use", "id": id, "name": name, "input": given}
        result = {"type": "tool_result", "tool_use_id": id, "content": self._words(120)}
        said = {"type": "text", "text": self._words(8)}
        self._messages.append({"role": "assistant", "content": [said, call]})
        self._messages.append({"role": "user", "content": [result]})

    def _tool(self, name: str) -> Body:
        properties = {"path": {"type": "string"}, "limit": {"type": "integer", "maximum": 9}}
        schema = {"type": "object", "properties": {**properties, "deep": {"type": "boolean"}}}
        return {"name": name, "description": self._words(30), "input_schema": schema}

    def _words(self, count: int) -> str:
        return " ".join(self._draw.choice(_WORDS) for _ in range(count))


def said_in(client: str, body: Body) -> tuple[str, bytes]:
    """The path of a request under its route, and the request in this dialect."""
    path = client_of(client).path(stream=False)
    if client == "messages":
        return path, json.dumps(body).encode()
    ask = read_ask(
        dialect("messages"), json.dumps(body).encode(), Where(body["model"]), TurnMemory()
    )
    spoken = dialect(client)
    written = spoken.write_ask(ask, Losses(client), IdMap(spoken.ids))
    return path, json.dumps(written).encode()


def with_moving_marks(body: Body) -> Body:
    """As clients of Anthropic's set them: on tools and system prompt, and on the last message."""
    mark = {"type": "ephemeral"}
    body["tools"][-1]["cache_control"] = mark
    body["system"] = [{"type": "text", "text": body["system"], "cache_control": mark}]
    for message in body["messages"][-3::2]:
        message["content"][-1]["cache_control"] = mark
    return body


def system(was: str, now: str) -> Edit:
    def edit(body: Body) -> None:
        body["system"] = body["system"].replace(was, now)

    return edit


def changed(**members: Any) -> Edit:
    return lambda body: body.update(members)


def in_message(at: int, name: str, value: Any) -> Edit:
    """Changes a member of the last block of a message."""

    def edit(body: Body) -> None:
        body["messages"][at]["content"][-1][name] = value

    return edit


def messages_dropped(body: Body) -> None:
    del body["messages"][1:5]


def tools_reversed(body: Body) -> None:
    body["tools"].reverse()


def tool_described_otherwise(body: Body) -> None:
    body["tools"][1]["description"] = "Other."


def tool_dropped(body: Body) -> None:
    del body["tools"][0]


def other_system(body: Body) -> None:
    body["system"] = "Be short. " + body["system"]


def keys_reversed(body: Body) -> None:
    call = body["messages"][3]["content"][-1]
    call["input"] = dict(reversed(list(call["input"].items())))


def ids_written_anew(body: Body) -> None:
    for message in body["messages"]:
        for block in message["content"]:
            for name in ("id", "tool_use_id"):
                if name in block:
                    block[name] = block[name].replace("toolu_", "toolu_x")


def picture_in_other_bytes(body: Body) -> None:
    body["messages"][0]["content"][-1]["source"]["data"] = png(120, 80, 1)


def new_tool(body: Body) -> None:
    body["tools"].append({**body["tools"][0], "name": "patch"})
