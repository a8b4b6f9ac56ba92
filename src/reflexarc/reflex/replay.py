"""Replays a recorded session: every decision item with the context that stood before it."""

from collections.abc import Callable, Iterator

from reflexarc.reflex.context import Context
from reflexarc.reflex.tape import Room, Tape
from reflexarc.steps import Item, Session, decision_items

MAX_KEPT = 200_000
"""Values that are kept of sessions which are replayed again, over all of them: about 60 MB."""

Replay = Callable[[Session], Iterator[tuple[Context, Item]]]


def replay(session: Session, context: Context | None = None) -> Iterator[tuple[Context, Item]]:
    """Yields one live context, updated between items: use it before asking for the next. `context`:
    one that has read nothing yet."""
    context = context or Context()
    for item in decision_items(session):
        if item.position == 0:
            context.extend(session.messages[context.length : item.message])
        yield context, item
        if item.recorded is not None and not item.is_last:
            context.append_call(item.recorded)


class Replays:
    """Replays the same sessions again and again; their messages are read once, while there is room
    for what was read. They must stay what they are."""

    def __init__(self, room: int = MAX_KEPT) -> None:
        self._room = Room(room)
        # By identity: two sessions that are equal are still two. Each is kept, so that its
        # identity stays its own.
        self._tapes: dict[int, tuple[Session, Tape]] = {}

    def __call__(self, session: Session) -> Iterator[tuple[Context, Item]]:
        """As `replay`; a session's replay must have ended before its next one begins."""
        return replay(session, self.context(session))

    def context(self, session: Session) -> Context:
        """One that has read nothing yet, to be told this very session."""
        _, tape = self._tapes.setdefault(id(session), (session, Tape(self._room)))
        tape.rewind()
        return Context(tape)
