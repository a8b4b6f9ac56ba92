"""Anthropic's client lets the server hold a conversation. Where no server does, it is told so in
the words that make it send the whole conversation again."""

from typing import Any

import anthropic
import pytest

from .conftest import Starter
from .upstream import MODEL

USER: list[Any] = [{"role": "user", "content": "hello"}]


@pytest.mark.parametrize(
    ("thread", "error", "code"),
    [
        (
            {"type": "create"},
            anthropic.BadRequestError,
            "thread_unsupported_request",
        ),
        (
            {"type": "continue", "previous_message_id": "msg_1"},
            anthropic.NotFoundError,
            "thread_not_found",
        ),
    ],
)
async def test_the_sdk_raises_its_own_error(
    start: Starter, thread: dict[str, Any], error: type[anthropic.APIStatusError], code: str
) -> None:
    running = await start(dialect="chat")
    async with anthropic.AsyncAnthropic(base_url=running.base, api_key="k") as client:
        asked: Any = client.beta.messages
        with pytest.raises(error) as raised:
            await asked.create(model=MODEL, max_tokens=9, messages=USER, thread=thread)
    assert raised.value.error_code == code
