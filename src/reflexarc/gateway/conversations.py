"""Conversations System 1 has worked through, so that a request costs only its new messages.

A conversation is known by the chain of its messages' bytes, per tenant and reflex. The digest is
not a secret and not proof against forgery: a forged collision reaches only the forger's own tenant.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol

import msgspec

from reflexarc.reflex.decision import Decision
from reflexarc.steps import Message
from reflexarc.wire.offered import Tools
from reflexarc.wire.sent import Pieces

MAX_MESSAGES = 20_000
"""Messages of one conversation."""
MAX_NEW_MESSAGES = 2_000
MAX_NEW_BYTES = 4 * 1024 * 1024
"""What is read of a conversation at once, beyond what earlier requests had. All tenants share one
process: no request may hold it for long."""


Read = Callable[[bytes, int], list[Message]]
"""A piece of a conversation and its place in it: its messages."""


class TooLongError(Exception):
    """A request is over what System 1 reads; System 2 reads it."""


class ContextLike(Protocol):
    """What the gateway needs of `reflexarc.reflex.Context`."""

    def extend(self, messages: Sequence[Message]) -> None: ...


class ReflexLike(Protocol):
    """What the gateway needs of `reflexarc.reflex.Reflex`."""

    def context(self) -> Any: ...

    def decide(
        self,
        context: Any,
        tools: Tools,
        *,
        model: str | None = None,
        max_error: float | None = None,
        alternatives: int = 0,
        partials: bool = False,
        writes: Collection[str] = (),
        proposing: bool = True,
    ) -> Decision: ...


class Conversation(msgspec.Struct):
    """Work done for one chain of messages. `acts_in_a_row` counts System 1's own turns at its
    end; `reused` the messages that an earlier request had already paid for; `last_role` who spoke
    last. `opening` stands for all up to the first message of a user: what every request of a
    conversation shares. `thinking`: a turn carries a model's thinking."""

    context: ContextLike
    head: bytes
    messages: int
    bytes_read: int
    acts_in_a_row: int = 0
    reused: int = 0
    last_role: str = ""
    opening: bytes = b""
    thinking: bool = False


class Conversations:
    """A bounded memory of conversations, the least recently used forgotten first."""

    def __init__(self, max_contexts: int, max_bytes: int) -> None:
        self._max_contexts = max_contexts
        self._max_bytes = max_bytes
        self._bytes = 0
        self._known: OrderedDict[tuple[bytes, str, bytes], Conversation] = OrderedDict()
        self.moves_on: Callable[[ContextLike], None] | None = None
        """Called with a context before it is extended by what a later request brings."""

    def take(
        self,
        tenant: bytes,
        name: str,
        reflex: ReflexLike,
        pieces: Pieces,
        read: Read,
    ) -> Conversation:
        """The conversation these pieces make, worked through; `read` makes messages of one. It is
        out of the memory until `keep`: one that a fault interrupted is never used again.

        Raises `MalformedError`, `RequestError` with the path of the fault, or `TooLongError`.
        """
        count = len(pieces)
        if count > MAX_MESSAGES:
            raise TooLongError
        done = count
        known: Conversation | None = None
        while done and known is None:
            known = self._known.get((tenant, name, pieces.until(done - 1)))
            done -= known is None
        if count - done > MAX_NEW_MESSAGES:
            raise TooLongError
        new = [pieces[at] for at in range(done, count)]
        new_bytes = sum(map(len, new))
        if new_bytes > MAX_NEW_BYTES:
            raise TooLongError
        added = [
            (pieces.until(at), message)
            for at, piece in enumerate(new, done)
            for message in read(piece, at)
        ]
        messages = [message for _, message in added]
        if known is None:
            known = Conversation(reflex.context(), b"", 0, 0)
        else:
            del self._known[tenant, name, known.head]
            self._bytes -= known.bytes_read
        known.reused = done
        if messages:
            if done and self.moves_on is not None:
                self.moves_on(known.context)
            known.context.extend([_without_thinking(message) for message in messages])
            known.head = pieces.until(count - 1)
            known.messages = count
            known.last_role = messages[-1].role
            known.bytes_read += new_bytes
            for digest, message in added:
                known.thinking = known.thinking or message.thinking
                if message.role == "user" and not known.opening:
                    known.opening = digest
                if message.role == "assistant":
                    known.acts_in_a_row = known.acts_in_a_row + 1 if message.by_system1 else 0
        return known

    def keep(self, tenant: bytes, name: str, conversation: Conversation) -> None:
        key = (tenant, name, conversation.head)
        replaced = self._known.pop(key, None)
        if replaced is not None:
            self._bytes -= replaced.bytes_read
        self._known[key] = conversation
        self._bytes += conversation.bytes_read
        while len(self._known) > self._max_contexts or self._bytes > self._max_bytes:
            _, dropped = self._known.popitem(last=False)
            self._bytes -= dropped.bytes_read


def _without_thinking(message: Message) -> Message:
    """As the reflex reads it. Whether one may act between such turns is the provider's to say,
    and is judged beside the reflex."""
    return msgspec.structs.replace(message, thinking=False) if message.thinking else message
