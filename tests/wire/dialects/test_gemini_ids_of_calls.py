"""Calls that came without an id: two turns of a conversation never share one."""

from reflexarc.wire.dialects import dialect
from reflexarc.wire.replies import Call

CALLING = {
    "candidates": [
        {"content": {"parts": [{"functionCall": {"name": "get", "args": {}}}]},
         "finishReason": "STOP"}
    ]
}  # fmt: skip


def ids(**more: str) -> list[str]:
    reply = dialect("gemini").read_reply({**CALLING, **more})
    return [part.id for part in reply.parts if isinstance(part, Call)]


def test_an_answer_without_an_id_makes_calls_that_no_other_has() -> None:
    assert ids() != ids()
    assert ids(responseId="a") == ids(responseId="a")
    assert ids(responseId="a") != ids(responseId="b")
