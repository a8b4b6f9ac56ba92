"""Decision points: what System 2 decided at each step of a recorded session.

A *decision point* is one assistant step after the first user message. It holds a message or one
or more calls. In a parallel batch each recorded call is one *item*; an item sees the calls of
its siblings before it, not their results, and is answered rightly by any call of the batch that
has not been accounted for yet.
"""

from collections.abc import Collection, Iterator

import msgspec

from reflexarc.steps.model import Session, ToolCall


class Item(msgspec.Struct, frozen=True):
    """One thing to predict. `calls` is empty where System 2 wrote a message instead.

    `message` is the index of the assistant message in the session; `position` counts the calls
    of its batch that stand before this one; `calls[0]` is the recorded call.
    """

    step: int
    message: int
    position: int
    calls: tuple[ToolCall, ...]

    @property
    def recorded(self) -> ToolCall | None:
        return self.calls[0] if self.calls else None

    def answers(self, thinking: Collection[str]) -> frozenset[str]:
        """The keys of the calls that answer it; none where System 2 wrote a message or called a
        tool that only thinks (`thinking` names those)."""
        if not self.calls or self.calls[0].name in thinking:
            return frozenset()
        return frozenset(call.key for call in self.calls)

    @property
    def is_last(self) -> bool:
        """Whether the step holds no further item."""
        return len(self.calls) <= 1


def decision_items(session: Session) -> Iterator[Item]:
    """Every item of a session, in order. System 1's own turns are none: they stand in the context
    of what comes after, but nothing is learned from them, and nothing judged by them."""
    step = 0
    user_seen = False
    for index, message in enumerate(session.messages):
        if message.role == "user":
            user_seen = True
        elif message.role == "assistant" and user_seen and not message.by_system1:
            if message.tool_calls:
                for position in range(len(message.tool_calls)):
                    yield Item(step, index, position, message.tool_calls[position:])
            else:
                yield Item(step, index, 0, ())
            step += 1
