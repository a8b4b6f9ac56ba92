"""How much of each prompt was in the previous one. Characters, not tokens: no tokenizer is asked.

An agent sends its whole conversation at every step, so most of a prompt is what it sent last time.
Recorded sessions only grow; prompts that were edited between turns do not show in them.
"""

import itertools
from collections.abc import Iterable
from statistics import median

import msgspec

from reflexarc.steps import Message, Session, canonical_json, decision_items

CHARS_PER_TOKEN = 4
"""The usual rule of thumb for English text and JSON with common tokenizers."""


class Turn(msgspec.Struct, frozen=True):
    """One assistant step as its provider bills it: `prompt_chars` went in (tools included),
    `output_chars` came out. `message` is the index of the answer in the session."""

    message: int
    prompt_chars: int
    output_chars: int


class Redundancy(msgspec.Struct, frozen=True):
    """Over the turns after each session's first: the share of the prompt that was in the previous
    turn's prompt; `median` over turns, `weighted` by their length. Both are 0 without turns."""

    turns: int
    median: float
    weighted: float


def turns(session: Session) -> list[Turn]:
    """The decision points of a session with what they cost."""
    chars = sum(
        len(tool.name) + len(tool.description) + len(canonical_json(tool.parameters))
        for tool in session.tools
    )
    found: list[Turn] = []
    at = 0
    for item in decision_items(session):
        if item.position:
            continue
        while at < item.message:
            chars += message_chars(session.messages[at])
            at += 1
        found.append(Turn(item.message, chars, message_chars(session.messages[item.message])))
    return found


def message_chars(message: Message) -> int:
    """Length of a message's text and of its calls as written."""
    calls = sum(
        len(call.name) + (len(call.raw) or len(canonical_json(call.arguments)))
        for call in message.tool_calls
    )
    return len(message.content) + calls


def redundancy(sessions: Iterable[Session]) -> Redundancy:
    """Prompt redundancy of recorded sessions."""
    shares: list[float] = []
    sent = 0
    repeated = 0
    for session in sessions:
        made = turns(session)
        for before, after in itertools.pairwise(made):
            sent += after.prompt_chars
            repeated += before.prompt_chars
            shares.append(before.prompt_chars / after.prompt_chars if after.prompt_chars else 0.0)
    return Redundancy(
        turns=len(shares),
        median=median(shares) if shares else 0.0,
        weighted=repeated / sent if sent else 0.0,
    )
