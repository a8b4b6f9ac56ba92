"""What all tenants share of requests that were read: told apart by all that is in them, bounded,
and nobody's request can take another's place."""

import json
import threading
from typing import Any

import pytest

from reflexarc.gateway.admission import MAX_FIELD_BYTES
from reflexarc.gateway.asked import Requests
from reflexarc.gateway.config import GatewayConfig, Route
from reflexarc.gateway.converting import Converting
from reflexarc.gateway.doors import Doors
from reflexarc.gateway.thoughts import Thoughts
from reflexarc.wire.converting import TurnMemory, read_ask
from reflexarc.wire.dialect import Where
from reflexarc.wire.dialects import dialect
from reflexarc.wire.offered import ToolReader
from reflexarc.wire.replies import Reply
from reflexarc.wire.turns import Ask, Call, Settings, Thinking, Turn

TOOLS = '[{"name":"get","input_schema":{"type":"object"}}]'
GOOD = (
    f'{{"model":"m","max_tokens":99,"tools":{TOOLS},"messages":[{{"role":"user","content":"x"}}]}}'
)


def requests() -> Requests:
    return Requests(ToolReader(64), 64)


def refusal(reader: Requests, body: str) -> str | None:
    return reader.read(b"", "messages", Where(), body.encode()).admission.refusal


def test_a_name_that_holds_others_is_not_taken_for_them() -> None:
    odd = json.dumps('model\0"m"\0max_tokens\x0099\0tools')
    forged = f'{{{odd}:{TOOLS},"messages":[{{"role":"user","content":"x"}}]}}'
    reader = requests()
    assert refusal(reader, GOOD) is None
    with pytest.raises(Exception, match="model"):
        refusal(reader, forged)
    where = Where("m\0model", stream=False)
    assert reader._digest("gemini", where, {}) != reader._digest("gemini", Where("m"), {})


@pytest.mark.parametrize(
    ("name", "kibibytes", "refused"),
    [("metadata", 300, True), ("system", 300, False), ("system", 1100, True)],
)
def test_long_members_are_left_to_system_2_unread(name: str, kibibytes: int, refused: bool) -> None:
    text = "x" * (kibibytes * 1024)
    value: Any = {"user_id": text} if name == "metadata" else text
    body = json.dumps({**json.loads(GOOD), name: value})
    assert len(body) > MAX_FIELD_BYTES
    reader = requests()
    assert refusal(reader, body) == ("too_long" if refused else None)
    assert len(reader._heads) == (0 if refused else 1)


def test_many_short_messages_stay_within_the_memory() -> None:
    memory = TurnMemory(max_bytes=64 * 1024)
    for at in range(300):
        body = f'{{"model":"m","messages":[{{"role":"user","content":"{at}"}}]}}'
        read_ask(dialect("chat"), body.encode(), Where(), memory)
    assert len(memory._known) <= 64


def test_two_memories_know_the_same_message_by_other_keys() -> None:
    keys: list[Any] = []
    for _ in range(2):
        memory = TurnMemory()
        read_ask(dialect("messages"), GOOD.encode(), Where(), memory)
        keys.append(set(memory._known))
    assert keys[0].isdisjoint(keys[1])


async def test_long_requests_are_given_their_thoughts_beside_no_other_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    route = Route(upstream="http://127.0.0.1:9/v1", dialect="messages")
    door = Doors(GatewayConfig(route=(route,)), {})._doors["/v1/chat/completions"]
    converting = Converting(64)
    threads: list[Any] = []
    restored = Thoughts.restored

    def watched(self: Thoughts, tenant: bytes, ask: Ask) -> Ask:
        threads.append(threading.current_thread())
        return restored(self, tenant, ask)

    monkeypatch.setattr(Thoughts, "restored", watched)
    for size in (10, 2 * 1024 * 1024):
        body = {"model": "m", "messages": [{"role": "user", "content": "x" * size}]}
        _, sent = await converting.begin(door, json.dumps(body).encode(), "", b"t")
        assert len(sent) > size
    assert threads == [threading.main_thread()] * 2


def test_thoughts_come_back_to_their_own_tenant_alone() -> None:
    thoughts = Thoughts()
    call = Call("call_1", "get", "{}")
    signed = Thinking("hm", "sig", "messages")
    thoughts.keep(b"a", Reply("r", "m", (signed, call), "calls"))
    ask = Ask("chat", Settings("m"), (Turn("assistant", (call,)),))
    assert thoughts.restored(b"a", ask).turns[0].parts == (signed, call)
    assert thoughts.restored(b"b", ask) is ask
