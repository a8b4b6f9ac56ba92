"""What was learned of an agent holds in whatever dialect it speaks: System 1 acts, streamed in the
right order, is compared, and its turns are known again when they come back."""

import json
from typing import Any

import pytest

from reflexarc.steps import Message
from reflexarc.wire.as_steps import messages_of
from reflexarc.wire.chat import message_from_chat
from reflexarc.wire.converting import TurnMemory, read_ask
from reflexarc.wire.dialect import Where
from reflexarc.wire.dialects import NAMES, dialect
from reflexarc.wire.ids import IdMap
from reflexarc.wire.losses import Losses
from reflexarc.wire.sse import SseParser

from .conftest import Desk, Response, Running, Starter
from .upstream import MODEL, Upstream

OTHERS = [name for name in NAMES if name != "chat"]


def request_of(name: str, chat: dict[str, Any]) -> dict[str, Any]:
    """A chat request in another dialect, nothing lost."""
    ask = read_ask(dialect("chat"), json.dumps(chat).encode(), Where(), TurnMemory())
    losses = Losses(name)
    spoken = dialect(name)
    body = spoken.write_ask(ask, losses, IdMap(spoken.ids))
    assert losses.names == ()
    if name == "responses":
        # What a client of this dialect would leave out.
        body.pop("include", None)
    return json.loads(json.dumps(body))


def path_of(name: str, *, stream: bool) -> str:
    verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
    return {
        "chat": "/v1/chat/completions",
        "responses": "/v1/responses",
        "messages": "/v1/messages",
        "gemini": f"/v1beta/models/{MODEL}:{verb}",
    }[name]


async def ask(
    gateway: Running, name: str, chat: dict[str, Any], *, stream: bool = False
) -> Response:
    body = request_of(name, {**chat, **({"stream": True} if stream else {})})
    return await gateway.post(path_of(name, stream=stream), body)


def calls_of(name: str, answer: Response) -> list[tuple[str, str, Any]]:
    reply = dialect(name).read_reply(answer.json)
    return [(call.id, call.name, json.loads(call.arguments)) for call in reply.calls]


@pytest.mark.parametrize("name", OTHERS)
async def test_the_same_call_is_made_as_in_chat(
    name: str, start: Starter, desk: Desk, reflex_path: Any, upstream: Upstream
) -> None:
    gateway = await start(
        reflex=str(reflex_path), mode="live", effects={"get_order": "read"}, dialect=name
    )
    answer = await ask(gateway, name, desk.request())
    assert answer.status == 200
    assert answer.decision.startswith("live; act; get_order; ")
    assert upstream.received == []
    ((identity, called, arguments),) = calls_of(name, answer)
    wanted = desk.next_call()
    assert (called, arguments) == (wanted.name, wanted.arguments)
    again = await ask(gateway, name, desk.request())
    assert calls_of(name, again) == [(identity, called, arguments)]


@pytest.mark.parametrize("name", OTHERS)
async def test_a_stream_says_the_same_in_its_dialects_order(
    name: str, start: Starter, desk: Desk, reflex_path: Any
) -> None:
    gateway = await start(
        reflex=str(reflex_path), mode="live", effects={"get_order": "read"}, dialect=name
    )
    answer = await ask(gateway, name, desk.request(), stream=True)
    assert answer.decision.startswith("live; act; get_order; ")
    assert (answer.header("content-type") or "").startswith("text/event-stream")
    events = SseParser().feed(answer.body)
    kinds = [event.name.decode() for event in events if event.name]
    assert kinds == ORDERS[name]
    for event in events:
        if event.name:
            assert json.loads(event.data)["type"] == event.name.decode()
    reader = dialect(name).stream_reader()
    told = [one for event in events for one in reader.read(event)]
    assert desk.next_call().name in str(told)


ORDERS = {
    "gemini": [],
    "messages": [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ],
    "responses": [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.completed",
    ],
}


@pytest.mark.parametrize("name", OTHERS)
async def test_shadow_compares_in_every_dialect(
    name: str, start: Starter, desk: Desk, reflex_path: Any, upstream: Upstream, http: Any
) -> None:
    """The upstream speaks the dialect itself: bytes pass untouched, and are read from a copy."""
    wanted = desk.next_call()
    chat = json.loads(http.completion(None, (wanted.name, wanted.arguments)).split(b"\r\n\r\n")[1])
    reply = dialect("chat").read_reply(chat)
    asked = read_ask(dialect("chat"), json.dumps(desk.request()).encode(), Where(), TurnMemory())
    body = json.dumps(dialect(name).write_reply(reply, asked, Losses(name))).encode()
    upstream.answer = http.answer(body)
    gateway = await start(
        reflex=str(reflex_path), mode="shadow", effects={"get_order": "read"}, dialect=name
    )
    sent = json.dumps(request_of(name, desk.request()), indent=1).encode()
    answer = await gateway.post(path_of(name, stream=False), sent)
    assert answer.body == body
    assert upstream.received[0].body == sent
    agreed = 'reflexarc_shadow_total{outcome="agree",route="/v1",tool="get_order"}'
    await gateway.eventually(lambda found: found.get(agreed, 0) == 1)


@pytest.mark.parametrize("name", OTHERS)
async def test_an_upstream_of_another_dialect_is_compared_too(
    name: str, start: Starter, desk: Desk, reflex_path: Any, upstream: Upstream, http: Any
) -> None:
    wanted = desk.next_call()
    upstream.answer = http.completion(None, (wanted.name, wanted.arguments))
    gateway = await start(
        reflex=str(reflex_path), mode="shadow", effects={"get_order": "read"}, dialect="chat"
    )
    answer = await ask(gateway, name, desk.request())
    assert [(called, given) for _, called, given in calls_of(name, answer)] == [
        (wanted.name, wanted.arguments)
    ]
    agreed = 'reflexarc_shadow_total{outcome="agree",route="/v1",tool="get_order"}'
    await gateway.eventually(lambda found: found.get(agreed, 0) == 1)


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize(
    "more",
    [
        {"tool_choice": "required"},
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "a", "schema": {"type": "object"}},
            }
        },
        {"temperature": 0.5, "stop": "END"},
        {"reasoning_effort": "high"},
    ],
)
async def test_what_it_may_not_answer_goes_to_system_2(
    name: str, more: dict[str, Any], start: Starter, desk: Desk, reflex_path: Any
) -> None:
    if name == "responses" and "stop" in more:
        more = {"verbosity": "low"}  # this dialect has no stop sequences
    gateway = await start(
        reflex=str(reflex_path), mode="live", effects={"get_order": "read"}, dialect=name
    )
    answer = await ask(gateway, name, desk.request(**more))
    assert answer.decision.startswith("live; escalate; field:")


@pytest.mark.parametrize("name", OTHERS)
async def test_members_nobody_knows_escalate(
    name: str, start: Starter, desk: Desk, reflex_path: Any, upstream: Upstream
) -> None:
    gateway = await start(
        reflex=str(reflex_path), mode="live", effects={"get_order": "read"}, dialect=name
    )
    body = {**request_of(name, desk.request()), "unheard_of": 1}
    answer = await gateway.post(path_of(name, stream=False), body)
    known_as = "unheardOf" if name == "gemini" else "unheard_of"
    assert answer.decision == f"live; escalate; field:{known_as}"
    assert json.loads(upstream.received[0].body)["unheard_of"] == 1


@pytest.mark.parametrize("name", OTHERS)
def test_a_conversation_reads_as_the_same_messages_in_every_dialect(name: str, desk: Desk) -> None:
    chat = desk.request(messages=8)
    wanted = [message_from_chat(message) for message in chat["messages"]]
    body = json.dumps(request_of(name, chat)).encode()
    read = read_ask(dialect(name), body, Where(MODEL), TurnMemory())
    found = [message for turn in read.turns for message in messages_of(turn)]
    assert [_plain(message) for message in found] == [_plain(message) for message in wanted]


def _plain(message: Message) -> Any:
    calls = [(call.name, call.arguments) for call in message.tool_calls]
    # Some dialects carry a result that is an object as an object.
    said = json.loads(message.content) if message.content.startswith("{") else message.content
    return message.role, said, calls, message.opaque, message.thinking
