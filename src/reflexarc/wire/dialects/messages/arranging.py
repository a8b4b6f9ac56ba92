"""The order of a request's messages: instructions beside them, roles in turn, results first."""

from typing import Any, NamedTuple

from reflexarc.wire.dialects.messages.blocks_out import BlockWriter, lose_rest, shortest
from reflexarc.wire.dialects.messages.words import theirs
from reflexarc.wire.ids import IdMap
from reflexarc.wire.losses import Losses
from reflexarc.wire.turns import Ask, Turn, joined


class Arranged(NamedTuple):
    """`system` as the member of that name; empty where there is none."""

    system: str | list[dict[str, Any]]
    messages: list[dict[str, Any]]


class _Message(NamedTuple):
    """`said` is the client's word for the role."""

    role: str
    blocks: list[dict[str, Any]]
    more: dict[str, Any]
    said: str


def arranged(ask: Ask, losses: Losses, ids: IdMap) -> Arranged:
    writer = BlockWriter(ask.dialect, losses, ids)
    turns = joined(ask.turns)
    first = _first_said(turns)
    system: list[dict[str, Any]] = []
    for turn in turns[:first]:
        _name_lost(turn, losses, theirs(ask.dialect, "turns"), own=False)
        system.extend(writer.system(turn.parts))
    told = _told(turns[first:], writer, losses, theirs(ask.dialect, "turns"))
    messages = _merged(told)
    if not writer.own:
        messages = _merged(_placed(messages, losses, theirs(ask.dialect, "turns")))
    if not messages and system and not writer.own:
        # A request must have a message; instructions alone are asked as a question.
        losses.lose(f"{theirs(ask.dialect, 'turns')}.system (moved)")
        messages, system = [_Message("user", system, {}, "system")], []
    return Arranged(shortest(system), [_body(message) for message in messages])


def _first_said(turns: tuple[Turn, ...]) -> int:
    for at, turn in enumerate(turns):
        if turn.role not in ("system", "developer"):
            return at
    return len(turns)


def _told(
    turns: tuple[Turn, ...], writer: BlockWriter, losses: Losses, under: str
) -> list[_Message]:
    told: list[_Message] = []
    for turn in turns:
        _name_lost(turn, losses, under, writer.own)
        if turn.role == "assistant":
            role, blocks = "assistant", writer.assistant(turn.parts)
        elif turn.role == "tool":
            role, blocks = "user", writer.results(turn.parts)
        elif turn.role == "user":
            role, blocks = "user", writer.user(turn.parts)
        else:
            role, blocks = "system", writer.system(turn.parts)
        if blocks:
            told.append(_Message(role, blocks, turn.more if writer.own else {}, turn.role))
    return told


def _merged(told: list[_Message]) -> list[_Message]:
    """One message for neighbours of one role. A user's starts with its results, in their order."""
    merged: list[_Message] = []
    for message in told:
        last = merged[-1] if merged else None
        if last is not None and last.role == message.role:
            blocks = _results_first([*last.blocks, *message.blocks])
            merged[-1] = _Message(last.role, blocks, {**last.more, **message.more}, last.said)
        else:
            merged.append(message)
    return merged


def _results_first(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(blocks, key=lambda block: block["type"] != "tool_result")


def _placed(told: list[_Message], losses: Losses, under: str) -> list[_Message]:
    """Instructions amid a conversation stand as they are after a user's message where the
    assistant goes on or nothing follows. Elsewhere they are refused, and said as the user's."""
    placed: list[_Message] = []
    for at, message in enumerate(told):
        before = told[at - 1].role if at else ""
        after = told[at + 1].role if at + 1 < len(told) else "assistant"
        if message.role == "system" and (before != "user" or after != "assistant"):
            losses.lose(f"{under}.{message.said} (moved)")
            message = message._replace(role="user")
        placed.append(message)
    return placed


def _name_lost(turn: Turn, losses: Losses, under: str, own: bool) -> None:
    if not own:
        lose_rest(losses, turn.more, under)
    if turn.name is not None:
        losses.lose(f"{under}.name")


def _body(message: _Message) -> dict[str, Any]:
    return {"role": message.role, "content": shortest(message.blocks), **message.more}
