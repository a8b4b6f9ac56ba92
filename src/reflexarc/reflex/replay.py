"""Replays a recorded session: every decision item with the context that stood before it."""

from collections.abc import Iterator

from reflexarc.reflex.context import Context
from reflexarc.steps import Item, Session, decision_items


def replay(session: Session) -> Iterator[tuple[Context, Item]]:
    """Yields one live context, updated between items: use it before asking for the next."""
    context = Context()
    for item in decision_items(session):
        if item.position == 0:
            context.extend(session.messages[context.length : item.message])
        yield context, item
        if item.recorded is not None and not item.is_last:
            context.append_call(item.recorded)
