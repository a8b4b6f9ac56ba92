"""Reads and writes requests of the messages dialect for its tests."""

from typing import Any

from reflexarc.wire.dialect import Where
from reflexarc.wire.dialects.messages import DIALECT
from reflexarc.wire.ids import MESSAGES_IDS, IdMap
from reflexarc.wire.losses import Losses
from reflexarc.wire.turns import Ask, Settings, ToolOffer, Turn


def asked(body: dict[str, Any]) -> Ask:
    """A whole request as the hub holds it."""
    values = {name: value for name, value in body.items() if name != "messages"}
    head = DIALECT.read_head(values, Where())
    turns = list(head.turns)
    for at, message in enumerate(body.get("messages", [])):
        turns.extend(DIALECT.read_message(message, f"messages[{at}]"))
    return Ask("messages", head.settings, tuple(turns), head.tools)


def written(ask: Ask) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The body, and what it could not say."""
    losses = Losses("messages")
    body = DIALECT.write_ask(ask, losses, IdMap(MESSAGES_IDS))
    return body, losses.names


def from_chat(
    *turns: Turn, tools: tuple[ToolOffer, ...] = (), dialect: str = "chat", **settings: Any
) -> Ask:
    """What a client of another dialect asks."""
    return Ask(dialect, Settings("model", **settings), turns, tools)
