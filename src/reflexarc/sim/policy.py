"""What the simulated System 2 says: a policy is a pure function of the conversation.

`RecordedPolicy` answers with what was recorded after the same conversation. Scripted policies
belong to their workload and only have to fit `Policy`.
"""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Protocol

import msgspec
import xxhash

from reflexarc.steps import Message, Session, ToolSpec, canonical_json
from reflexarc.steps.errors import InputError


class PlannedCall(msgspec.Struct, frozen=True):
    """A call without an id: the server gives it one. `raw` is the arguments' text to send."""

    name: str
    arguments: dict[str, Any]
    raw: str = ""

    @property
    def text(self) -> str:
        return self.raw or msgspec.json.encode(self.arguments).decode()


class Answer(msgspec.Struct, frozen=True):
    """One assistant step: text, calls, or both."""

    content: str = ""
    calls: tuple[PlannedCall, ...] = ()


class UnknownConversationError(InputError):
    """The policy has no answer for this conversation."""

    code: ClassVar[str] = "unknown_conversation"
    status: ClassVar[int] = 404


class Policy(Protocol):
    """A System 2 without its latency. The same conversation gives the same answer."""

    @property
    def model(self) -> str:
        """The model's name, as `/v1/models` lists it."""
        ...

    def answer(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Answer:
        """The next assistant step. Raises `UnknownConversationError`."""
        ...


class RecordedPolicy:
    """Answers the recorded step of the session that began with the same messages.

    Conversations are compared by meaning: roles, texts, and calls as canonical JSON, ids aside.
    Where two sessions share a beginning and then differ, the first one recorded answers.
    """

    def __init__(self, sessions: Iterable[Session], model: str | None = None) -> None:
        self._answers: dict[str, Answer] = {}
        self._sessions = 0
        recorded_model = model
        for session in sessions:
            self._sessions += 1
            recorded_model = recorded_model or session.model
            chain = ""
            for message in session.messages:
                if message.role == "assistant":
                    calls = tuple(
                        PlannedCall(c.name, c.arguments, c.raw) for c in message.tool_calls
                    )
                    self._answers.setdefault(chain, Answer(message.content, calls))
                chain = _extend(chain, message)
        self._model = recorded_model or "recorded"

    @property
    def model(self) -> str:
        return self._model

    def answer(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Answer:  # noqa: ARG002 - fits Policy
        chain = ""
        for message in messages:
            chain = _extend(chain, message)
        found = self._answers.get(chain)
        if found is None:
            raise UnknownConversationError(
                f"none of the {self._sessions} recorded sessions has an assistant step after these "
                f"{len(messages)} messages; replay a recorded conversation from its beginning"
            )
        return found


def _extend(chain: str, message: Message) -> str:
    calls = [call.key for call in message.tool_calls]
    link = canonical_json([chain, message.role, message.content, calls])
    return xxhash.xxh3_128_hexdigest(link.encode("utf-8", "surrogatepass"))
