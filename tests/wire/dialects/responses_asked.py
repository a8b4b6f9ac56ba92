"""Requests of the Responses dialect, as tests read and write them."""

from typing import Any

from reflexarc.wire.dialect import Where
from reflexarc.wire.dialects.responses import DIALECT
from reflexarc.wire.ids import RESPONSES_IDS, IdMap
from reflexarc.wire.losses import Losses
from reflexarc.wire.turns import Ask, Settings, Turn, joined


def read(**members: Any) -> Ask:
    """The ask of a request; `model` and `input` may be left out."""
    values = {"model": "m", **members}
    conversation = values.pop("input", [])
    head = DIALECT.read_head(values, Where())
    turns = list(head.turns)
    if isinstance(conversation, list):
        for at, item in enumerate(conversation):
            turns.extend(DIALECT.read_message(item, f"input[{at}]"))
    else:
        turns.extend(DIALECT.read_message(conversation, "input"))
    return Ask("responses", head.settings, joined(turns), head.tools)


def written(ask: Ask) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The request of an ask, and what was lost."""
    losses = Losses("responses")
    return DIALECT.write_ask(ask, losses, IdMap(RESPONSES_IDS)), losses.names


def foreign(
    *turns: Turn, dialect: str = "messages", settings: Settings | None = None, **more: Any
) -> Ask:
    """An ask that came in another dialect."""
    return Ask(dialect, settings or Settings("m"), joined(turns), **more)


def message(role: str, content: Any, **members: Any) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": content, **members}


def said(*texts: str, **members: Any) -> dict[str, Any]:
    """A message of the model's."""
    content = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    return message("assistant", content, status="completed", **members)
